"""What an answer of Completions says, in either mode: read strictly from its bytes."""

from __future__ import annotations

from typing import Any

from tests.cases.message import Message, strict
from tokenwire.core.testing.client import Response

__all__ = ("read_completions",)

SHARED = ("id", "object", "created", "model")


def read_completions(response: Response) -> list[Message]:
    """The choices."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return _stream(response)
    body = strict(response.body)
    if response.status != 200:
        return [Message(error=body["error"])]
    choices = [_Folding() for _ in body["choices"]]
    for choice in body["choices"]:
        choices[choice["index"]].take(choice)
    return [folding.message(body["usage"], None) for folding in choices]


class _Folding:
    """One choice so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.finish: str | None = None
        self.logprobs: list[Any] = []

    def take(self, choice: Any) -> None:
        assert self.finish is None, "nothing comes after the finish of a choice"
        assert set(choice) - {"stop_reason"} == {"index", "text", "logprobs", "finish_reason"}
        self.text.append(choice["text"])
        self.finish = choice["finish_reason"]
        self.logprobs.append(choice["logprobs"])

    def message(self, usage: Any, error: Any) -> Message:
        return Message(
            content="".join(self.text),
            finish=self.finish,
            output_tokens=usage["completion_tokens"] if usage else None,
            prompt_tokens=usage["prompt_tokens"] if usage else None,
            logprobs=tuple(entry for entry in self.logprobs if entry),
            error=error,
        )


def _stream(response: Response) -> list[Message]:
    assert response.status == 200
    events = [event for event in response.events() if event.comment is None]
    choices: dict[int, _Folding] = {}
    usage = error = common = None
    for event in events:
        assert error is None, "nothing comes after an error"
        assert not event.event
        if event.data == "[DONE]":
            assert event is events[-1]
            break
        chunk = strict(event.data)
        if "error" in chunk:
            error = chunk["error"]
            continue
        shared = {key: chunk[key] for key in SHARED}
        assert common in (None, shared), "what names the stream never changes"
        common = shared
        assert usage is None, "usage comes last"
        usage = chunk.get("usage")
        assert not (usage and chunk["choices"])
        for choice in chunk["choices"]:
            assert choice["text"] or choice["finish_reason"], "no chunk is empty but the last"
            choices.setdefault(choice["index"], _Folding()).take(choice)
    if error is None:
        assert events[-1].data == "[DONE]"
        assert all(folding.finish for folding in choices.values())
    else:
        assert not any(folding.finish for folding in choices.values()), "no fake ending"
    found = [choices[index] for index in sorted(choices)] or [_Folding()]
    return [folding.message(usage, error) for folding in found]
