"""A call that goes from one protocol to another and back: what is lost is what both declare."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings

from tests.flow.calls import CALLS
from tokenwire.core.answer_losses import ANSWER_LOSSES
from tokenwire.core.call import Call
from tokenwire.core.call_losses import CALL_LOSSES, bare, without
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.testing.strategies import sample

NAMES: Final = ("chat_completions", "completions", "messages", "responses")
TALKS: Final = ("chat_completions", "messages", "responses")
"""Those that carry turns."""


@pytest.fixture(scope="module")
def codecs() -> dict[str, Codec]:
    host = Host()
    built = {name: host.codecs.build(name, {}, lone_services()) for name in NAMES}
    return {name: codec for name, codec in built.items() if isinstance(codec, Codec)}


def carried(codec: Codec, call: Call) -> Call:
    """What is left of a call that is asked in this protocol."""
    client = codec.client()
    assert client is not None
    request = client.request(call)
    read = codec.decode(request)
    assert isinstance(read, Call), request.body
    return bare(read)


def same(got: Call, wanted: Call) -> None:
    found = list(differences(msgspec.to_builtins(got), msgspec.to_builtins(wanted), "call"))
    assert not found, "\n".join(found)
    assert got == wanted


def differences(got: Any, wanted: Any, at: str) -> Iterator[str]:
    if isinstance(got, dict) and isinstance(wanted, dict) and got.keys() == wanted.keys():
        for key in got:
            yield from differences(got[key], wanted[key], f"{at}.{key}")
    elif isinstance(got, list | tuple) and len(got) == len(wanted):
        for k, (one, other) in enumerate(zip(got, wanted, strict=True)):
            yield from differences(one, other, f"{at}[{k}]")
    elif got != wanted:
        yield f"{at}: got {got!r}, wanted {wanted!r}"


@pytest.mark.parametrize("name", NAMES)
@settings(derandomize=True, max_examples=100, deadline=None)
@given(call=CALLS)
def test_a_wire_loses_what_it_declares(codecs: dict[str, Codec], name: str, call: Call) -> None:
    codec = codecs[name]
    same(carried(codec, call), bare(without(call, codec.call_losses)))


@pytest.mark.parametrize(("there", "back"), list(permutations(TALKS, 2)))
@settings(derandomize=True, max_examples=40, deadline=None)
@given(call=CALLS)
def test_there_and_back(codecs: dict[str, Codec], there: str, back: str, call: Call) -> None:
    """From a call of the one: what the other loses, and nothing of the one's own."""
    one, other = codecs[back], codecs[there]
    call = carried(one, call)
    there_only = without(call, other.call_losses)
    same(carried(one, carried(other, call)), without(there_only, one.call_losses))


@pytest.mark.parametrize("name", NAMES)
@settings(derandomize=True, max_examples=40, deadline=None)
@given(call=CALLS)
def test_a_protocol_loses_nothing_of_its_own(
    codecs: dict[str, Codec], name: str, call: Call
) -> None:
    codec = codecs[name]
    call = carried(codec, call)
    same(carried(codec, call), call)
    same(without(call, codec.call_losses), call)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_of_the_table(codecs: dict[str, Codec], name: str) -> None:
    assert codecs[name].call_losses <= CALL_LOSSES.keys()
    assert codecs[name].call_losses
    assert codecs[name].losses <= ANSWER_LOSSES.keys()


def test_every_loss_is_met() -> None:
    """The calls that these tests are made with have what is lost."""
    left = set(CALL_LOSSES)
    for call in sample(CALLS, 250):
        left -= {loss for loss in left if without(call, {loss}) != call}
    assert not left


def test_every_loss_is_declared(codecs: dict[str, Codec]) -> None:
    declared = frozenset().union(*(codec.call_losses for codec in codecs.values()))
    assert declared == CALL_LOSSES.keys()


def test_an_unknown_loss_is_refused() -> None:
    with pytest.raises(KeyError, match="not in the table"):
        without(Call("m", Dialogue(())), frozenset({"colour"}))
