"""From deltas to events: any cutting, any save point, overlaps, gaps, stops, counts, logprobs."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.tag_parser import TagMaker
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import Event, Failed, Logprobs, Order, PartDelta
from tokenwire.core.factory import Services
from tokenwire.core.fold import fold
from tokenwire.core.generation import Generation
from tokenwire.core.host import Host
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.signing import Keyring
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    IdLogprobs,
    TokenDelta,
)

TOKENIZER = Host().tokenizers.build("bytes", {}, Services(Keyring([b"k" * 32])))
PIECES = PieceTable(TOKENIZER)
EOS = Finish(FinishKind.STOP, FinishCause.EOS)
TEXTS = st.lists(
    st.sampled_from(
        ["<r>", "</r>", "<c>f|", "</c>", "a", "bc", " STOP", "ST", "é", "🌊", "\n", "<", "{}"]
    ),
    max_size=10,
).map("".join)


def make(n: int = 1, **setup: object) -> Generation:
    shared = DecoderSetup(tokenizer=TOKENIZER, pieces=PIECES, **setup)  # type: ignore[arg-type]
    maker = TagMaker()
    return Generation(
        [Decoder(shared, k, maker.parser(ParserSetup(choice=k))) for k in range(n)], "f"
    )


def logprobs_of(ids: TokenIds) -> tuple[IdLogprobs, ...]:
    return tuple(IdLogprobs(id, -float(id)) for id in ids)


def deltas(
    text: str, sizes: list[int], finish: Finish = EOS, *, choice: int = 0, logprobs: bool = False
) -> list[TokenDelta]:
    ids = TOKENIZER.encode(text)
    out: list[TokenDelta] = []
    at = 0
    for size in itertools.cycle(sizes or [1]):
        run = TokenIds(ids[at : at + size])
        out.append(
            TokenDelta(
                "j",
                at=at,
                choice=choice,
                ids=run,
                counts=Counts(prompt=3) if at == 0 else None,
                logprobs=logprobs_of(run) if logprobs else (),
            )
        )
        at += size
        if at >= len(ids):
            break
    return [*out, TokenDelta("j", at=len(ids), choice=choice, finish=finish)]


def play(generation: Generation, stream: list[TokenDelta], choices: int = 1) -> list[Event]:
    events = [event for delta in stream for event in generation.push(delta)]
    order = Order(choices)
    for event in events:
        order.step(event)
    assert order.is_over == generation.is_over
    return events


SIZES = st.lists(st.integers(1, 6), max_size=5)


@given(TEXTS, SIZES, st.sampled_from([(), ("STOP",), ("a", "bca")]))
def test_any_cutting_gives_the_same_answer(
    text: str, sizes: list[int], stops: tuple[str, ...]
) -> None:
    whole = fold(play(make(stops=stops), deltas(text, [1000])))
    cut = fold(play(make(stops=stops), deltas(text, sizes)))
    assert cut == whole


@given(TEXTS, st.booleans())
def test_a_generation_can_be_saved_after_any_id(text: str, logprobs: bool) -> None:
    setup = {"stops": ("STOP",), "logprobs": logprobs}
    stream = deltas(text, [1], logprobs=logprobs)
    expected = play(make(**setup), stream)  # type: ignore[arg-type]
    generation, events = make(**setup), []  # type: ignore[arg-type]
    for delta in stream:
        events += generation.push(delta)
        if generation.is_over:
            break
        blob = msgspec.msgpack.encode(generation.save())
        assert len(blob) < 1024
        generation = make(**setup)  # type: ignore[arg-type]
        generation.restore(msgspec.msgpack.decode(blob))
    assert events == expected
    assert generation.usage == expected[-1]


def test_the_state_is_flat_in_the_length_of_the_answer() -> None:
    def size(length: int) -> int:
        generation = make(logprobs=True)
        for delta in deltas("<r>" + "ab " * length, [1], logprobs=True)[:-1]:
            generation.push(delta)
        return len(msgspec.msgpack.encode(generation.save()))

    assert size(500) <= size(5) + 24


@given(TEXTS, st.data())
def test_overlaps_are_trimmed(text: str, data: st.DataObject) -> None:
    stream = deltas(text, [2])
    expected = fold(play(make(), stream))
    ids = TOKENIZER.encode(text)
    doubled: list[TokenDelta] = []
    for delta in stream:
        back = data.draw(st.integers(0, delta.at))
        doubled.append(
            TokenDelta(
                "j",
                at=delta.at - back,
                ids=TokenIds(ids[delta.at - back : delta.at + len(delta.ids)]),
                counts=delta.counts,
                finish=delta.finish,
            )
        )
    assert fold(play(make(), doubled)) == expected


def test_an_overlap_with_other_ids_fails() -> None:
    generation = make()
    play(generation, [TokenDelta("j", ids=TOKENIZER.encode("abc"))])
    events = generation.push(TokenDelta("j", at=1, ids=TOKENIZER.encode("xcd")))
    assert isinstance(events[-1], Failed)


def test_a_gap_fails_and_nothing_comes_after() -> None:
    generation = make()
    events = play(generation, [*deltas("abc", [1])[:2], TokenDelta("j", at=5, ids=TokenIds((97,)))])
    assert isinstance(events[-1], Failed)
    assert events[-1].kind is ErrorKind.INTERNAL
    assert generation.failed_finish is not None
    assert "at 5 with 1 ids does not go on from the 2" in generation.failed_finish.message
    assert generation.push(TokenDelta("j", at=2, finish=EOS)) == []


def test_choices_interleave_and_each_is_as_alone() -> None:
    texts = ["<r>t</r>a", "b STOP c", "<c>f|{}</c>"]
    alone = [fold(play(make(stops=("STOP",)), deltas(text, [1]))).choices[0] for text in texts]
    streams = [deltas(text, [1], choice=k) for k, text in enumerate(texts)]
    mixed = [d for group in itertools.zip_longest(*streams) for d in group if d is not None]
    answer = fold(play(make(3, stops=("STOP",)), mixed, 3), 3)
    assert list(answer.choices) == alone
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 3
    assert answer.usage.completion_tokens == len(texts[0]) + len("b STOP") + len(texts[2])
    assert answer.usage.reasoning_tokens == len("t</r>")


REASONS = [
    (FinishKind.STOP, FinishCause.EOS, "a", "stop"),
    (FinishKind.STOP, FinishCause.EOS, "<c>f|{}</c>", "tool_calls"),
    (FinishKind.LENGTH, FinishCause.MAX, "<c>f|{}</c>", "length"),
    (FinishKind.LENGTH, FinishCause.MAX, "<c>f|{", "length"),
    (FinishKind.LENGTH, FinishCause.CONTEXT, "a", "context_length"),
    (FinishKind.STOP, FinishCause.EOS, "<c>f|{", "stop"),
    (FinishKind.ABORT, FinishCause.CLIENT, "a", "cancelled"),
]


@pytest.mark.parametrize(("kind", "cause", "text", "reason"), REASONS)
def test_reasons(kind: FinishKind, cause: FinishCause, text: str, reason: str) -> None:
    answer = fold(play(make(), deltas(text, [1], Finish(kind, cause))))
    assert answer.choices[0].reason == reason
    if text == "<c>f|{":
        part = answer.choices[0].parts[0]
        assert (part.text, part.complete) == ("{", False)


FAILURES = [
    (FinishCause.LOST, ErrorKind.UNAVAILABLE),
    (FinishCause.OVERLOADED, ErrorKind.OVERLOADED),
    (FinishCause.REFUSED, ErrorKind.INVALID_REQUEST),
    (FinishCause.CONTEXT_LENGTH, ErrorKind.CONTEXT_LENGTH),
    (FinishCause("a_new_one"), ErrorKind.INTERNAL),
]


@pytest.mark.parametrize(("cause", "kind"), FAILURES)
def test_errors_tell_nothing_of_the_engine(cause: FinishCause, kind: ErrorKind) -> None:
    finish = Finish(FinishKind.ERROR, cause, message="CUDA error in /secret/path")
    failed = play(make(), deltas("ab", [1], finish))[-1]
    assert isinstance(failed, Failed)
    assert failed.kind is kind
    assert "secret" not in failed.message


def test_an_end_of_an_unknown_kind_is_a_failure() -> None:
    finish = Finish(FinishKind("melted"), FinishCause("hot"))
    assert isinstance(play(make(), deltas("ab", [1], finish))[-1], Failed)


def test_a_second_call_is_not_made_where_one_is_allowed() -> None:
    text = "<c>f|{}</c><c>g|{}</c>rest"
    generation = make(parallel_calls=False)
    answer = fold(play(generation, deltas(text, [1])))
    assert [part.name for part in answer.choices[0].parts] == ["f"]
    assert answer.choices[0].reason == "tool_calls"


def test_a_stop_inside_reasoning_or_arguments_is_no_stop() -> None:
    text = "<r>STOP</r>a<c>f|STOP</c>b STOP c"
    answer = fold(play(make(stops=("STOP",)), deltas(text, [1])))
    assert [part.text for part in answer.choices[0].parts] == ["STOP", "a", "STOP", "b "]
    assert answer.choices[0].matched == "STOP"


def test_a_stop_string_that_is_one_special_token_ends_by_its_id() -> None:
    finish = Finish(FinishKind.STOP, FinishCause.ID, TokenIds((7,)))
    answer = fold(play(make(stop_spellings={7: "<end>"}), deltas("ab", [1], finish)))
    assert answer.choices[0].reason == "stop_sequence"
    assert answer.choices[0].matched == "<end>"


# --- logprobs ------------------------------------------------------------------------------------


def visible(events: list[Event]) -> tuple[str, bytes]:
    text = "".join(part.text for part in fold(events).choices[0].parts if part.kind == "text")
    spelled = b"".join(
        token.bytes for event in events if isinstance(event, Logprobs) for token in event.tokens
    )
    return text, spelled


@given(TEXTS, SIZES, st.sampled_from([(), ("STOP",)]))
def test_logprobs_are_of_the_visible_text_and_no_more(
    text: str, sizes: list[int], stops: tuple[str, ...]
) -> None:
    stream = deltas(text, sizes, logprobs=True)
    events = play(make(stops=stops, logprobs=True), stream)
    shown, spelled = visible(events)
    assert spelled.decode() == shown


def test_logprobs_come_before_the_text_they_belong_to() -> None:
    events = play(make(stops=("STOP",), logprobs=True), deltas("aSTb🌊c", [1], logprobs=True))
    sent = 0
    for event in events:
        if isinstance(event, Logprobs):
            sent += sum(len(token.bytes) for token in event.tokens)
        elif isinstance(event, PartDelta):
            sent -= len(event.text.encode())
            assert sent == 0, "a delta carries its tokens' entries, all of them, and no others"
