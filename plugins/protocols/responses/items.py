"""Input items to turns: messages, calls, results, thoughts, in order. Knows no request.

Items that the assistant made follow one another in one turn, as templates want them. Where an item
begins that has fields of its own, or could be mistaken for more of the one before, its first part
says so in `extra["item"]`; items of kinds that are not run here are kept as Opaque("item").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tokenwire.core.call import Need
from tokenwire.core.dialogue import (
    ClientPart,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import check_depth
from tokenwire.plugins.protocols.responses.ids import response_of
from tokenwire.plugins.protocols.responses.item_fields import (
    is_object,
    joined,
    parts_of,
    plain_reasoning,
    reference,
    string_of,
)
from tokenwire.plugins.protocols.responses.namespaces import flat_name
from tokenwire.plugins.protocols.responses.parts import Look, PartReader
from tokenwire.plugins.protocols.responses.schema import Json
from tokenwire.plugins.protocols.responses.tool_search import (
    SEARCH,
    by_client,
    read_call,
    read_output,
)

__all__ = ("ITEM", "ItemReader", "Look")

ITEM: Final = "item"
"""Of an Opaque part: a whole item. In the `extra` of a message's first part: the item's fields."""
ROLES: Final[Mapping[object, Role]] = {
    "user": "user", "system": "system", "developer": "developer", "assistant": "assistant"
}  # fmt: skip
QUIET: Final = frozenset(("id", "status", "type", "phase", "namespace", "caller", "async", "name"))
"""Fields of items that have no effect on a prompt, and are ours or common."""
REASONING: Final = QUIET | {"summary", "content", "encrypted_content"}
SEARCHES: Final = QUIET | {"arguments", "call_id", "created_by", "execution", "tools"}
THOUGHT: Final = frozenset(("type", "text"))
LISTED_AT: Final = "input[]"


def _nothing(need: Need) -> object:
    return ...


class ItemReader:
    """`read` each item, then take `turns`."""

    def __init__(self, ignored: Ignored, look: Look = _nothing) -> None:
        """`look`: what a need's answer is: bytes; None where there are none, `...` where nobody
        knows yet."""
        self.ignored = ignored
        self.needs: list[Need] = []
        self._look = look
        self._parts = PartReader(ignored, self.needs, look)
        self._turns: list[Turn] = []
        self._open: list[Part] = []  # The assistant's turn that is still growing.
        self._aside: list[Part] = []  # Opaque items that wait for a turn to stand in.
        self._names: dict[str, str] = {}
        self._unanswerable: tuple[str, str] | None = None

    def turns(self) -> tuple[Turn, ...]:
        self._close()
        if self._aside and self._turns:
            last = self._turns[-1]
            self._turns[-1] = Turn(last.role, (*last.parts, *self._aside), last.name, last.extra)
        elif self._aside:
            self._turns.append(Turn("user", tuple(self._aside)))
        self._aside = []
        return tuple(self._turns)

    def check(self) -> None:
        """Once all is there: raises RequestError for a result that answers no call."""
        if self._unanswerable is not None:
            at, id_ = self._unanswerable
            raise RequestError(
                f"{at}.call_id {id_[:64]!r} answers no earlier call: a function_call or"
                " custom_tool_call before it must have that call_id",
                param=f"{at}.call_id",
                code="unknown_tool_call",
            )

    def read(self, item: Json, at: str) -> None:
        """Raises RequestError."""
        if len(item) == 2 and self._plain(item.get("role"), item.get("content")):
            return
        kind = item.get("type")
        if (id_ := reference(item)) is not None:
            # Why of its response: an item's id says to which it belongs.
            self.needs.append(Need("response", response_of(id_)))
            self._open.append(Opaque(ITEM, item))
            return
        if kind is None and "role" in item:
            kind = "message"
        match kind:
            case "message":
                self._message(item, at)
            case "function_call":
                self._call(item, at, "arguments")
            case "custom_tool_call":
                self._call(item, at, "input")
            case "function_call_output" | "custom_tool_call_output":
                self._result(item, at)
            case "reasoning":
                self._reasoning(item, at)
            case "item_reference":
                raise RequestError(
                    f"{at}.id must name the item that is referred to",
                    param=f"{at}.id",
                    code="missing_field",
                )
            case "tool_search_call" if by_client(item):
                self._search(item, at)
            case "tool_search_output" if by_client(item):
                self._found(item, at)
            case "additional_tools":  # Whose tools the request's reader has read.
                self._keep(item)
            case str():
                self._hosted(item, kind)
            case _:
                raise RequestError(
                    f"{at}.type must name a kind of item", param=f"{at}.type", code="missing_field"
                )

    def _plain(self, role: object, content: object) -> bool:
        """A message of a role and a string. Why apart: nearly all of a long input are such."""
        if type(content) is not str or type(role) is not str or role not in ROLES:
            return False
        if role == "assistant":
            self._said((Text(content),), {})
        else:
            self._add(Turn(ROLES[role], (Text(content),)))
        return True

    def _message(self, item: Json, at: str) -> None:
        given = item.get("role")
        role = ROLES.get(given if isinstance(given, str) else None)
        if role is None:
            raise RequestError(
                f"{at}.role must be {', '.join(str(name) for name in ROLES)}, not"
                f" {str(given)[:64]!r}",
                param=f"{at}.role",
                code="invalid_type",
            )
        parts = self._parts.read(item.get("content"), f"{at}.content")
        rest = self._rest(item, "role", "content")
        if role == "assistant":
            self._said(parts, rest)
            return
        if not parts:
            raise RequestError(
                f"{at}.content must be a string or a list of at least one part",
                param=f"{at}.content",
                code="missing_field",
            )
        self._add(Turn(role, parts, extra=rest))

    def _said(self, parts: tuple[ClientPart, ...], rest: Json) -> None:
        """A message of the assistant."""
        if not parts:
            self._open.append(Opaque(ITEM, {"role": "assistant", "content": [], **rest}))
            return
        first = parts[0]
        if rest or (self._open and isinstance(self._open[-1], Text)):
            extra = {**getattr(first, "extra", {}), ITEM: rest}
            first = msgspec.structs.replace(first, extra=extra)
        self._open += (first, *parts[1:])

    def _call(self, item: Json, at: str, field: str) -> None:
        id_, name = (string_of(item, key, at) for key in ("call_id", "name"))
        if not id_ or not name:
            raise RequestError(f"{at} needs a call_id and a name", param=at, code="missing_field")
        text = string_of(item, field, at)
        custom = field == "input"
        if not custom:
            check_depth(text, param=f"{at}.arguments")
            if text and not is_object(text):
                self.ignored.add(f"{at}.arguments")
        name = flat_name(item.get("namespace"), name)
        self._names[id_] = name
        extra = self._rest(item, "call_id", "name", field, "type")
        self._open.append(ToolCall(id_, name, text, custom=custom, extra=extra))

    def _search(self, item: Json, at: str) -> None:
        self.ignored.unknown(item, SEARCHES, LISTED_AT)
        call = read_call(item, at)
        self._names[call.id] = SEARCH
        self._open.append(call)

    def _found(self, item: Json, at: str) -> None:
        """Whose tools the request's reader reads."""
        self.ignored.unknown(item, SEARCHES, LISTED_AT)
        result = read_output(item, at)
        self._answers(result.call_id, at)
        self._add(Turn("tool", (result,)))

    def _answers(self, id_: str, at: str) -> None:
        if id_ not in self._names and self._unanswerable is None:
            self._unanswerable = (at, id_)

    def _result(self, item: Json, at: str) -> None:
        id_ = string_of(item, "call_id", at)
        self._answers(id_, at)
        output = item.get("output")
        parts = self._parts.read(output, f"{at}.output")
        used = ("call_id", "output") if parts or output == [] else ("call_id",)
        extra = self._rest(item, *used)
        if extra.get("type") == "function_call_output":
            del extra["type"]
        self._add(Turn("tool", (ToolResult(id_, parts, name=self._names.get(id_), extra=extra),)))

    def _reasoning(self, item: Json, at: str) -> None:
        extra: Json = {key: value for key, value in item.items() if key != "type"}
        self.ignored.unknown(extra, REASONING, LISTED_AT)
        for field in ("summary", "content"):
            for part in parts_of(item, field):
                self.ignored.unknown(part, THOUGHT, f"{LISTED_AT}.{field}[]")
        text = joined(item, "content", at)
        if extra == plain_reasoning(text):
            extra = {}
        sealed = item.get("encrypted_content")
        if not isinstance(sealed, str | None):
            at = f"{at}.encrypted_content"
            raise RequestError(f"{at} must be a string", param=at, code="invalid_type")
        if not text and sealed:
            text = self._unsealed(sealed) or joined(item, "summary", at)
            self._open.append(Reasoning(text, redacted=sealed, extra=extra))
            return
        self._open.append(Reasoning(text or joined(item, "summary", at), extra=extra))

    def _unsealed(self, sealed: str) -> str:
        need = Need("sealed", sealed)
        found = self._look(need)
        if isinstance(found, bytes):
            return found.decode("utf-8", "replace")
        if found is ...:
            self.needs.append(need)
        else:
            self.ignored.add(f"{LISTED_AT}.encrypted_content")
        return ""

    def _hosted(self, item: Json, kind: str) -> None:
        self.ignored.add(f"{LISTED_AT}.{kind[:64]}")
        self._keep(item)

    def _keep(self, item: Json) -> None:
        (self._open if self._open else self._aside).append(Opaque(ITEM, item))

    def _rest(self, item: Json, *used: str) -> Json:
        rest = {key: value for key, value in item.items() if key not in used}
        if rest:
            self.ignored.unknown(rest, QUIET, LISTED_AT)
        return rest

    def _add(self, turn: Turn) -> None:
        self._close()
        if self._aside:
            turn = Turn(turn.role, (*self._aside, *turn.parts), turn.name, turn.extra)
            self._aside = []
        self._turns.append(turn)

    def _close(self) -> None:
        """End the assistant's turn. One of nothing but items kept aside is no turn."""
        parts, self._open = self._open, []
        if all(isinstance(part, Opaque) for part in parts):
            self._aside += parts
        else:
            self._turns.append(Turn("assistant", (*self._aside, *parts)))
            self._aside = []
