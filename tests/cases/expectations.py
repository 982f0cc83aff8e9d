"""What a shared case expects, field by field, as assertions about its answers.

Argues its length: one table, and a function for each field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.cases.message import Message
from tests.cases.shared import asked
from tests.cases.stage import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Played, Stage
from tokenwire.core.prompt import Prompt

__all__ = ("EXPECT", "Answered")


class Answered:
    """The answers on one protocol: one a body."""

    def __init__(
        self,
        stage: Stage,
        path: str,
        answers: list[Played],
        case: Any,
        bodies: list[dict[str, Any]],
    ) -> None:
        self.path, self.answers, self.case = path, answers, case
        self.bodies = bodies
        self._stage = stage

    def play(self, body: dict[str, Any]) -> Played:
        """Another request."""
        return self._stage.play(self.path, body)

    @property
    def message(self) -> Message:
        """Of the first answer."""
        return self.answers[0].message

    @property
    def prompt(self) -> str:
        return self.prompts()[0].text

    def prompts(self) -> list[Prompt]:
        """Of the requests that were not refused."""
        served = [answer.response for answer in self.answers if answer.status == 200]
        return [self._stage.prompt(response) for response in served]

    def other(self, body: dict[str, Any]) -> Prompt:
        """The prompt of another request."""
        return self._stage.prompt(self._stage.play(self.path, body).response)

    def stream(self) -> list[Any]:
        """The first body again, as a stream: the data of its events."""
        script = self.case.get("model_output")
        asked = self.bodies[0] | {"stream": True}
        events = self._stage.play(self.path, asked, script).response.events()
        return [json.loads(event.data) for event in events if event.data not in ("", "[DONE]")]


FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _finish(at: Answered, wanted: str) -> None:
    for answer in at.answers:
        got = answer.message.finish
        if at.path in (CHAT, COMPLETIONS):
            assert got == wanted
        elif at.path == RESPONSES:
            assert got == ("incomplete" if wanted == "length" else "completed")
        elif answer.message.stop_sequence:
            assert (got, wanted) == ("stop_sequence", "stop")
        else:
            assert got == FINISHES[wanted]


def _content(at: Answered, wanted: str | None) -> None:
    assert (at.message.content or None) == wanted


def _calls(at: Answered, wanted: list[Any]) -> None:
    assert len(at.message.calls) == len(wanted)
    for call, want in zip(at.message.calls, wanted, strict=True):
        assert call.name == want["name"]
        if "arguments_json" in want:
            assert json.loads(call.arguments) == want["arguments_json"]
        if "arguments" in want:
            assert call.arguments == want["arguments"]
        assert want.get("arguments_contains", "") in call.arguments


def _events(at: Answered, wanted: list[str]) -> None:
    """`X*` one or more of them."""
    got: list[str] = []
    for event in at.stream():
        name = _event_name(event)
        if name + "*" in wanted:
            name += "*"
        if "*" in name and got[-1:] == [name]:
            continue
        if event["type"] != "ping":
            got.append(name)
    assert got == wanted


def _event_name(event: Any) -> str:
    match event:
        case {"type": "content_block_start"}:
            return f"content_block_start:{event['content_block']['type']}:{event['index']}"
        case {"type": "content_block_delta"}:
            star = "*" if event["delta"]["type"] != "signature_delta" else ""
            return f"content_block_delta{star}:{event['delta']['type']}:{event['index']}"
        case {"type": "content_block_stop"}:
            return f"content_block_stop:{event['index']}"
        case {"type": "message_delta"}:
            return f"message_delta:{event['delta']['stop_reason']}"
        case _:
            return str(event["type"])


def _status(at: Answered, wanted: int | str) -> None:
    if isinstance(wanted, str):
        assert [answer.message.finish for answer in at.answers] == [wanted] * len(at.answers)
        return
    assert [answer.status for answer in at.answers] == [wanted] * len(at.answers)


def _statuses(at: Answered, wanted: list[int]) -> None:
    given = list(at.case["input"]["variants"])
    kept = [
        status
        for body, status in zip(given, wanted, strict=True)
        if asked(at.path, body, at.case) is not None
    ]
    assert [answer.status for answer in at.answers] == kept


def _response_events(at: Answered, wanted: list[str]) -> None:
    """What goes on inside of a reasoning item stands in no case."""
    got: list[str] = []
    thoughts = set()
    for event in at.stream():
        kind, index = event["type"], event.get("output_index")
        name = kind.removeprefix("response.") if index is not None else kind
        if name.startswith("output_item"):
            item = event["item"]["type"]
            thoughts |= {index} if item == "reasoning" else set()
            name += f":{index}:{item}" if name.endswith("added") else f":{index}"
        elif index in thoughts:
            continue
        elif name.endswith(".delta"):
            name += "*"
            if got[-1:] == [name]:
                continue
        got.append(name)
    assert got == wanted


def _item_statuses(at: Answered, wanted: list[str]) -> None:
    got = [event["item"]["status"] for event in at.stream() if "item" in event]
    assert got == wanted


def _offsets(at: Answered, wanted: bool) -> None:
    for answer in at.answers:
        offsets = [o for entry in answer.message.logprobs for o in entry["text_offset"]]
        assert offsets
        assert (offsets == sorted(offsets)) is wanted


def _tool_deltas_have(at: Answered, wanted: list[str]) -> None:
    deltas = [
        call
        for chunk in at.stream()
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert len(deltas) > 1
    assert all(set(wanted) <= set(delta) for delta in deltas)


def _ids_match(at: Answered, wanted: str) -> None:
    body = _body(at)
    ids = [block["id"] for block in body["content"] if block["type"] == "tool_use"]
    assert ids
    assert all(re.fullmatch(wanted, id_) for id_ in ids)
    assert body["id"].startswith("msg_")


def _numbers(at: Answered, wanted: str) -> None:
    assert wanted == "0..n-1"
    got = [event["sequence_number"] for event in at.stream()]
    assert got == list(range(len(got)))


def _stream_error(at: Answered) -> Any:
    last = at.stream()[-1]
    return last["response"]["error"] if at.path == RESPONSES else last["error"]


def _body(at: Answered) -> Any:
    return at.answers[0].response.json()


def _in_order(at: Answered, wanted: list[str]) -> None:
    text, place = at.prompt, 0
    for part in wanted:
        place = text.index(part, place) + len(part)


def _all_in(text: str | None, parts: list[str]) -> None:
    assert all(part in (text or "") for part in parts)


def _none_in(text: str | None, parts: list[str]) -> None:
    assert not [part for part in parts if part in (text or "")]


def _usage(at: Answered, wanted: Any) -> None:
    for answer in at.answers:
        assert answer.message.output_tokens == wanted["completion_tokens"]


def _bytes_concat(at: Answered, wanted: str) -> None:
    data = b"".join(bytes(entry["bytes"]) for entry in at.message.logprobs)
    assert data.decode() == wanted


def _empty_choices(at: Answered, wanted: list[int]) -> None:
    got = []
    for answer in at.answers:
        chunks = [e.data for e in answer.response.events() if e.data not in ("", "[DONE]")]
        got.append(sum(json.loads(chunk)["choices"] == [] for chunk in chunks))
    assert got == wanted


def _steps(at: Answered, wanted: list[str]) -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in at.stream()]
    assert [delta["content"] for delta in deltas if delta.get("content")] == wanted


def _chunks_have(at: Answered, wanted: list[str]) -> None:
    assert all(set(wanted) <= set(chunk) for chunk in at.stream())


def _chunks_share(at: Answered, wanted: list[str]) -> None:
    chunks = at.stream()
    assert all(len({chunk[key] for chunk in chunks}) == 1 for key in wanted)


def _start_tokens(at: Answered, least: int) -> None:
    assert at.stream()[0]["message"]["usage"]["input_tokens"] >= least


def _blocks_have(at: Answered, wanted: Any) -> None:
    for block in at.answers[0].response.json()["content"]:  # type: ignore[index,call-overload]
        assert all(block[key] for key in wanted.get(block["type"], ()))


def _without_tools(at: Answered, wanted: bool) -> None:
    plain = {"model": "hermes", "messages": [{"role": "user", "content": "x"}]}
    assert at.path == CHAT
    prompt = at.other(plain).ids
    assert all(other.ids == prompt for other in at.prompts())


def _least(at: Answered, wanted: float) -> None:
    if at.path == COMPLETIONS:
        entries = at.message.logprobs
        values = [value for entry in entries for value in entry["token_logprobs"]]
        values += [v for entry in entries for top in entry["top_logprobs"] for v in top.values()]
        assert min(values) == wanted
        return
    values = [entry["logprob"] for entry in at.message.logprobs]
    values += [top["logprob"] for entry in at.message.logprobs for top in entry["top_logprobs"]]
    assert min(values) == wanted


EXPECT: Mapping[str, Callable[[Answered, Any], None]] = {
    "tool_calls": _calls,
    "text": _content,
    "offsets_monotonic": _offsets,
    "every_tool_delta_has": _tool_deltas_have,
    "id_regex": _ids_match,
    "content": _content,
    "finish_reason": _finish,
    "stop_reason": lambda at, wanted: _same(at.message.finish, wanted),
    "stop_sequence": lambda at, wanted: _same(at.message.stop_sequence, wanted),
    "reasoning": lambda at, wanted: _same(at.message.reasoning, wanted),
    "reasoning_stripped": lambda at, wanted: _same((at.message.reasoning or "").strip(), wanted),
    "content_stripped": lambda at, wanted: _same((at.message.content or "").strip(), wanted),
    "content_in": lambda at, wanted: _among(at.message.content, wanted),
    "content_json": lambda at, wanted: _same(json.loads(at.message.content or ""), wanted),
    "content_contains": lambda at, wanted: _all_in(at.message.content, wanted),
    "content_excludes": lambda at, wanted: _none_in(at.message.content, wanted),
    "content_endswith": lambda at, wanted: _same(
        (at.message.content or "")[-len(wanted) :], wanted
    ),
    "reasoning_contains": lambda at, wanted: _all_in(at.message.reasoning, wanted),
    "tool_calls_count": lambda at, wanted: _same(len(at.message.calls), wanted),
    "tool_calls_complete": lambda at, wanted: _incomplete(at),
    "tool_inputs": lambda at, wanted: _same(
        [json.loads(call.arguments) for call in at.message.calls], wanted
    ),
    "events": lambda at, wanted: (
        _response_events(at, wanted) if at.path == RESPONSES else _events(at, wanted)
    ),
    "events_first": lambda at, wanted: _same(at.stream()[0]["type"], wanted),
    "events_last": lambda at, wanted: _same(at.stream()[-1]["type"], wanted),
    "sequence_numbers": _numbers,
    "item_status": _item_statuses,
    "incomplete_reason": lambda at, wanted: _same(
        _body(at)["incomplete_details"]["reason"], wanted
    ),
    "usage_keys": lambda at, wanted: _same(sorted(_body(at)["usage"]), sorted(wanted)),
    "statuses_in": lambda at, wanted: _same(
        [answer.status in each for answer, each in zip(at.answers, wanted, strict=True)],
        [True] * len(wanted),
    ),
    "block_types": lambda at, wanted: _same(_types(at), wanted),
    "blocks_have": _blocks_have,
    "deltas_by_step": _steps,
    "continuation_delta_keys": lambda at, wanted: None,  # message.py reads no other keys
    "no_ufffd": lambda at, wanted: _none_in(at.message.content, ["\ufffd"]),
    "status": _status,
    "status_in": lambda at, wanted: (
        [_among(answer.status, wanted) for answer in at.answers] and None
    ),
    "statuses": _statuses,
    "error_code": lambda at, wanted: _each(at, lambda answer: _code(at, answer, wanted)),
    "error_param": lambda at, wanted: _same(at.message.error["param"], wanted),
    "stream_error_event": lambda at, wanted: _same(_stream_error(at) is not None, wanted),
    "finish_chunks_per_choice": lambda at, wanted: None,  # message.py allows none beside an error
    "usage": _usage,
    "final_output_tokens": lambda at, wanted: _same(at.message.output_tokens, wanted),
    "message_start_input_tokens_min": _start_tokens,
    "model_context": lambda at, wanted: None,  # the stage's models have it
    "max_seconds": lambda at, wanted: None,  # no timed assertions
    "empty_choices_chunks": _empty_choices,
    "every_chunk_has": _chunks_have,
    "same_across_chunks": _chunks_share,
    "strict_json": lambda at, wanted: None,  # message.py reads nothing else
    "min_logprob": _least,
    "bytes_concat_utf8": _bytes_concat,
    "prompt_contains": lambda at, wanted: _all_in(at.prompt, wanted),
    "prompt_excludes": lambda at, wanted: _none_in(
        at.prompt if at.answers[0].status == 200 else "", wanted
    ),
    "prompt_contains_in_order": _in_order,
    "prompt_endswith": lambda at, wanted: _same(at.prompts()[-1].text[-len(wanted) :], wanted),
    "prompt_equal_to_without_tools": _without_tools,
    "bos_count": lambda at, wanted: None,  # bytes have no beginning: see test_one_beginning.py
}


def _each(at: Answered, check: Callable[[Played], None]) -> None:
    for answer in at.answers:
        check(answer)


def _same(got: object, wanted: object) -> None:
    assert got == wanted


def _among(got: object, wanted: list[Any]) -> None:
    assert got in wanted


def _incomplete(at: Answered) -> None:
    if at.path == CHAT:
        for call in at.message.calls:
            with pytest.raises(ValueError):  # noqa: PT011
                json.loads(call.arguments)


def _types(at: Answered) -> list[str]:
    return [e["content_block"]["type"] for e in at.stream() if e["type"] == "content_block_start"]


def _code(at: Answered, answer: Played, wanted: str) -> None:
    error = answer.message.error
    if at.path != MESSAGES:
        assert error["code"] == wanted
    else:
        assert error["message"].startswith("prompt is too long: ")
