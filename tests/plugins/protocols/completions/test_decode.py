"""Requests to calls and back: nothing is lost, and what is wrong is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import RequestError
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.completions.client import CompletionsClient
from tokenwire.plugins.protocols.completions.codec import Completions
from tokenwire.plugins.protocols.completions.schema import MOST_CHOICES, REQUEST_FIELDS

CODEC = Completions()
CLIENT = CompletionsClient()


def decode(body: Any):
    return CODEC.decode(HttpRequest("POST", "/v1/completions", body=json.dumps(body).encode()))


TEXT = st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace").decode())
IDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4)
ID = st.integers(0, 300)
PROMPTS = st.one_of(
    TEXT, IDS, st.lists(TEXT, min_size=1, max_size=3), st.lists(IDS, min_size=1, max_size=3)
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0.1, 1),
    "top_k": st.integers(-1, 50),
    "min_p": st.floats(0, 1),
    "frequency_penalty": st.floats(-2, 2),
    "presence_penalty": st.floats(-2, 2),
    "repetition_penalty": st.floats(0.1, 2),
    "seed": st.integers(-(2**63), 2**63 - 1),
    "logit_bias": st.dictionaries(ID.map(str), st.floats(-100, 100), max_size=2),
    "allowed_token_ids": st.lists(ID, max_size=2),
    "max_tokens": st.integers(5, 99),
    "min_tokens": st.integers(0, 5),
    "stop": st.one_of(
        st.text("ab", min_size=1, max_size=3),
        st.lists(st.text("ab", min_size=1, max_size=3), max_size=2),
    ),
    "stop_token_ids": st.lists(ID, max_size=2),
    "ignore_eos": st.booleans(),
    "include_stop_str_in_output": st.booleans(),
    "add_special_tokens": st.booleans(),
    "logprobs": st.integers(0, 20),
    "echo": st.booleans(),
    "stream": st.booleans(),
    "user": TEXT,
    "session_id": TEXT,
    "cache_salt": st.text("ab", min_size=1, max_size=3),
    "priority": st.integers(-9, 9),
    "metadata": JSON,
    "x-unknown": JSON,
}
BODIES = st.builds(
    lambda prompt, fields, n: {"model": "m", "prompt": prompt, "n": n, **fields},
    PROMPTS,
    st.fixed_dictionaries({}, optional={name: value | st.none() for name, value in FIELDS.items()}),
    st.none() | st.integers(1, 3),
)


@given(BODIES, st.sampled_from([None, "suffix", "best_of"]))
def test_nothing_is_lost(body: dict[str, Any], more: str | None) -> None:
    """body -> call -> body -> call: the same call, and unknown fields as they were."""
    if more == "suffix" and not body.get("echo"):
        body["suffix"] = "end"
    if more == "best_of" and not body.get("stream"):
        body["best_of"] = 3
    call = decode(body)
    request = CLIENT.request(call)
    again = CODEC.decode(request)
    assert again == call
    written = json.loads(request.body)
    for name in ("metadata", "x-unknown"):
        if name in body:
            assert written[name] == body[name]
            assert (name in call.ignored) == (body[name] is not None)
    assert CLIENT.request(again) == request


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [2**32]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": [[1], "a"]}, "prompt"),
        ({"prompt": [None]}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["a"] * (MOST_CHOICES + 1)}, "prompt"),
        ({"prompt": ["a"] * 20, "best_of": 128}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"min_tokens": 17}, "min_tokens"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"suffix": "a", "echo": True}, "suffix"),
        ({"stream_options": {}}, "stream_options"),
        ({"stop": ""}, "stop"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"n": 0}, "n"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode({"model": "m", "prompt": "a"} | fields)
    assert caught.value.param == param
    assert len(caught.value.message) < 400


def test_every_field_that_is_read_has_a_row() -> None:
    rows = {rule.name.partition(".")[0] for rule in CODEC.fields}
    assert rows >= REQUEST_FIELDS
