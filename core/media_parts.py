"""Pictures and recordings of a dialogue in its prompt: code points in text, pads in ids. Pure.

A template is given a private code point in place of such a part, so that any template can be asked.
In what it renders the family's own placeholder is put there, and the one pad of it becomes as many
as the part takes once the text is encoded. What a template puts between two parts is taken out
beside them. Knows no format: how many pads is the processor's to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.dialogue import (
    Audio,
    ClientPart,
    Dialogue,
    Document,
    Image,
    Part,
    Text,
    ToolResult,
)
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.ports.dialect import MediaProcessor
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt
from tokenwire.core.shield import PRIVATE
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import MediaItem

__all__ = ("MediaParts", "Placed")

FIRST: Final = 0x100000
LAST: Final = 0x10F000
"""Private code points between these: shields begin lower, and marks come from above."""

Media: TypeAlias = Image | Audio | Document
P = TypeVar("P", Part, ClientPart)


class Placed(Struct, frozen=True):
    """What one dialogue has. `seam` stands at both sides of what a template puts between parts."""

    seam: str = ""
    items: tuple[tuple[str, MediaItem], ...] = ()
    """Code point and item; where in the prompt that is, is not known yet."""


NOTHING: Final = Placed()


@final
class MediaParts:
    """Made once a model. `place`, render, `spell`, encode, `expand`."""

    def __init__(self, processor: MediaProcessor, tokenizer: Tokenizer, *, model: str) -> None:
        """Raises ConfigError where the pad is no token of the vocabulary."""
        ids = tokenizer.encode(processor.pad)
        if len(ids) != 1:
            raise ConfigError(
                f"models.{model}: media {processor.name!r} wants {processor.pad!r} to be one token,"
                f" and the tokenizer makes {len(ids)} of it"
            )
        self.processor = processor
        self.spellings = (processor.before, processor.pad, processor.after)
        self._pad = ids[0]
        self._model = model

    def place(self, dialogue: Dialogue) -> tuple[Dialogue, Placed]:
        """The dialogue with text in place of each part that the model takes. Raises RequestError
        for what the processor cannot read."""
        if not any(self._takes(part) for turn in dialogue.turns for part in turn.parts):
            return dialogue, NOTHING
        bare = self._replaced(dialogue, lambda part: "", "")
        used = set(PRIVATE.findall(msgspec.json.encode(bare).decode()))
        points = (chr(code) for code in range(FIRST, LAST) if chr(code) not in used)
        seam = next(points)
        items: list[tuple[str, MediaItem]] = []

        def point(part: Media) -> str:
            items.append((next(points), self._item(part)))
            return items[-1][0]

        return self._replaced(dialogue, point, seam), Placed(seam, tuple(items))

    def spell(self, text: str, placed: Placed) -> tuple[str, tuple[MediaItem, ...]]:
        """Rendered text with placeholders of one pad each, and what they stand for in turn."""
        if not placed.items:
            return text, ()
        seam = placed.seam
        between = re.compile(f"{seam}([^{seam}]*){seam}")
        text = between.sub(lambda match: "".join(PRIVATE.findall(match[1])), text)
        text = text.replace(seam, "")
        for point, _ in placed.items:
            if text.count(point) != 1:
                raise self._not_shown(text.count(point))
        order = sorted(placed.items, key=lambda item: text.index(item[0]))
        for point, _ in order:
            text = text.replace(point, "".join(self.spellings))
        return text, tuple(item for _, item in order)

    def expand(self, prompt: Prompt, items: tuple[MediaItem, ...]) -> Prompt:
        """As many pads as each item takes; what is known by place moves along."""
        places = [k for k, id_ in enumerate(prompt.ids) if id_ == self._pad]
        if len(places) != len(items):
            raise self._not_shown(len(places))
        ids, found, start = TokenIds(), [], 0
        for place, item in zip(places, items, strict=True):
            ids.extend(prompt.ids[start:place])
            found.append(replace(item, at=len(ids)))
            ids.extend([self._pad] * item.length)
            start = place + 1
        ids.extend(prompt.ids[start:])

        def later(index: int) -> int:
            pairs = zip(places, items, strict=True)
            return index + sum(item.length - 1 for place, item in pairs if place < index)

        spans = (
            replace(span, start=later(span.start), end=later(span.end)) for span in prompt.spans
        )
        marks = (replace(mark, tokens=later(mark.tokens)) for mark in prompt.marks)
        return replace(prompt, ids=ids, media=tuple(found), spans=tuple(spans), marks=tuple(marks))

    def _not_shown(self, count: int) -> RequestError:
        return RequestError(
            f"the chat template of model {self._model!r} must show each picture once, and has"
            f" {count} places for them",
            param="messages",
            code="unsupported_content",
        )

    def _takes(self, part: Part) -> bool:
        if isinstance(part, ToolResult):
            return any(map(self._takes, part.parts))
        return (
            isinstance(part, Media)
            and part.data is not None
            and type(part).__name__.lower() in self.processor.kinds
        )

    def _item(self, part: Media) -> MediaItem:
        data, kind = part.data or b"", type(part).__name__.lower()
        length = self.processor.length(kind, data)
        return MediaItem(kind, sha256(data).hexdigest(), 0, length, data=data)

    def _replaced(self, dialogue: Dialogue, text_of: Callable[[Media], str], seam: str) -> Dialogue:
        turns = tuple(
            replace(turn, parts=self._parts(turn.parts, text_of, seam)) for turn in dialogue.turns
        )
        return replace(dialogue, turns=turns)

    def _parts(
        self, parts: tuple[P, ...], text_of: Callable[[Media], str], seam: str
    ) -> tuple[P, ...]:
        if not any(map(self._takes, parts)):
            return parts
        out: list[Any] = []
        visible: list[tuple[int, bool]] = []
        for k, part in enumerate(parts):
            shown: Part = part
            is_media = False
            if isinstance(part, ToolResult):
                shown = replace(part, parts=self._parts(part.parts, text_of, seam))
            elif is_media := self._takes(part):
                shown = Text(text_of(cast(Media, part)))
            if isinstance(shown, Text):
                visible.append((k, is_media))
            out.append(shown)
        for (one, is_one), (other, is_other) in pairwise(visible):
            if is_one or is_other:
                out[one] = replace(out[one], text=out[one].text + seam)
                out[other] = replace(out[other], text=seam + out[other].text)
        return tuple(out)
