"""Failures of completions and of tokenizing that servers have been seen to have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.cutting import cuttings, text_of
from tests.cases.stage import MESSAGES, Stage
from tokenwire.core.testing.client import Response

PATH = "/v1/completions"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [[5, 99_999_999]]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": "a", "logit_bias": {"4294967295": 1}}, "logit_bias"),
    ],
)
def test_ids_out_of_the_vocabulary_are_refused(
    stage: Stage, fields: dict[str, Any], param: str
) -> None:
    response = stage.client.post(PATH, {"model": "plain", **fields})
    body: Any = response.json()
    assert response.status == 400
    assert body["error"]["param"] == param


@pytest.mark.parametrize("prompt", ["a潮b", "<eos>x", "é\u2028"])
@pytest.mark.parametrize("pieces", [["c"], ["c", {"hex": "e6bd"}, {"hex": "ae"}, "d"], ["", "ö"]])
def test_an_echo_s_offsets_count_characters(stage: Stage, prompt: str, pieces: list[Any]) -> None:
    """In every cutting, unary and streamed: one entry an id, the first null, offsets that grow."""
    script = {"pieces": [piece for piece in pieces if piece != ""], "finish": "eos"}
    whole = prompt + text_of(script)
    for name, cut in cuttings(script):
        for stream in (False, True):
            asked = {"model": "plain", "prompt": prompt, "echo": True, "logprobs": 0}
            asked |= {"max_tokens": 50, "stream": stream}
            response = stage.client.post(PATH, asked, stage.script(cut))
            assert response.status == 200, name
            parts = _choices(response)
            arrays = [part["logprobs"] for part in parts if part["logprobs"]]
            tokens, values, offsets = (
                [item for each in arrays for item in each[key]]
                for key in ("tokens", "token_logprobs", "text_offset")
            )
            assert "".join(part["text"] for part in parts) == whole, name
            assert len(tokens) == len(values) == len(offsets)
            assert len(tokens) >= len(prompt.encode()) + 1
            assert values[0] is None
            assert None not in values[1:]
            assert offsets == sorted(offsets)
            assert offsets[-1] < len(whole)
            assert "\ufffd" not in response.body.decode()


def _choices(response: Response) -> list[Any]:
    """Of a body, or of all chunks."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        body: Any = response.json()
        return list(body["choices"])
    bodies = [json.loads(event.data) for event in response.events() if event.data != "[DONE]"]
    return [choice for body in bodies for choice in body["choices"]]


def test_ids_do_not_depend_on_who_asked_first(stage: Stage) -> None:
    """Text and messages of the same words, in either order and again: the same ids."""
    text = {"model": "hermes", "prompt": "The sea"}
    chat = {"model": "hermes", "messages": [{"role": "user", "content": "The sea"}]}
    asked = [text, chat, text, chat, {**text, "add_special_tokens": False}, text]
    ids = []
    for body in asked:
        path = PATH if "prompt" in body else "/v1/chat/completions"
        ids.append(stage.prompt(stage.client.post(path, body)).ids)
    assert ids[0] == ids[2] == ids[5]
    assert ids[1] == ids[3]


@pytest.mark.parametrize("text", ["what is <|endoftext|>?", "<eos>", "\0 \u2028", "潮"])
def test_counts_are_what_a_call_takes(stage: Stage, text: str) -> None:
    messages = [{"role": "user", "content": text}]
    body = {"model": "hermes", "messages": messages}
    counted: Any = stage.client.post(f"{MESSAGES}/count_tokens", body).json()
    tokenized: Any = stage.client.post("/tokenize", body).json()
    rendered: Any = stage.client.post("/render", body).json()
    assert counted["input_tokens"] == tokenized["count"] == len(rendered["ids"])
    raw: Any = stage.client.post("/tokenize", {"model": "hermes", "prompt": text}).json()
    answer: Any = stage.client.post(PATH, {"model": "hermes", "prompt": text}).json()
    assert raw["count"] == answer["usage"]["prompt_tokens"]
