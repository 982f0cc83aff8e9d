"""Families whose answers are messages or have odd calls: as installed, and their saved states."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.dialect_kit import LAWS, conform
from tokenwire.core.testing.dialect_probe import TOOLS

TEXTS = {
    "apertus": '<|inner_prefix|>a<|inner_suffix|>b<|tools_prefix|>[{"look_up": {"a": ["\\n"]}}]',
    "cohere": "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|START_ACTION|>[\n"
    '{"tool_call_id": "0", "tool_name": "look_up", "parameters": {"a": ["\\n"]}}]<|END_ACTION|>',
    "command_r": 'b\nAction:\n```json\n[{"tool_name": "look_up", "parameters": {"a": 1}}]```',
    "functiongemma": "b<start_function_call>call:look_up{a:[<escape>\n<escape>,{b:1}]}",
    "functionary_v3_1": 'b<function=look_up>{"a": ["\\n"]}</function><function=look_up>x',
    "functionary_v3_2": 'all\nb>>>look_up\n{"a": ["\\n"]}>>>look_up\nx<y',
    "gemma3": "a <end_of_turn",
    "gemma4": '<|channel>thought\na<channel|>b<|tool_call>call:look_up{"a":[<|"|>\n<|"|>,{b:1}]}',
    "harmony": "<|channel|>analysis<|message|>a<|end|><|start|>assistant to=functions.look_up"
    '<|channel|>commentary json<|message|>{"a": ["\\n"]}<|call|> x',
}
SETUP = ParserSetup(tools=TOOLS)
WORDS = ("", "text", "reasoning", "lead", "call", "after", "key", "value", "raw", "json", "over")
PLAIN = st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.binary(max_size=3)
ODD = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=9), max_leaves=12)


@pytest.fixture(scope="module")
def host() -> Host:
    return Host()


def made(host: Host, name: str) -> ParserMaker:
    return host.parsers.build(name, {}, lone_services(), f"parser.{name}")


@pytest.mark.parametrize("name", TEXTS)
def test_a_dialect_conforms_as_it_is_installed(host: Host, name: str) -> None:
    assert set(LAWS) - set(conform(host, name)) <= {"known_stops", "nothing_repaired"}


@pytest.mark.parametrize("name", TEXTS)
def test_odd_states_are_refused_in_one_way_and_others_go_on(host: Host, name: str) -> None:
    maker = made(host, name)
    parser, states = maker.parser(SETUP), []
    for character in TEXTS[name]:
        parser.push(Piece(character))
        states.append(msgspec.msgpack.encode(parser.save()))

    @given(st.sampled_from(states), st.data())
    def check(saved: bytes, data: st.DataObject) -> None:
        state = spot = msgspec.msgpack.decode(saved)
        while isinstance(spot, list) and spot:
            k = data.draw(st.integers(0, len(spot) - 1))
            if not (isinstance(spot[k], list) and data.draw(st.booleans())):
                spot[k] = data.draw(ODD)
                break
            spot = spot[k]
        fresh = maker.parser(SETUP)
        with suppress(msgspec.ValidationError):
            fresh.restore(state)
            for piece in ("x", '"', "}", "<|end|>", ">>>all\n", ",", "]"):
                fresh.push(Piece(piece))
            fresh.flush()

    check()
