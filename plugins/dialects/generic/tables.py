"""A response template as a parser uses it: what a region's text is, and which anchors end it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias, final

from tokenwire.plugins.dialects._shared.tables import NOT_QUICK, Quick, quick_test
from tokenwire.plugins.dialects.generic.anchor import Anchor
from tokenwire.plugins.dialects.generic.calls import RegionReader, region_reader
from tokenwire.plugins.dialects.generic.spec import Field, ResponseTemplate

__all__ = ("DROP", "OUTSIDE", "Kind", "Tables", "Watch")

Kind: TypeAlias = Literal["text", "reasoning", "call"]
OUTSIDE: Final = -1
"""Of all regions that an anchor opens."""
DROP: Final = -2
"""An anchor that changes nothing and is no text."""
Watch: TypeAlias = tuple[tuple[Anchor, int], ...]
"""Anchors, and into which region each leads."""
REASONING: Final = ("thinking", "reasoning", "reasoning_content", "thought", "thoughts", "analysis")


@final
class Tables:
    """By field number; OUTSIDE stands for the field without an opening anchor, if there is one."""

    def __init__(self, template: ResponseTemplate, *, thinks: bool) -> None:
        """`thinks`: False: the anchors of reasoning are text. Raises ConfigError for a template
        with calls that cannot be read."""
        self.fields: Final = template.fields
        self.start: Final = template.start
        self.kinds: Final[tuple[Kind, ...]] = tuple(_kind(field) for field in template.fields)
        self.readers: Final[dict[int, RegionReader]] = {
            k: region_reader(field)
            for k, field in enumerate(template.fields)
            if self.kinds[k] == "call"
        }
        self.implicit: Final = next(
            (k for k, f in enumerate(self.fields) if f.open is None), OUTSIDE
        )
        self._thinks = thinks
        self._watches: Final = {
            (region, calls): tuple(self._watch(region, calls=calls))
            for region in range(-1, len(self.fields))
            for calls in (False, True)
        }
        frame = (template.start,) if self.implicit < 0 else ()
        inner = (anchor for field in self.fields for anchor in (field.open, field.close) if anchor)
        self.anchors: Final = (*frame, *inner)
        """All that are looked for somewhere."""
        self._quick: Final = {key: _quick(watch) for key, watch in self._watches.items()}

    @property
    def thought(self) -> int:
        """The region of reasoning; DROP for none."""
        if not self._thinks or "reasoning" not in self.kinds:
            return DROP
        found = self.kinds.index("reasoning")
        return OUTSIDE if found == self.implicit else found

    def watch(self, region: int, *, calls: bool) -> Watch:
        return self._watches[region, calls]

    def quick(self, region: int, *, calls: bool) -> Quick:
        """When a piece of its text can go straight out."""
        return self._quick[region, calls]

    def kind(self, region: int) -> Kind:
        return self.kinds[region] if region >= 0 else self.outside

    def names(self, region: int) -> tuple[str, ...]:
        """Of the groups of its opening pattern."""
        opening = self.fields[region].open
        return opening.names if opening else ()

    @property
    def outside(self) -> Kind:
        kind: Kind = self.kinds[self.implicit] if self.implicit >= 0 else "text"
        return "text" if kind == "reasoning" and not self._thinks else kind

    def strips(self, region: int) -> bool:
        """Whether white space at both ends of its text is no text."""
        field = self._field(region)
        return field is None or bool(field.args.get("strip", True))

    def _field(self, region: int) -> Field | None:
        number = region if region >= 0 else self.implicit
        return self.fields[number] if number >= 0 else None

    def _watch(self, region: int, *, calls: bool) -> Iterator[tuple[Anchor, int]]:
        if region >= 0:
            close = self.fields[region].close
            if close is not None:
                yield close, OUTSIDE
            return
        for k, field in enumerate(self.fields):
            is_read = (calls or self.kinds[k] != "call") and (
                self._thinks or self.kinds[k] != "reasoning"
            )
            if field.open is not None and is_read:
                yield field.open, k
        if self.implicit >= 0:
            close = self.fields[self.implicit].close
            if close is not None:
                yield close, OUTSIDE
            return
        # Why: nothing stands between regions but the frame of the next one.
        yield self.start, DROP
        for k, field in enumerate(self.fields):
            if field.close is not None and (calls or self.kinds[k] != "call"):
                yield field.close, DROP


def _kind(field: Field) -> Kind:
    if field.name == "tool_calls":
        return "call"
    return "reasoning" if field.name in REASONING else "text"


def _quick(watch: Watch) -> Quick:
    firsts = {anchor.firsts for anchor, _ in watch}
    if "" in firsts:
        return NOT_QUICK
    return quick_test("".join(sorted(set("".join(firsts)))), " \t\r\n")
