"""A dialogue whose oldest turns are left out, so that its prompt fits. Knows no protocol.

What stays, whatever its length: system and developer turns at the front, and the last question with
all that came after it. What an answer needs is kept free. A result never loses its call: turns are
left out up to a turn that begins something new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Turn
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.prompt import Prompt
from tokenwire.core.token_ids import TokenIds

__all__ = ("beginnings", "fitted")

ANSWER_TOKENS: Final = 1024
"""Kept free where the call does not say how long its answer may be; at most a quarter of all."""
FRONT: Final = ("system", "developer")


async def fitted(
    call: Call, prompt: Prompt, context: int, render: Callable[[Call], Awaitable[Prompt]]
) -> tuple[Call, Prompt]:
    """The call with as few turns left out as will do, and its prompt. As it was, where it fits or
    where nothing helps. What was left out is named among the ignored, as "input[:N]". A call that
    asks for the last tokens has no turn left out: its prompt is cut wherever that is."""
    room = context - min(call.stopping.max_tokens or ANSWER_TOKENS, context // 4)
    if call.last_tokens is not None:
        return call, _last(prompt, room if call.last_tokens < 0 else call.last_tokens)
    if not call.truncate or len(prompt.ids) <= room:
        return call, prompt
    turns = call.dialogue.turns
    front = _front(turns)
    starts = beginnings(turns)
    low, high = 0, len(starts)
    best: tuple[Call, Prompt] | None = None
    # Strategy: more turns left out never make a longer prompt, so halves are searched.
    while low < high:
        middle = (low + high) // 2
        start = starts[middle]
        kept = (*turns[:front], *turns[start:])
        shorter = replace(
            call,
            dialogue=replace(call.dialogue, turns=kept),
            ignored=(*call.ignored, f"input[:{start - front}]"),
        )
        tried = await render(shorter)
        if len(tried.ids) <= room:
            best, high = (shorter, tried), middle
        else:
            low = middle + 1
            if middle == len(starts) - 1 and len(tried.ids) < context:
                best = (shorter, tried)
    return best or (call, prompt)


def _last(prompt: Prompt, count: int) -> Prompt:
    """The prompt with its last `count` ids alone: what is known by place in it is no longer so."""
    if len(prompt.ids) <= count:
        return prompt
    if prompt.media:
        raise RequestError(
            f"a prompt with pictures has {len(prompt.ids)} tokens and cannot be cut to {count}",
            kind=ErrorKind.CONTEXT_LENGTH,
            param="truncate_prompt_tokens",
            code="context_length_exceeded",
        )
    ids = TokenIds(prompt.ids[-count:])
    return replace(prompt, ids=ids, spans=(), marks=(), history=None, trace=None)


def _front(turns: Sequence[Turn]) -> int:
    return next((k for k, turn in enumerate(turns) if turn.role not in FRONT), len(turns))


def beginnings(turns: Sequence[Turn]) -> tuple[int, ...]:
    """Where a shorter dialogue may begin, behind its front: at questions, up to the last one."""
    first = _front(turns) + 1
    return tuple(k for k in range(first, len(turns)) if turns[k].role == "user")
