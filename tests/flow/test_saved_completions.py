"""Answers to several raw prompts, saved after any delta and restored in fresh machines: the same
bytes. With an echo and log probabilities, as text and as ids."""

from __future__ import annotations

import random
from math import nan

import pytest
from msgspec.structs import replace

from tokenwire.core import answer_state
from tokenwire.core.call import Call, Output, RawPrompt, Stopping
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import CodecStateError, ErrorKind
from tokenwire.core.events import Failed, Logprobs, PartDelta, Started, Usage
from tokenwire.core.fold import fold
from tokenwire.core.generation import Generation
from tokenwire.core.host import Host, lone_services
from tokenwire.core.jobs import JobBuilder, Planned
from tokenwire.core.ports.codec import Reply
from tokenwire.core.prompt import Prompt
from tokenwire.core.raw_calls import RawCalls
from tokenwire.core.raw_prompts import RawPrompts
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    IdLogprobs,
    TokenDelta,
    TokenJob,
)
from tokenwire.core.wire import Stamp

STAMP = Stamp("req_1", 1_700_000_000.0, b"e" * 16)
HOST = Host()
SERVICES = lone_services()
TOKENIZER = HOST.tokenizers.build("bytes", {}, SERVICES)
PLAIN = HOST.parsers.build("plain", {}, SERVICES)
EOS = Finish(FinishKind.STOP, FinishCause.EOS)
PROMPTS = ("a潮", "b")
ANSWERS = ("one 🌊", "two ST", "", "x STOP y")
RAW = RawCalls(
    model="m",
    tokenizer=TOKENIZER,
    parser=PLAIN,
    jobs=JobBuilder("m", TOKENIZER, PLAIN, defaults={}),
    texts=RawPrompts(TOKENIZER, model="m", fingerprint="fp"),
)


def asked(*, stream: bool, ids: bool = False, most: int = 50) -> Call:
    return Call(
        "m",
        Dialogue(()),
        stopping=Stopping(max_tokens=most, strings=() if ids else ("STOP",)),
        output=Output(
            n=2, ids=ids, logprobs=1, prompt_logprobs=1, echo=not ids, stream=stream, usage=True
        ),
        prompts=tuple(map(RawPrompt, PROMPTS)),
    )


def prompts(call: Call) -> tuple[Prompt, ...]:
    return tuple(RAW.texts.prompt(raw, TOKENIZER.encode(raw.text)) for raw in call.prompts)


def machines(call: Call) -> tuple[Generation, Reply]:
    planned = Planned(TokenJob("j", "m", TokenIds((1,))), stop_strings=call.stopping.strings)
    codec = HOST.codecs.build("completions", {}, SERVICES)
    return RAW.generation(call, prompts(call), planned), codec.reply(call, STAMP)


def deltas(seed: int) -> list[TokenDelta]:
    """Each choice's in their order, the choices mixed."""
    chance = random.Random(seed)
    left = {choice: own(choice) for choice in range(len(ANSWERS))}
    out = []
    while left:
        choice = chance.choice(sorted(left))
        out.append(left[choice].pop(0))
        if not left[choice]:
            del left[choice]
    return out


def own(choice: int) -> list[TokenDelta]:
    prompt = TOKENIZER.encode(PROMPTS[choice // 2])
    scored = (None, *(IdLogprobs(id_, -0.1, top=((id_, -0.1),)) for id_ in prompt[1:]))
    counts = Counts(prompt=len(prompt), cached=choice // 2)
    ids = TOKENIZER.encode(ANSWERS[choice])
    each = [
        TokenDelta(
            "j",
            at=at,
            choice=choice,
            ids=TokenIds((id_,)),
            logprobs=(IdLogprobs(id_, -0.5, top=((id_, -0.5), (65, -2.0))),),
        )
        for at, id_ in enumerate(ids)
    ]
    each.append(TokenDelta("j", at=len(ids), choice=choice, finish=EOS))
    each[0] = replace(each[0], counts=counts, prompt_logprobs=scored)
    return each


def played(call: Call, seed: int, *, saved: bool) -> bytes:
    generation, reply = machines(call)
    out = b""
    for delta in deltas(seed):
        for event in generation.push(delta):
            out += reply.push(event)
        if saved and not generation.is_over:
            blob = answer_state.save(generation, reply, "fp")
            generation, reply = machines(call)
            answer_state.restore(blob, generation, reply, "fp")
    assert generation.is_over
    return out


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_save_anywhere_changes_nothing(stream: bool, seed: int) -> None:
    call = asked(stream=stream)
    assert played(call, seed, saved=True) == played(call, seed, saved=False)


@pytest.mark.parametrize("seed", range(6))
def test_whose_answer_is_whose_does_not_depend_on_their_order(seed: int) -> None:
    call = asked(stream=True)
    generation, _ = machines(call)
    events = [event for delta in deltas(seed) for event in generation.push(delta)]
    assert isinstance(events[0], Started)
    answer = fold(events, 4)
    texts = ["".join(part.text for part in choice.parts) for choice in answer.choices]
    assert texts == ["a潮one 🌊", "a潮two ST", "b", "bx "]
    assert answer.choices[3].matched == "STOP"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.cached_tokens) == (5, 1)
    first = answer.choices[0].logprobs
    assert first is not None
    assert [token.id for token in first[:4]] == [97, 0xE6, 0xBD, 0xAE]
    assert first[0].logprob != first[0].logprob, "the first has none"


def test_ids_alone() -> None:
    call = asked(stream=True, ids=True)
    generation, _ = machines(call)
    events = [event for delta in deltas(1) for event in generation.push(delta)]
    assert not any(isinstance(event, PartDelta) for event in events)
    found: dict[int, list[int]] = {}
    for event in events:
        if isinstance(event, Logprobs):
            found.setdefault(event.choice, []).extend(token.id for token in event.tokens)
    for choice, text in enumerate(ANSWERS):
        assert found.get(choice, []) == TOKENIZER.encode(text).tolist()
    assert isinstance(events[-1], Usage)
    assert events[-1].completion_tokens == sum(len(text.encode()) for text in ANSWERS)


def test_a_call_that_wants_no_tokens_gets_none() -> None:
    call = asked(stream=True, most=0)
    generation, _ = machines(call)
    answer = fold([event for delta in deltas(2) for event in generation.push(delta)], 4)
    assert [choice.parts[0].text for choice in answer.choices] == ["a潮", "a潮", "b", "b"]
    assert {choice.reason for choice in answer.choices} == {"length"}
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 0


def test_a_unary_reply_takes_no_failure() -> None:
    _, reply = machines(asked(stream=False))
    reply.push(Started(1))
    with pytest.raises(CodecStateError):
        reply.push(Failed(ErrorKind.INTERNAL, "x"))


def test_an_id_without_a_value_is_not_a_number() -> None:
    call = asked(stream=True, ids=True)
    generation, _ = machines(call)
    (_, event) = generation.push(TokenDelta("j", ids=TokenIds((7,)), counts=Counts(prompt=1)))
    assert isinstance(event, Logprobs)
    assert event.tokens[0].id == 7
    assert repr(event.tokens[0].logprob) == repr(nan)
