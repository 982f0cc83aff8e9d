"""Calls of free-form tools in the decoder: plain text, cut anyhow, restored at any token."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import pytest

from tests.core.tag_parser import TagMaker
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.events import Event, PartDelta, PartEnd, PartStart
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.signing import Keyring
from tokenwire.core.tokens import Finish, FinishCause, FinishKind

TOKENIZER = Host().tokenizers.build("bytes", {}, Services(Keyring([b"k" * 32])))
SETUP = DecoderSetup(
    tokenizer=TOKENIZER, pieces=PieceTable(TOKENIZER), custom_tools=frozenset({"f"})
)
EOS = Finish(FinishKind.STOP, FinishCause.EOS)
PATCH = 'a\n"b" \\ 🌊'


@dataclass
class Call:
    """What the events of one answer with one call add up to."""

    custom: bool
    text: str
    complete: bool


def decoder() -> Decoder:
    return Decoder(SETUP, 0, TagMaker().parser(ParserSetup()))


def call_of(events: list[Event]) -> Call:
    starts = [event for event in events if isinstance(event, PartStart)]
    ends = [event for event in events if isinstance(event, PartEnd)]
    assert (len(starts), len(ends)) == (1, 1)
    texts = [event.text for event in events if isinstance(event, PartDelta)]
    assert all(texts), "no delta is empty"
    return Call(starts[0].custom, "".join(texts), ends[0].complete)


def ascii_call(tool: str, *, is_whole: bool = True) -> str:
    written = json.dumps({"input": PATCH})
    return f"<c>{tool}|{written}</c>" if is_whole else f"<c>{tool}|{written[:14]}"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_it_is_plain_text(size: int) -> None:
    ids = TOKENIZER.encode(ascii_call("f"))
    one = decoder()
    events: list[Event] = []
    for at in range(0, len(ids), size):
        events += one.push(ids[at : at + size])
    assert call_of(events + one.finish(EOS)) == Call(True, PATCH, True)


def test_a_function_keeps_its_json() -> None:
    one = decoder()
    events = one.push(TOKENIZER.encode(ascii_call("g"))) + one.finish(EOS)
    assert call_of(events) == Call(False, json.dumps({"input": PATCH}), True)


def test_one_that_was_cut_off_keeps_what_there_is() -> None:
    one = decoder()
    events = one.push(TOKENIZER.encode(ascii_call("f", is_whole=False))) + one.finish(EOS)
    assert call_of(events) == Call(True, "a\n", False)


def test_it_goes_on_from_any_token() -> None:
    ids = TOKENIZER.encode(ascii_call("f"))
    whole = decoder()
    wanted = [whole.push([id_]) for id_ in ids]
    end = whole.finish(EOS)
    for at in range(len(ids)):
        first, second = decoder(), decoder()
        first.push(ids[:at])
        state = msgspec.msgpack.encode(first.save())
        assert len(state) < 300
        second.restore(msgspec.msgpack.decode(state))
        assert [second.push([id_]) for id_ in ids[at:]] == wanted[at:]
        assert second.finish(EOS) == end
