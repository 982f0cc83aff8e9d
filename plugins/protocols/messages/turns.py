"""`system` and `messages` to turns, with the cache markers on their blocks. Knows no settings.

A message becomes one turn; but tool results make `tool` turns of their own, at their place.
Neighbours of one role are combined, as the protocol says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast, final

from msgspec.structs import replace

from tokenwire.core.call import CacheMarker
from tokenwire.core.dialogue import Part, Role, Text, ToolResult, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct
from tokenwire.plugins.protocols.messages import schema
from tokenwire.plugins.protocols.messages.blocks import BlockReader, Place
from tokenwire.plugins.protocols.messages.preamble import NAME, volatile

__all__ = ("PREAMBLE", "SHAPE", "Shape", "TurnReader", "cache_ttl")

Shape: TypeAlias = dict[str, object]
SHAPE: Final = "messages"
"""Under this key a dialogue keeps how it was cut into messages."""

PREAMBLE: Final = "preamble"
"""Under this key a dialogue keeps what was taken off the front of its system prompt."""

ROLES: Final = ("user", "assistant", "system")
SPOT: Final = "messages[].content[]"
TTLS: Final = {"5m": 300, "1h": 3600}
CONTROL: Final = frozenset(schema.CacheControl.__struct_fields__)


@final
class TurnReader:
    """Grows the turns of one request."""

    __slots__ = (
        "_blocks",
        "_drops_preamble",
        "_extras",
        "_ignored",
        "_messages",
        "_parts",
        "_roles",
        "_sealed",
        "_usual",
        "markers",
        "preamble",
    )

    def __init__(self, blocks: BlockReader, ignored: Ignored, *, drops_preamble: bool) -> None:
        self._drops_preamble = drops_preamble
        self._messages: list[list[object]] = []
        self._usual = True  # Whether the messages are written as the turns alone would be.
        self.preamble: list[list[object]] = []
        """What of the system prompt is not for the model: (index of its block, text or block)."""
        self._blocks = blocks
        self._ignored = ignored
        self._roles: list[Role] = []
        self._parts: list[list[Part]] = []
        self._extras: list[dict[str, object]] = []
        self._sealed = 0  # Turns that take no more parts: the leading system prompt.
        self.markers: dict[CacheMarker, None] = {}

    def system(self, content: str | list[schema.Json]) -> None:
        """The system prompt, before any message."""
        if isinstance(content, str):
            content = self._without_preamble(content, 0)
            if content:
                self._add("system", Text(content))
        else:
            self._usual &= not _is_one_text(content)
            for k, block in enumerate(content):
                place = Place("system", k, "system[]")
                part = self._blocks.read(block, "system", place)
                if isinstance(part, Text) and volatile(part.text):
                    text = self._without_preamble(part.text, k)
                    if not text and self.preamble:
                        self.preamble[-1] = [k, block]
                        continue
                    part = replace(part, text=text)
                self._add("system", part)
                self._mark(block, place)
        self._sealed = len(self._roles)

    def _without_preamble(self, text: str, k: int) -> str:
        found = volatile(text) if self._drops_preamble else ""
        if not found:
            return text
        self._ignored.add(f"system.{NAME}")
        self.preamble.append([k, found])
        return text[len(found) :]

    def message(self, index: int, turn: schema.Turn, unknown: Mapping[str, object]) -> None:
        role = turn.role
        if role not in ROLES:
            param = f"messages[{index}].role"
            raise RequestError(
                f"{param} must be user, assistant or system, not {role[:64]!r}", param=param
            )
        content = turn.content
        own = cast(Role, role)
        before = len(self._roles)
        if self._usual and role == "system" and content and not before and not unknown:
            self._usual = False
        if isinstance(content, str):
            self._add(own, Text(content))
        elif not content:
            self._open(own)
        else:
            path = f"messages[{index}].content"
            for k, block in enumerate(content):
                place = Place(path, k, SPOT, index)
                part = self._blocks.read(block, role, place)
                self._add("tool" if isinstance(part, ToolResult) else own, part)
                if "cache_control" in block:
                    self._mark(block, place)
        if unknown:
            self._extras[-1].update(unknown)
        if self._usual and (len(self._roles) != before + 1 or _is_one_text(content)):
            self._usual = False
        self._messages.append([role, -1 if isinstance(content, str) else len(content), unknown])

    def shape(self, system: str | list[schema.Json] | None) -> Shape | None:
        """How the turns were cut into messages; None where nobody could have cut them otherwise."""
        if self._usual:
            return None
        return {
            "system": None if system is None else "text" if isinstance(system, str) else "blocks",
            "messages": self._messages,
        }

    def mark_last(self, control: schema.CacheControl) -> None:
        """The request's own cache_control: it stands for one on the last block."""
        if self._parts and self._parts[-1]:
            self._marker(cache_ttl(control, "cache_control", self._ignored))

    def turns(self) -> tuple[Turn, ...]:
        return tuple(
            Turn(role, tuple(parts), extra=extra)
            for role, parts, extra in zip(self._roles, self._parts, self._extras, strict=True)
        )

    def _open(self, role: Role) -> None:
        if len(self._roles) == self._sealed or self._roles[-1] != role:
            self._roles.append(role)
            self._parts.append([])
            self._extras.append({})

    def _add(self, role: Role, part: Part) -> None:
        if len(self._roles) == self._sealed or self._roles[-1] != role:
            self._open(role)
        self._parts[-1].append(part)

    def _mark(self, block: Mapping[str, object], place: Place) -> None:
        value = block.get("cache_control")
        if value is None:
            return
        control = to_struct(value, schema.CacheControl, at=f"{place.at}.cache_control")
        if isinstance(value, dict):
            self._ignored.unknown(value, CONTROL, f"{place.spot}.cache_control")
        self._marker(cache_ttl(control, f"{place.spot}.cache_control", self._ignored))

    def _marker(self, ttl_s: int | None) -> None:
        turn = len(self._parts) - 1
        self.markers[CacheMarker(turn, len(self._parts[turn]) - 1, ttl_s)] = None


def _is_one_text(content: str | list[schema.Json]) -> bool:
    """A list with nothing but text in it, which would be written as text."""
    return (
        not isinstance(content, str)
        and len(content) == 1
        and content[0].keys() == {"type", "text"}
        and content[0]["type"] == "text"
    )


def cache_ttl(control: schema.CacheControl, spot: str, ignored: Ignored) -> int | None:
    """Seconds; None where the client left it to us."""
    if control.type != "ephemeral":
        ignored.add(f"{spot}.type")
    if control.ttl is None:
        return None
    seconds = TTLS.get(control.ttl)
    if seconds is None:
        ignored.add(f"{spot}.ttl")
    return seconds
