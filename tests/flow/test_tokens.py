"""The token routes on the live flow: what they say is what a call of the same model does."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from itertools import pairwise
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.flow.wired import model, serving
from tokenwire.core.config import ParseConfig, PluginUse, ServerConfig
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.wire import HttpRequest

TOOL = {"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Brest 潮"}}\n</tool_call>'
ANSWERS = (
    "plain text, über 潮",
    "<think>\nLet me see.\n</think>\n\nLow tide.",
    f"I look.\n{CALL}",
    f"<think>\na\n</think>\n\n{CALL}\n{CALL}",
    '<tool_call>\n{"name": "get_tide", "arguments": {"po',
)


@pytest.fixture(scope="module")
def client() -> Iterator[LocalClient]:
    with serving(
        model("m", dialect="hermes", aliases=("alias",)),
        model("tokens", parse=ParseConfig(prompt_specials="tokens")),
        server=ServerConfig(debug=True),
    ) as (client, _):
        yield client


def post(client: LocalClient, path: str, body: Any, **headers: str) -> Any:
    response = client.post(path, body, headers)
    assert response.status == 200, response.body
    return response.json()


def error(response: Response) -> Any:
    body: Any = response.json()
    return response.status, body["error"]["param"], body["error"]["message"]


# --- tokenize and detokenize ---------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "ab", "über 潮 <eos>", "<|im_start|>\n"])
def test_text_there_and_back(client: LocalClient, text: str) -> None:
    said = post(client, "/tokenize", {"model": "m", "prompt": text, "return_token_strs": True})
    assert said["count"] == len(said["tokens"]) == len(said["token_strs"])
    assert said["max_model_len"] == 8192
    assert max(said["tokens"], default=0) < 256, "client text stays text"
    assert post(client, "/detokenize", {"model": "m", "tokens": said["tokens"]}) == {"prompt": text}


def test_special_tokens_where_they_are_asked_for(client: LocalClient) -> None:
    asked = {"model": "m", "prompt": "a<eos>", "parse_special": True}
    assert post(client, "/tokenize", asked)["tokens"] == [97, 257]
    assert post(client, "/detokenize", {"model": "m", "tokens": [97, 257]}) == {"prompt": "a<eos>"}
    own = {"model": "tokens", "prompt": "a<eos>"}
    assert post(client, "/tokenize", own)["tokens"] == [97, 257], "as the model is set"
    assert len(post(client, "/tokenize", own | {"parse_special": False})["tokens"]) == 6


def test_messages_are_tokenized_as_the_call_would_be(client: LocalClient) -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}
    said = post(client, "/tokenize", chat)
    answer = post(client, "/v1/chat/completions", chat)
    assert said["count"] == answer["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {"model": "m"}, "prompt"),
        ("/tokenize", {"model": "m", "prompt": "a", "request": {}}, "prompt"),
        ("/tokenize", {"model": "m", "prompt": "a", "odd": 1}, "odd"),
        ("/tokenize", {"model": "absent", "prompt": "a"}, "model"),
        ("/tokenize", {"prompt": "a"}, "model"),
        ("/tokenize", {"messages": [], "parse_special": True}, "parse_special"),
        ("/detokenize", {"model": "m", "tokens": [99_999]}, "tokens"),
        ("/detokenize", {"model": "m", "tokens": [-1]}, "tokens[0]"),
        ("/render", {"model": "m"}, "protocol"),
        ("/render", {"protocol": "odd", "body": {}}, "protocol"),
        ("/render", {"protocol": "models", "body": {}}, "protocol"),
        ("/render", {"protocol": "completions", "body": {"model": "m"}}, "prompt"),
        ("/parse", {"model": "m"}, "ids"),
        ("/parse", {"model": "m", "ids": [1], "text": "a"}, "ids"),
        ("/parse", {"model": "m", "ids": [99_999]}, "ids"),
        ("/parse", {"model": "m", "text": "a", "tools": [{"type": "function"}]}, "tools[0]"),
        ("/v1/generate", {"model": "m", "prompt": []}, "prompt"),
        ("/v1/generate", {"model": "m", "prompt": [99_999]}, "prompt"),
        ("/v1/generate", {"model": "m", "prompt": [True]}, "prompt[0]"),
        ("/v1/generate", {"prompt": [1], "stopping": {"max_tokens": 0}}, "stopping.max_tokens"),
        (
            "/v1/generate",
            {"model": "m", "prompt": [1], "stopping": {"sequences": [[1], [1, 99_999]]}},
            "stopping.sequences",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(client: LocalClient, path: str, body: Any, param: str) -> None:
    status, named, _ = error(client.post(path, body))
    assert status in (400, 404)
    assert named == param


# --- render --------------------------------------------------------------------------------------

HI = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a<eos>b"}]
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat_completions": ("/v1/chat/completions", {"model": "m", "messages": HI}),
    "messages": ("/v1/messages", {"model": "m", "messages": HI[1:], "max_tokens": 9}),
    "completions": ("/v1/completions", {"model": "m", "prompt": "a<eos>b"}),
}


@pytest.mark.parametrize("protocol", REQUESTS)
def test_what_is_rendered_is_what_the_engine_gets(client: LocalClient, protocol: str) -> None:
    path, body = REQUESTS[protocol]
    said = post(client, "/render", {"protocol": protocol, "body": body})
    response = client.post(path, body)
    recent = client.deployment.recent_prompt(response.headers["x-request-id"])
    assert recent is not None
    assert said["ids"] == recent.prompt.ids.tolist()
    assert said["text"] == recent.prompt.text
    assert said["phase"] == recent.prompt.phase
    assert said["fingerprint"] == response.headers["x-tokenwire-fingerprint"]
    assert "".join(said["token_strs"]).replace("\ufffd", "") in said["text"]
    assert said["more"] == []
    starts = [span["start"] for span in said["spans"]]
    ends = [span["end"] for span in said["spans"]]
    assert [*starts, len(said["ids"])] == [0, *ends]
    client_text = "".join(
        "".join(said["token_strs"][span["start"] : span["end"]])
        for span in said["spans"]
        if span["source"] == "client"
    )
    assert "a<eos>b" in client_text


@pytest.mark.parametrize("protocol", REQUESTS)
def test_a_bare_body_tells_its_protocol(client: LocalClient, protocol: str) -> None:
    _, body = REQUESTS[protocol]
    headers = {"anthropic-version": "2023-06-01"} if protocol == "messages" else {}
    wrapped = post(client, "/render", {"protocol": protocol, "body": body})
    assert post(client, "/render", body, **headers) == wrapped
    named = HttpRequest(
        "POST", "/render", query=f"protocol={protocol}", body=json.dumps(body).encode()
    )
    assert client.send(named).json() == wrapped


def test_several_prompts_are_rendered_each(client: LocalClient) -> None:
    said = post(client, "/render", {"model": "m", "prompt": ["ab", "c"]})
    assert said["ids"] == [97, 98]
    assert [each["ids"] for each in said["more"]] == [[99]]


# --- parse ---------------------------------------------------------------------------------------


def joined(events: list[dict[str, Any]]) -> list[Any]:
    """Events with neighbouring deltas joined: how they were cut makes no difference."""
    out: list[Any] = []
    for event in events:
        if event["type"] == "part_delta" and out and out[-1]["type"] == "part_delta":
            out[-1] = out[-1] | {"text": out[-1]["text"] + event["text"]}
        else:
            out.append(dict(event))
    return out


def whole(client: LocalClient, answer: Any, **more: Any) -> list[Any]:
    key = "text" if isinstance(answer, str) else "ids"
    said = post(client, "/parse", {"model": "m", key: answer, "tools": [TOOL], **more})
    assert said["state"] is None
    return joined(said["events"])


@pytest.mark.parametrize("answer", ANSWERS)
def test_ids_and_text_give_what_a_call_gives(client: LocalClient, answer: str) -> None:
    events = whole(client, list(answer.encode()))
    assert whole(client, answer) == events
    assert events[-1]["type"] == "finished"
    calls = [event for event in events if event.get("kind") == "tool_call"]
    assert len(calls) == answer.count('"name"')
    with serving(
        model("m", dialect="hermes", settings={"answer": answer}),
    ) as (served, _):
        chat = {"model": "m", "messages": HI, "tools": [TOOL], "max_tokens": 500}
        message = post(served, "/v1/chat/completions", chat)["choices"][0]["message"]
    texts = [event["text"] for before, event in pairwise(events) if before.get("kind") == "text"]
    assert "".join(texts).strip() == (message["content"] or "").strip()
    assert [call["name"] for call in calls] == [
        call["function"]["name"] for call in message.get("tool_calls", ())
    ]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_answer_in_pieces_is_the_whole_one(client: LocalClient, answer: str, size: int) -> None:
    ids = list(answer.encode())
    first, *rest = [ids[at : at + size] for at in range(0, len(ids), size)]
    opening = {"model": "m", "ids": first, "tools": [TOOL], "incremental": True}
    said = post(client, "/parse", opening)
    events, sizes = said["events"], [len(said["state"])]
    for piece in rest:
        said = post(client, "/parse", {"state": said["state"], "ids": piece})
        events += said["events"]
        sizes.append(len(said["state"]))
    said = post(client, "/parse", {"state": said["state"], "ids": [], "finish": "stop"})
    assert said["state"] is None
    assert joined(events + said["events"]) == whole(client, ids)
    assert max(sizes) - min(sizes) < 400, "a state does not grow with the answer"


@given(at=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_state_that_was_changed_is_refused(client: LocalClient, at: int, flip: int) -> None:
    said = post(client, "/parse", {"model": "m", "text": "a", "incremental": True})
    data = bytearray(urlsafe_b64decode(said["state"]))
    data[at % len(data)] ^= flip
    changed = urlsafe_b64encode(bytes(data)).decode()
    status, param, message = error(client.post("/parse", {"state": changed, "text": "b"}))
    assert (status, param) == (400, "state")
    assert message.startswith("the state cannot be used")


@pytest.mark.parametrize("state", ["", "AAAA", "no base64!", "\u00e9"])
def test_what_is_no_state_is_refused(client: LocalClient, state: str) -> None:
    assert error(client.post("/parse", {"state": state, "text": "b"}))[:2] == (400, "state")


def test_a_state_has_one_spelling(client: LocalClient) -> None:
    state = post(client, "/parse", {"model": "m", "text": "a", "incremental": True})["state"]
    for respelled in (f"{state}AAAA", f"{state}=", f"\n{state}"):
        body = {"state": respelled, "text": "b"}
        assert error(client.post("/parse", body))[:2] == (400, "state")


def test_a_state_holds_its_options(client: LocalClient) -> None:
    said = post(client, "/parse", {"model": "m", "text": "a", "incremental": True})
    response = client.post("/parse", {"state": said["state"], "text": "b", "model": "m"})
    assert error(response)[:2] == (400, "model")


def test_a_state_of_another_model_is_refused() -> None:
    keys = {"server": ServerConfig()}
    with serving(model("m"), **keys) as (one, _):
        said = post(one, "/parse", {"text": "a", "incremental": True})
    with serving(model("m"), **keys) as (other, _):
        status, param, message = error(other.post("/parse", {"state": said["state"], "text": "b"}))
    assert (status, param) == (400, "state")
    assert "signature is not ours" in message


# --- generate ------------------------------------------------------------------------------------

ASKED = {"model": "m", "prompt": [65, 66], "stopping": {"max_tokens": 5}, "n": 2, "logprobs": 1}


def test_ids_in_and_ids_out(client: LocalClient) -> None:
    said = post(client, "/v1/generate", ASKED)
    text = post(client, "/v1/completions", {"model": "m", "prompt": [65, 66], "max_tokens": 5})
    for index, choice in enumerate(said["choices"]):
        assert choice["index"] == index
        assert bytes(choice["ids"]).decode() == text["choices"][0]["text"]
        assert len(choice["logprobs"]) == 5
        assert choice["logprobs"][0]["top"][0] == [
            choice["ids"][0],
            choice["logprobs"][0]["logprob"],
        ]
        assert choice["finish"] == "length"
    assert said["usage"]["prompt_tokens"] == 2
    assert said["usage"]["completion_tokens"] == 10


def test_a_stream_of_ids_adds_up(client: LocalClient) -> None:
    unary = post(client, "/v1/generate", ASKED)
    response = client.post("/v1/generate", {**ASKED, "stream": True})
    *parts, last = [event.data for event in response.events() if event.data]
    assert last == "[DONE]"
    head, *pieces, end = [json.loads(part) for part in parts]
    assert head["fingerprint"] == unary["fingerprint"]
    assert head["prompt_tokens"] == 2
    ids: dict[int, list[int]] = {0: [], 1: []}
    values: dict[int, list[float]] = {0: [], 1: []}
    finishes = {}
    for piece in pieces:
        ids[piece["index"]] += piece.get("ids", [])
        values[piece["index"]] += [each["logprob"] for each in piece.get("logprobs", [])]
        if "finish" in piece:
            finishes[piece["index"]] = piece["finish"]
    for choice in unary["choices"]:
        assert ids[choice["index"]] == choice["ids"]
        wanted = [each["logprob"] for each in choice["logprobs"]]
        assert all(map(isclose, values[choice["index"]], wanted))
        assert finishes[choice["index"]] == choice["finish"]
    assert end["usage"] == unary["usage"]


def test_a_failed_stream_of_ids_ends_with_an_error() -> None:
    with serving(model(settings={"error_at": 3})) as (client, _):
        response = client.post("/v1/generate", {"prompt": [65], "stream": True})
        parts = [json.loads(event.data) for event in response.events() if event.data]
        assert "error" in parts[-1]
        assert client.post("/v1/generate", {"prompt": [65]}).status == 500


def test_no_text_is_made_on_the_way() -> None:
    """Ids that spell nothing the tokenizer knows go through: nobody asks it."""
    script = {"pieces": [{"hex": "ff"}, {"hex": "fe"}], "finish": "length"}
    with serving(model(engine="mock", tokenizer=PluginUse("script"))) as (client, _):
        client.script("odd", script)
        said = post(client, "/v1/generate", {"prompt": [65]}, **{"x-mock-script": "odd"})
    assert len(said["choices"][0]["ids"]) == 2
