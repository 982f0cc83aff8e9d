"""Whole replies as files, driven both ways; tests/goldens.py says how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import goldens
from tests.goldens import part
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
    TokenLogprob,
    Usage,
)
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions

FOLDER = Path(__file__).with_name("golden")
ASKED = Call("m", Dialogue((Turn("user", (Text("x"),)),)), output=Output(stream=True))
TOOLS = replace(ASKED, dialogue=replace(ASKED.dialogue, tools=(ToolSpec("get_tide"),)))
END = Usage(9, 5, 4, reasoning_tokens=2)


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


def both_ways(name, asked, events):
    goldens.both_ways(ChatCompletions(), ChatClient(), FOLDER / name, asked, events)


@pytest.mark.parametrize("name", CASES)
def test_stream(name):
    both_ways(f"{name}.sse", *CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name != "failed"])
def test_unary(name):
    asked, events = CASES[name]
    both_ways(f"{name}.json", replace(asked, output=replace(asked.output, stream=False)), events)
