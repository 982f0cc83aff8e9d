"""Saved states of parsers: what is none is refused, and in one way."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.dialect_probe import TOOLS
from tokenwire.plugins.dialects.hermes.maker import hermes_maker
from tokenwire.plugins.dialects.plain.parser import PlainMaker

SETUP = ParserSetup(tools=TOOLS)
MAKERS = (hermes_maker(), PlainMaker())
TEXT = (
    '<think>a</think>\n b <tool_call>{"arguments": {"a": ["\\n"]}, "name": "look_up"}</tool_call>'
)
WORDS = ("", "text", "reasoning", "draft", "call", "after", "open", "value", "arguments", "part")
PLAIN = st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.binary(max_size=3)
ODD = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=9), max_leaves=12)


def states(maker: ParserMaker) -> list[list[object]]:
    """Of every cut of a text."""
    found = []
    parser = maker.parser(SETUP)
    for character in TEXT:
        parser.push(Piece(character))
        found.append(msgspec.msgpack.decode(msgspec.msgpack.encode(parser.save())))
    return found


@pytest.mark.parametrize("maker", MAKERS)
@given(data=st.data())
def test_odd_states_are_refused_in_one_way(maker: ParserMaker, data: st.DataObject) -> None:
    state = data.draw(ODD | st.sampled_from(states(maker)))
    spot = state
    while isinstance(spot, list) and spot and data.draw(st.booleans()):
        k = data.draw(st.integers(0, len(spot) - 1))
        if isinstance(spot[k], list) and data.draw(st.booleans()):
            spot = spot[k]
        else:
            spot[k] = data.draw(ODD)
            break
    with suppress(msgspec.ValidationError):
        maker.parser(SETUP).restore(state)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("state", [None, 7, "text", [], [True], {"state": "text"}])
def test_a_state_that_is_none_is_refused(maker: ParserMaker, state: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        maker.parser(SETUP).restore(state)


def test_a_call_is_read_in_its_state_alone() -> None:
    whole = next(state for state in states(hermes_maker()) if state[0] == "call")
    for state in (["text", *whole[1:]], [*whole[:-2], -1, whole[-1]]):
        with pytest.raises(msgspec.ValidationError, match="no other"):
            hermes_maker().parser(SETUP).restore(state)
    for state in ([*whole[:-1], None], [*whole[:-2], 7, whole[-1]]):
        with pytest.raises(msgspec.ValidationError):
            hermes_maker().parser(SETUP).restore(state)
