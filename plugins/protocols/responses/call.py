"""A Responses request as a Call: what its reply echoes, and what it goes on from. No reply.

What only the flow can bring (an earlier response, a conversation, sealed thoughts) is put in by
reading the input again, this time behind what came before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tokenwire.core.call import Call, Need
from tokenwire.core.dialogue import Text, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.stored import StoredAnswer, StoredConversation, StoredItem
from tokenwire.plugins.protocols.responses.ids import response_of
from tokenwire.plugins.protocols.responses.item_fields import reference
from tokenwire.plugins.protocols.responses.items import ItemReader, Look
from tokenwire.plugins.protocols.responses.schema import Json
from tokenwire.plugins.protocols.responses.tools import ToolReader, brings_tools, may_bring_tools

__all__ = ("ResponsesCall", "read_input", "read_tools_of", "read_turns")

WAITING: Final = ("queued", "in_progress")

_items: Final = msgspec.json.Decoder(list[Json])
_item: Final = msgspec.json.Decoder(Json)
_input: Final = msgspec.json.Decoder(str | list[Json])
_raw_items: Final = msgspec.json.Decoder(list[Raw])


class ResponsesCall(Call, frozen=True):
    """`given`: every field of the body as it was written, but for `input`, `model` and `stream`."""

    given: Mapping[str, bytes] = {}
    input: bytes = b"[]"
    """JSON, as it was written."""
    previous: str | None = None
    conversation: str | None = None
    context: tuple[StoredItem, ...] = ()
    """What came before the input, once it is resolved."""
    is_placed: bool = False
    """`context` is known, be it empty."""
    instructions: str | None = None
    seals: bool = False
    """Reasoning is sent with `encrypted_content`."""
    summarises: bool = False
    """Reasoning is sent as a summary."""
    namespaces: Mapping[str, tuple[str, str]] = {}
    """Of tools that stand in one: from what the model calls them to the namespace and the name."""
    searches: bool = False
    """The client runs a search for deferred tools: a call of it is an item of its own kind."""

    def resolve(self, found: Mapping[Need, object]) -> Call:
        """`found`: StoredAnswer, StoredConversation (None: there is none), bytes or None. What is
        not in it stays a need. Raises RequestError for what the client named and is not there."""
        context = self.context
        if self.previous is not None and not self.is_placed:
            context = self._previous(found)
        if self.conversation is not None and not self.is_placed:
            context = self._talk(found)
        look = _lookup(context, found)
        new = _substituted(self.input, look)
        call = replace(self, context=context, is_placed=True, input=new)
        reader = ItemReader(Ignored(), look)
        turns, needs = read_turns(call, context, reader)
        tools, namespaces = self._tools(context, new, reader.ignored)
        return replace(
            call,
            dialogue=replace(self.dialogue, turns=turns, tools=tools),
            namespaces=namespaces,
            needs=tuple(need for need in needs if need not in found),
            ignored=tuple(dict.fromkeys((*self.ignored, *reader.ignored.paths))),
        )

    def _tools(
        self, context: tuple[StoredItem, ...], data: bytes, ignored: Ignored
    ) -> tuple[tuple[ToolSpec, ...], Mapping[str, tuple[str, str]]]:
        """The request's own, then those that what came before has brought, then the input's."""
        bringing = [item for item in context if may_bring_tools(item.data)]
        if not bringing and data is self.input:
            return self.dialogue.tools, self.namespaces
        tools = ToolReader(ignored)
        if (raw := self.given.get("tools", b"null")) != b"null":
            tools.read(msgspec.json.decode(raw), raw, "tools")
        for item in bringing:
            tools.read_item(_item.decode(item.data), item.data, "input")
        read_tools_of(tools, read_input(data), data)
        return tools.offered(), tools.namespaces

    def _previous(self, found: Mapping[Need, object]) -> tuple[StoredItem, ...]:
        assert self.previous is not None
        answer = found.get(Need("response", self.previous))
        param = "previous_response_id"
        if not isinstance(answer, StoredAnswer):
            raise RequestError(
                f"{param}: there is no response {self.previous[:100]!r} here, or no more; responses"
                " are kept where store is not false",
                param=param,
                code="previous_response_not_found",
            )
        if answer.status != "lost" and _item.decode(answer.body).get("status") in WAITING:
            raise RequestError(
                f"{param}: response {self.previous[:100]!r} is still being made", param=param
            )
        return (*answer.context, *answer.input, *answer.output)

    def _talk(self, found: Mapping[Need, object]) -> tuple[StoredItem, ...]:
        assert self.conversation is not None
        talk = found.get(Need("conversation", self.conversation))
        if not isinstance(talk, StoredConversation):
            raise RequestError(
                f"conversation: there is no conversation {self.conversation[:100]!r} here",
                param="conversation",
                code="conversation_not_found",
            )
        return talk.items


def _lookup(context: tuple[StoredItem, ...], found: Mapping[Need, object]) -> Look:
    """Of a need: what was found; of a referred item (its id as the `ref`): the item, wherever it
    stands."""
    known = {item.id: item.data for item in context}

    def look(need: Need) -> object:
        if need.kind != "response":
            return found.get(need, ...)
        if (data := known.get(need.ref)) is not None:
            return _item.decode(data)
        owner = Need("response", response_of(need.ref))
        if owner not in found:
            return ...
        answer = found[owner]
        if isinstance(answer, StoredAnswer):
            for item in (*answer.input, *answer.output):
                if item.id == need.ref:
                    return _item.decode(item.data)
        return None

    return look


def _substituted(data: bytes, look: Look) -> bytes:
    """The input with the items that are referred to in it. Why written anew: what is kept of this
    call must not depend on what it referred to."""
    items = read_input(data)
    found = [look(Need("response", id_)) if (id_ := reference(item)) else ... for item in items]
    for k, (item, one) in enumerate(zip(items, found, strict=True)):
        if one is None:
            raise RequestError(
                f"input[{k}].id: there is no item {str(item['id'])[:100]!r} here, or no more",
                param=f"input[{k}].id",
                code="item_not_found",
            )
    if all(one is ... for one in found):
        return data
    new = [item if one is ... else one for item, one in zip(items, found, strict=True)]
    return msgspec.json.encode(new)


def read_input(data: bytes) -> list[Json]:
    """The items of `input`, a string being one message of the user."""
    given = _input.decode(data)
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def read_tools_of(tools: ToolReader, items: Sequence[Json], data: bytes) -> None:
    """The tools that items of the input bring; `data`: that input as it was written."""
    if not any(map(brings_tools, items)):
        return
    for k, (item, written) in enumerate(zip(items, _raw_items.decode(data), strict=True)):
        tools.read_item(item, written, f"input[{k}]")


def read_turns(
    call: ResponsesCall,
    context: tuple[StoredItem, ...],
    reader: ItemReader,
    items: Sequence[Json] | None = None,
) -> tuple[tuple[Turn, ...], tuple[Need, ...]]:
    """Instructions (those of this request alone), what came before, and the input. `items`: that
    input, where it has been read before."""
    for item in context:
        reader.read(_item.decode(item.data), "input")
    for k, given in enumerate(read_input(call.input) if items is None else items):
        reader.read(given, f"input[{k}]")
    needs: list[Need] = []
    if call.previous is not None and not call.is_placed:
        needs.append(Need("response", call.previous))
    if call.conversation is not None and not call.is_placed:
        needs.append(Need("conversation", call.conversation))
    turns = reader.turns()
    if not (needs or reader.needs):
        reader.check()
    if call.instructions:
        turns = (Turn("system", (Text(call.instructions),)), *turns)
    return turns, tuple(dict.fromkeys((*needs, *reader.needs)))
