"""What an answer says, whichever protocol and mode it came by: read strictly from its bytes.

Every rule of a stream that can be seen on the wire is asserted here: one ending, nothing after it,
one block open at a time, deltas that are never empty, ids and names that never change.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from msgspec import Struct

from tokenwire.core.testing.client import Response

__all__ = ("Call", "Message", "read_chat", "read_messages", "strict")


class Call(Struct, frozen=True):
    """One tool call; `arguments` as it was written."""

    name: str
    arguments: str


class Message(Struct, frozen=True):
    """One choice. `content` and `reasoning` are None where the answer has none."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    stop_sequence: str | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    logprobs: tuple[Any, ...] = ()
    error: Any = None


def strict(text: str | bytes) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(word: str) -> NoReturn:
    raise AssertionError(f"{word} is no JSON")


def read_chat(response: Response) -> list[Message]:
    """The choices of a chat completion, from either mode."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return _chat_stream(response)
    body = strict(response.body)
    if response.status != 200:
        return [Message(error=body["error"])]
    usage = body["usage"]
    return [
        Message(
            content=choice["message"]["content"],
            reasoning=choice["message"].get("reasoning_content"),
            calls=tuple(_chat_call(call) for call in choice["message"].get("tool_calls") or ()),
            finish=choice["finish_reason"],
            output_tokens=usage["completion_tokens"],
            prompt_tokens=usage["prompt_tokens"],
            logprobs=_entries(choice),
        )
        for choice in body["choices"]
    ]


def _chat_call(call: Any) -> Call:
    assert call["id"]
    assert call["type"] == "function"
    return Call(call["function"]["name"], call["function"]["arguments"])


def _entries(choice: Any) -> tuple[Any, ...]:
    return tuple((choice.get("logprobs") or {}).get("content") or ())


class _Folding:
    """One choice of a stream so far."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[str, str, list[str]]] = []
        self.finish: str | None = None
        self.logprobs: list[Any] = []

    def take(self, choice: Any) -> None:
        assert self.finish is None, "nothing comes after the finish of a choice"
        delta = dict(choice["delta"])
        self.logprobs += _entries(choice)
        self.finish = choice["finish_reason"]
        assert delta.pop("role", "assistant") == "assistant"
        if text := delta.pop("content", None):
            self.content.append(text)
        if text := delta.pop("reasoning_content", None):
            assert not self.content, "reasoning comes before the answer"
            self.reasoning.append(text)
        for call in delta.pop("tool_calls", ()):
            self._call(call)
        assert not delta, f"no other fields: {delta}"

    def _call(self, call: Any) -> None:
        index = call["index"]
        if index == len(self.calls):
            assert call["type"] == "function"
            name, first = call["function"]["name"], call["function"]["arguments"]
            assert call["id"]
            assert name
            assert call["id"] not in [id for id, _, _ in self.calls]
            self.calls.append((call["id"], name, [first]))
            return
        assert index == len(self.calls) - 1, "a call that has ended gets no more"
        assert set(call) == {"index", "function"}
        assert set(call["function"]) == {"arguments"}
        assert call["function"]["arguments"], "no delta is empty"
        self.calls[index][2].append(call["function"]["arguments"])

    def message(self, usage: Any, error: Any) -> Message:
        calls = tuple(Call(name, "".join(parts)) for _, name, parts in self.calls)
        return Message(
            content="".join(self.content) if self.content or not calls else None,
            reasoning="".join(self.reasoning) if self.reasoning else None,
            calls=calls,
            finish=self.finish,
            output_tokens=usage["completion_tokens"] if usage else None,
            prompt_tokens=usage["prompt_tokens"] if usage else None,
            logprobs=tuple(self.logprobs),
            error=error,
        )


def _chat_stream(response: Response) -> list[Message]:
    assert response.status == 200
    events = [event for event in response.events() if event.comment is None]
    choices: dict[int, _Folding] = {}
    usage = error = None
    common = None
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
        shared = {key: chunk[key] for key in ("id", "object", "created", "model")}
        assert common in (None, shared), "what names the stream never changes"
        common = shared
        assert usage is None, "usage comes last"
        usage = chunk.get("usage")
        assert not (usage and chunk["choices"])
        for choice in chunk["choices"]:
            assert (choice["delta"] == {}) == (choice["finish_reason"] is not None)
            choices.setdefault(choice["index"], _Folding()).take(choice)
    if error is None:
        assert events[-1].data == "[DONE]"
        assert all(folding.finish for folding in choices.values())
    else:
        assert not any(folding.finish for folding in choices.values()), "no fake ending"
    assert list(choices) == sorted(choices)
    return [folding.message(usage, error) for folding in choices.values()]


def read_messages(response: Response) -> list[Message]:
    """The one choice of a Messages answer, from either mode."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return [_messages_stream(response)]
    body = strict(response.body)
    if response.status != 200:
        assert body["type"] == "error"
        return [Message(error=body["error"])]
    return [_message(body["content"], body, None)]


DELTAS = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}
FIELDS = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}


def _messages_stream(response: Response) -> Message:
    assert response.status == 200
    events = [event for event in response.events() if event.comment is None]
    blocks: list[Any] = []
    parts: list[str] = []
    is_open = False
    ending: Any = None
    start: Any = None
    error: Any = None
    for event in events:
        data = strict(event.data)
        kind = data["type"]
        assert kind == event.event
        assert error is None, "nothing comes after an error"
        match kind:
            case "message_start":
                assert start is None, "one message_start"
                start = data["message"]
                assert start["stop_reason"] is None
                assert start["stop_sequence"] is None
                assert start["content"] == []
            case "content_block_start":
                assert start is not None
                assert not is_open
                assert ending is None
                assert data["index"] == len(blocks)
                is_open, parts = True, []
                blocks.append(dict(data["content_block"]))
                if blocks[-1]["type"] == "tool_use":
                    assert blocks[-1]["input"] == {}
            case "content_block_delta":
                assert is_open
                assert data["index"] == len(blocks) - 1
                _delta(blocks[-1], data["delta"], parts)
            case "content_block_stop":
                assert is_open
                assert data["index"] == len(blocks) - 1
                is_open = False
                _close(blocks[-1], parts)
            case "message_delta":
                assert not is_open
                assert ending is None, "one ending"
                ending = {**data["delta"], "usage": data["usage"]}
            case "message_stop":
                assert ending is not None
                assert event is events[-1]
            case "error":
                error = data["error"]
                assert ending is None
            case _:
                assert kind == "ping"
    if error is not None:
        if is_open:
            _close(blocks[-1], parts)
        return _message(blocks, {"usage": {}}, error)
    assert events[-1].event == "message_stop"
    return _message(blocks, ending, None)


def _delta(block: Any, delta: Any, parts: list[str]) -> None:
    assert "signature" not in block or not block["signature"], "the signature is the last"
    if delta["type"] == "signature_delta":
        assert block["type"] == "thinking"
        assert delta["signature"]
        block["signature"] = delta["signature"]
        return
    assert delta["type"] == DELTAS[block["type"]]
    parts.append(delta[FIELDS[block["type"]]])


def _close(block: Any, parts: list[str]) -> None:
    text = "".join(parts)
    if block["type"] == "tool_use":
        block["written"] = text
    else:
        block[block["type"]] += text


def _written(block: Any, *, is_whole: bool) -> str:
    """Clients take a call of which nothing was written to have no arguments, once it is whole."""
    written: str | None = block.get("written")
    return written if written or (written == "" and not is_whole) else json.dumps(block["input"])


def _message(blocks: list[Any], ending: Any, error: Any) -> Message:
    """A unary `input` has been parsed: it is written out again, and calls compared as parsed."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    thoughts = [block for block in blocks if block["type"] == "thinking"]
    assert error or all(block["signature"] for block in thoughts)
    usage = ending["usage"]
    cached = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Message(
        content="".join(texts) if texts else None,
        reasoning="".join(block["thinking"] for block in thoughts) if thoughts else None,
        calls=tuple(
            Call(block["name"], _written(block, is_whole=error is None))
            for block in blocks
            if block["type"] == "tool_use"
        ),
        finish=ending.get("stop_reason"),
        stop_sequence=ending.get("stop_sequence"),
        output_tokens=usage.get("output_tokens"),
        prompt_tokens=sum(usage.get(key) or 0 for key in cached) if usage else None,
        error=error,
    )
