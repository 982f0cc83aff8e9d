"""Whole replies as files, driven both ways; tests/goldens.py says how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import goldens
from tokenwire.core.call import Call, Output, RawPrompt
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
from tokenwire.core.fold import fold
from tokenwire.plugins.protocols.completions.client import CompletionsClient
from tokenwire.plugins.protocols.completions.codec import Completions
from tokenwire.plugins.protocols.completions.decode import NO_DIALOGUE

FOLDER = Path(__file__).with_name("golden")
ASKED = Call("m", NO_DIALOGUE, prompts=(RawPrompt("x"),), output=Output(stream=True))
END = Usage(9, 5, 4)


def part(*pieces, choice=0):
    return goldens.part("text", *pieces, choice=choice)


def token(data, value, *top):
    return TokenLogprob(1, data.decode("utf-8", "replace"), data, value, top)


SPLIT = (token(b"\xe6\xbd", -0.25, token(b"b", -1.5)), token(b"\xae", -0.5))
CASES = {
    "text": (ASKED, (*part("Low ", "tide.\n\u2028"), Finished(0, "stop"), END)),
    "stopped": (ASKED, (*part("a"), Finished(0, "stop_sequence", "END"), END)),
    "logprobs": (
        replace(ASKED, output=Output(logprobs=1, stream=True)),
        (
            PartStart(0, "text"),
            Logprobs(0, SPLIT),
            PartDelta(0, "潮"),
            PartEnd(0),
            Finished(0, "length"),
            END,
        ),
    ),
    "prompts": (
        replace(ASKED, prompts=(RawPrompt("a"), RawPrompt("b")), output=Output(n=2, stream=True)),
        (
            *part("3", choice=3),
            *part("0"),
            *part("2", choice=2),
            Finished(2, "stop"),
            Finished(0, "stop"),
            Finished(3, "length"),
            Finished(1, "stop"),
            END,
        ),
    ),
    "failed": (
        ASKED,
        (PartStart(0, "text"), PartDelta(0, "par"), Failed(ErrorKind.OVERLOADED, "try later")),
    ),
}


def both_ways(name, asked, events):
    goldens.both_ways(Completions(), CompletionsClient(), FOLDER / name, asked, events)


@pytest.mark.parametrize("name", CASES)
def test_stream(name):
    both_ways(f"{name}.sse", *CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name != "failed"])
def test_unary(name):
    asked, events = CASES[name]
    both_ways(f"{name}.json", replace(asked, output=replace(asked.output, stream=False)), events)


def test_the_best_candidates_are_sent():
    asked = replace(ASKED, output=Output(n=2, best_of=4))
    values = (-3.0, -1.0, -2.0, None)
    events = []
    for choice, value in enumerate(values):
        events.append(PartStart(choice, "text"))
        if value is not None:
            # The mean counts, not the sum.
            tokens = (token(b"a", value),) * (5 - choice)
            events += (Logprobs(choice, tokens), PartDelta(choice, str(choice)))
        events += (PartEnd(choice), Finished(choice, "stop"))
    body = CompletionsClient().reader(asked)
    body.push(goldens.written(Completions(), asked, (*events, END)))
    answer = fold(body.flush(), 2)
    assert [choice.parts[0].text for choice in answer.choices] == ["1", "2"]
    assert all(choice.logprobs is None for choice in answer.choices), "they were not asked for"
