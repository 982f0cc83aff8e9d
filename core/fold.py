"""A stream of events folded into a whole answer. There is no second path to a unary reply."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)

__all__ = ("Answer", "Choice", "Part", "fold")


class Part(Struct, frozen=True):
    """A whole part of a folded answer."""

    kind: PartKind
    text: str
    name: str = ""
    call_id: str | None = None
    custom: bool = False
    complete: bool = True


class Choice(Struct, frozen=True):
    """One folded choice."""

    parts: tuple[Part, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None
    reason: FinishReason | None = None
    matched: str | None = None


class Answer(Struct, frozen=True):
    """A folded stream. Exactly one of `usage` and `failed` is set on a whole one."""

    started: Started | None = None
    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    failed: Failed | None = None


def fold(events: Iterable[Event], choices: int = 1) -> Answer:
    """The answer that a stream adds up to; how its deltas were cut makes no difference."""
    started: Started | None = None
    usage: Usage | None = None
    failed: Failed | None = None
    parts: list[list[Part]] = [[] for _ in range(choices)]
    heads: list[PartStart | None] = [None] * choices
    texts: list[list[str]] = [[] for _ in range(choices)]
    logprobs: list[list[TokenLogprob] | None] = [None] * choices
    ends: list[Finished | None] = [None] * choices
    for event in events:
        match event:
            case Started():
                started = event
            case PartStart(choice):
                heads[choice] = event
                texts[choice] = []
            case PartDelta(choice, text):
                texts[choice].append(text)
            case PartEnd(choice, complete):
                head = heads[choice]
                assert head is not None
                part = Part(
                    head.kind,
                    "".join(texts[choice]),
                    name=head.name,
                    call_id=head.call_id,
                    custom=head.custom,
                    complete=complete,
                )
                parts[choice].append(part)
            case Logprobs(choice, tokens):
                logprobs[choice] = [*(logprobs[choice] or ()), *tokens]
            case Finished(choice):
                ends[choice] = event
            case Usage():
                usage = event
            case Failed():
                failed = event
    folded = tuple(
        Choice(
            parts=tuple(parts[k]),
            logprobs=None if logprobs[k] is None else tuple(logprobs[k] or ()),
            reason=end.reason if (end := ends[k]) else None,
            matched=end.matched if end else None,
        )
        for k in range(choices)
    )
    return Answer(started=started, choices=folded, usage=usage, failed=failed)
