"""The nine checks that hold for every case, whatever it is about.

Each is one function of what was played: it plays nothing itself, and raises AssertionError where
its law is broken. That one ending is all there is, is seen by whoever reads an answer (`Played`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.cases.message import Message
from tests.cases.official import official_clients
from tests.cases.played import MESSAGES, Played, compared
from tokenwire.core.testing.client import Response
from tokenwire.core.tokens import EngineStatus

__all__ = (
    "BROKEN",
    "append_only",
    "client_fault",
    "cut_invariance",
    "isolation",
    "mode_equality",
    "no_leak",
    "nothing_held",
    "official_clients",
    "one_ending",
    "round_trip",
)

BROKEN = "\ufffd"
SECRETS = ("Traceback", "/site-packages/", ".py")
HELD = 100
"""Characters that may be held back beside what the longest stop string holds: a marker, and the
name of a call with the first of its arguments."""


def cut_invariance(given: Played, cut: Played) -> None:
    """1: the same output cut in another way is the same message."""
    assert cut.status == given.status
    assert compared(cut) == compared(given)


def mode_equality(unary: Played, streamed: Played) -> None:
    """2: the fold of the stream is the unary body, to the number of tokens."""
    assert streamed.status == unary.status or streamed.message.error
    assert compared(streamed) == compared(unary)
    counts = [[choice.output_tokens for choice in each.choices] for each in (unary, streamed)]
    assert None in counts[1] or counts[0] == counts[1]


def append_only(sent: Sequence[Message], left: Sequence[int], stops: Collection[str] = ()) -> None:
    """3: what was sent at each moment goes on in what was sent at the next, the last being all.

    `left[k]`: how many bytes of the output were not made at moment k. What comes after it is no
    longer than they and what may be held back.
    """
    bound = HELD + max(map(len, stops), default=0)
    for one, other in pairwise(sent):
        assert _goes_on(one.reasoning, other.reasoning)
        assert _goes_on(one.content, other.content)
        assert len(one.calls) <= len(other.calls)
        for k, call in enumerate(one.calls):
            assert call.name == other.calls[k].name
            assert other.calls[k].arguments.startswith(call.arguments)
    for one, rest in zip(sent, left, strict=True):
        assert _size(sent[-1]) - _size(one) <= rest + bound, "too much was held back"


def _goes_on(one: str | None, other: str | None) -> bool:
    return (other or "").startswith(one or "")


def _size(message: Message) -> int:
    texts = (message.content, message.reasoning, *(call.arguments for call in message.calls))
    return sum(len(text or "") for text in texts)


def no_leak(response: Response, *hidden: str) -> None:
    """4: no text that nobody may see is in the bytes of an answer, nor in its headers."""
    text = response.body.decode() + "".join(response.headers.values())
    found = [secret for secret in (*SECRETS, *hidden) if secret and secret in text]
    assert not found, found


def one_ending(path: str, response: Response) -> Played:
    """5: one finish a choice, one terminal event, nothing after it; no fake ending of a failure."""
    return Played(path, response)


def round_trip(
    first: Sequence[int], answer: Played, second: Sequence[int] | None, note: str = ""
) -> None:
    """7: an answer that was sent back as history is accepted, and the ids of the question (`first`)
    begin the next prompt (`second`), unless a template's rule is named (`note`) that breaks it."""
    assert answer.status == 200, answer.response.body
    assert second is not None
    is_prefix = tuple(second[: len(first)]) == tuple(first)
    assert is_prefix or note.startswith("diverged"), note
    if note.startswith("diverged"):
        assert "where=" in note.replace("where=;", "")


def isolation(alone: Sequence[Played], together: Sequence[Played]) -> None:
    """8: requests that run at one time answer as each does by itself."""
    for one, other in zip(alone, together, strict=True):
        cut_invariance(one, other)


def nothing_held(statuses: Mapping[str, EngineStatus]) -> None:
    """8, too: nobody asks any more, so nothing runs, waits or keeps a block."""
    for model, status in statuses.items():
        assert (status.running, status.waiting) == (0, 0), model
        assert status.kv_blocks_free == status.kv_blocks_total, model


def client_fault(path: str, response: Response) -> None:
    """9: what a client sent is never the server's fault, and a refusal has its protocol's shape."""
    assert response.status < 500, response.body
    if response.status == 200:
        return
    assert response.headers["content-type"] == "application/json"
    body: Any = response.json()
    error = body["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    if path == MESSAGES:
        assert body["type"] == "error"
        assert set(error) >= {"type", "message"}
    else:
        assert set(error) >= {"type", "message", "param", "code"}
