"""Goldens: whole replies as files, driven both ways. UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue, Text, ToolSpec, Turn
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import (
    Failed,
    Finished,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.fold import fold
from tokenwire.core.testing.codec_compare import normal
from tokenwire.core.testing.codec_probe import forgive, reading
from tokenwire.core.wire import Stamp
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions

FOLDER = Path(__file__).with_name("golden")
STAMP = Stamp("req_1", 1_700_000_000.0, bytes(range(16)))
ASKED = Call("m", Dialogue((Turn("user", (Text("x"),)),)), output=Output(stream=True))
TOOLS = replace(ASKED, dialogue=replace(ASKED.dialogue, tools=(ToolSpec("get_tide"),)))
read = reading(ChatClient())
START, END = Started(9, 4, "0123456789abcdef" * 4), Usage(9, 5, 4, reasoning_tokens=2)


def part(kind, *pieces, choice=0, **start):
    deltas = (PartDelta(choice, piece) for piece in pieces)
    return (PartStart(choice, kind, **start), *deltas, PartEnd(choice))


TOKENS = (
    TokenLogprob(1, "潮", "潮".encode(), -0.25, (TokenLogprob(2, "波", "波".encode(), -1.5),)),
)
CASES = {
    "text": (ASKED, (*part("text", "Low ", "tide.\n"), Finished(0, "stop"), END)),
    "reasoning": (
        ASKED,
        (*part("reasoning", "2+2"), *part("text", "4"), Finished(0, "stop_sequence", "END"), END),
    ),
    "calls": (
        TOOLS,
        (
            *part("text", "I look.", "\n"),
            *part("tool_call", '{"port": ', '"Brest"}', name="get_tide"),
            *part("tool_call", name="get_tide", call_id="functions.get_tide:1"),
            Finished(0, "tool_calls"),
            END,
        ),
    ),
    "choices_logprobs": (
        replace(ASKED, output=Output(n=2, logprobs=1, stream=True)),
        (
            PartStart(1, "text"),
            Logprobs(1, TOKENS),
            PartDelta(1, "潮"),
            *part("text", "a"),
            Finished(0, "stop"),
            PartEnd(1),
            Finished(1, "length"),
            END,
        ),
    ),
    "failed": (
        ASKED,
        (PartStart(0, "text"), PartDelta(0, "par"), Failed(ErrorKind.OVERLOADED, "try later")),
    ),
}


def written(asked, events) -> bytes:
    reply = ChatCompletions().reply(asked, STAMP)
    return b"".join(reply.push(event) for event in (START, *events))


def golden(name: str, data: bytes) -> bytes:
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(data)
    return path.read_bytes()


def both_ways(name, asked, events):
    data = golden(name, written(asked, events))
    assert written(asked, events) == data
    got = fold(read(asked, [data[:100], data[100:]]), asked.output.n)
    losses = ChatCompletions.losses
    wanted = forgive(fold((START, *events), asked.output.n), got, losses)
    if wanted.failed is None:
        assert normal(wanted, losses) == normal(got, losses)
    else:
        assert got.failed == wanted.failed


@pytest.mark.parametrize("name", CASES)
def test_stream(name):
    both_ways(f"{name}.sse", *CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name != "failed"])
def test_unary(name):
    asked, events = CASES[name]
    both_ways(f"{name}.json", replace(asked, output=replace(asked.output, stream=False)), events)
