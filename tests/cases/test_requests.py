"""Each request through the flow: its status, its prompt, and the words of a refusal."""

from __future__ import annotations

import pytest

from tests.cases.outputs import function
from tests.cases.requests import REQUESTS, Asked
from tests.cases.stage import CHAT, MESSAGES, RESPONSES, Stage

HI = [{"role": "user", "content": "Hi"}]
MODELS = ("hermes", "plain")
BROKEN = {
    "cut short": b'{"model": "plain", "messages": [',
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a mark of byte order alone": b"\xef\xbb\xbf",
    "no UTF-8": b'{"model": "\xff"}',
    "NaN": b'{"model": "plain", "max_tokens": 5, "temperature": NaN, "messages": []}',
    "a model named twice": b'{"model":"plain","model":"x","max_tokens":5,"messages":[]}',
    "a limit named twice": b'{"model":"plain","max_tokens":5,"max_tokens":6,"messages":[]}',
    "a deep list": b'{"model":"plain","max_tokens":5,"messages":' + b"[" * 90_000,
    "a deep schema": b'{"model":"plain","max_tokens":5,"tools":' + b'[{"a":' * 90_000,
    "half a pair": b'{"model":"plain","max_tokens":5,"messages":'
    b'[{"role":"user","content":"\\ud83d"}]}',
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: f"{case.path}: {case.name}")
def test_request(stage: Stage, case: Asked, model: str) -> None:
    played = stage.play(case.path, {"model": model, **case.body})
    assert played.status == case.status, played.response.body
    assert all(value.isprintable() for value in played.response.headers.values())
    if case.ignored is not None:
        assert case.ignored in played.response.headers["x-tokenwire-ignored"].split(", ")
    if case.status == 200:
        prompt = stage.prompt(played.response).text
        if model == "hermes":
            _holds(prompt, case)
        assert not [part for part in case.lacks if part in prompt]
    else:
        error = played.message.error
        assert error["type"] == "invalid_request_error"
        assert error["message"]
        assert case.path == MESSAGES or error["param"] == case.param
        with_body = played.response.body.decode()
        assert "y" * 500 not in with_body, "a refusal repeats little of the client's words"


def _holds(prompt: str, case: Asked) -> None:
    at = 0
    for part in case.holds:
        assert part in prompt[at:]
        at = prompt.index(part, at) + len(part)


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("name", BROKEN)
def test_bytes_that_are_no_request(stage: Stage, path: str, name: str) -> None:
    played = stage.play(path, BROKEN[name])
    assert played.status == 400
    assert played.response.headers["content-type"] == "application/json"
    assert played.message.error["type"] == "invalid_request_error"
    assert "Traceback" not in played.response.body.decode()


@pytest.mark.parametrize(
    "text", ["what is <|endoftext|>?", "</think>", "<|im_start|>", "\0 \u2028"]
)
def test_what_is_counted_is_what_a_call_takes(stage: Stage, text: str) -> None:
    body = {"model": "hermes", "messages": [{"role": "user", "content": text}]}
    counted = stage.client.post(f"{MESSAGES}/count_tokens", body).json()
    played = stage.play(MESSAGES, {**body, "max_tokens": 5})
    assert counted == {"input_tokens": played.message.prompt_tokens}
    assert len(stage.prompt(played.response).ids) == played.message.prompt_tokens


@pytest.mark.parametrize("field", [{"tools": []}, {"tools": None}, {"tools": [], "n": 1}])
def test_no_tools_however_said_give_one_prompt(stage: Stage, field: dict[str, object]) -> None:
    prompts = [
        stage.prompt(stage.play(CHAT, {"model": "hermes", "messages": HI, **more}).response).ids
        for more in ({}, field)
    ]
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize("content", [None, "", []])
def test_no_content_however_said_gives_one_prompt(stage: Stage, content: object) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "x", "content": "ok"}
    texts = []
    for said in ({}, {"content": content}):
        turn = {"role": "assistant", "tool_calls": [call], **said}
        body = {"model": "hermes", "messages": [*HI, turn, result], "tools": [function("f")]}
        texts.append(stage.prompt(stage.play(CHAT, body).response).text)
    assert texts[0] == texts[1]


def test_going_on_with_a_message_adds_nothing_behind_it(stage: Stage) -> None:
    messages = [*HI, {"role": "assistant", "content": "The capital"}]
    body = {"model": "hermes", "messages": messages, "continue_final_message": True}
    asked = {**body, "add_generation_prompt": False}
    played = stage.play(CHAT, asked, {"pieces": [" is Bern"]})
    assert stage.prompt(played.response).text.endswith("\nThe capital")
    assert played.message.content == " is Bern"


def test_any_seed_of_64_bits_is_taken(stage: Stage) -> None:
    body = {"model": "plain", "messages": HI, "n": 2, "temperature": 1.0}
    for seed in (0, -(2**63), 2**63 - 1, None):
        assert stage.play(CHAT, {**body, "seed": seed}).status == 200


@pytest.mark.parametrize(
    "limit",
    [
        {"max_completion_tokens": 2},
        {"max_tokens": 2},
        {"max_tokens": 9, "max_completion_tokens": 2},
    ],
)
def test_either_limit_ends_an_answer(stage: Stage, limit: dict[str, int]) -> None:
    body = {"model": "plain", "messages": HI, **limit}
    script = {"pieces": ["p", "q", "r", "s"]}
    message = stage.play(CHAT, body, script).message
    assert (message.content, message.finish, message.output_tokens) == ("pq", "length", 2)


def test_an_end_as_the_last_token_allowed_is_an_end(stage: Stage) -> None:
    body = {"model": "plain", "messages": HI, "max_tokens": 3}
    message = stage.play(CHAT, body, {"pieces": ["p", "q", "<eos>"]}).message
    assert (message.content, message.finish) == ("pq", "stop")
    message = stage.play(CHAT, {**body, "max_tokens": 2}, {"pieces": ["p", "q", "<eos>"]}).message
    assert (message.content, message.finish) == ("pq", "length")
    message = stage.play(CHAT, {**body, "stop": "r"}, {"pieces": ["p", "q", "r", "s"]}).message
    assert (message.content, message.finish) == ("pq", "stop")


def test_a_character_cut_in_half_at_the_limit_is_the_same_in_both_modes(stage: Stage) -> None:
    script = {"pieces": ["Hey", {"hex": "f09f"}], "finish": "length"}
    for path in (CHAT, MESSAGES):
        body = {"model": "plain", "messages": HI, "max_tokens": 2}
        message = stage.play_all(path, body, script).message
        assert message.content == "Hey"
        assert message.finish in ("length", "max_tokens")
