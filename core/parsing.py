"""A model's answer to events, outside any call: whole, or in pieces with a state that the asker
carries. Pure; knows no wire.

What a piece costs does not depend on what came before: the state is a decoder between two ids, with
what it must know of the call, and it is sealed, so that nobody else can write one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from tokenwire.core.answer_state import seal, unseal
from tokenwire.core.errors import RequestError
from tokenwire.core.events import Event
from tokenwire.core.queries import Parse, Parsed, ParseOptions
from tokenwire.core.served import ServedModel
from tokenwire.core.signing import Keyring
from tokenwire.core.tokens import Finish, FinishCause, FinishKind

__all__ = ("parse",)

KIND: Final = "parse 1"
"""First in every state, so that no other sealed blob is taken for one."""

FINISHES: Final = {
    "stop": Finish(FinishKind.STOP, FinishCause.EOS),
    "length": Finish(FinishKind.LENGTH, FinishCause.MAX),
}


class _State(Struct, frozen=True, array_like=True):
    kind: str
    fingerprint: str
    model: str
    options: ParseOptions
    decoder: Any


def parse(query: Parse, find: Callable[[str], ServedModel], keys: Keyring) -> Parsed:
    """Raises RequestError for a state that is not ours or not this model's, and for ids that are
    none. Of an answer that a stop string ended, what follows is not read."""
    state = None if query.state is None else _read(query.state, keys)
    model = find(query.model if state is None else state.model)
    fingerprint = model.renderer.fingerprint
    options = query.options if state is None else state.options
    decoder = model.reader(options)
    if state is not None:
        if state.fingerprint != fingerprint:
            raise _refused("it was made with another template, tokenizer or model revision")
        try:
            decoder.restore(state.decoder)
        except Exception as error:
            # Why so wide: parsers are plugins, and whatever one says of a state that it cannot
            # read, the state is at fault.
            raise _refused("it belongs to another version of this server") from error
    events: list[Event] = []
    if query.ids:
        model.raw.texts.check(query.ids, "ids")
        try:
            events += decoder.push(query.ids)
        except KeyError as error:
            raise RequestError(f"ids: {error.args[0]}", param="ids") from None
    if query.text:
        events += decoder.push_text(query.text)
    if query.finish is not None:
        events += decoder.finish(FINISHES[query.finish])
        return Parsed(tuple(events), fingerprint)
    saved = _State(KIND, fingerprint, model.name, options, decoder.save())
    return Parsed(tuple(events), fingerprint, seal(msgspec.msgpack.encode(saved), keys))


def _read(sealed: bytes, keys: Keyring) -> _State:
    try:
        state = msgspec.msgpack.decode(unseal(sealed, keys), type=_State)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _refused("it is no state of an answer") from error
    if state.kind != KIND:
        raise _refused("it is no state of an answer")
    return state


def _refused(why: str) -> RequestError:
    return RequestError(f"the state cannot be used: {why}", param="state", code="invalid_state")
