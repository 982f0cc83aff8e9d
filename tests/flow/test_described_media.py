"""`parse.media: describe`: what a model cannot see is told to it in words, in any protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tokenwire.core.config import Config, ModelConfig, ParseConfig, PluginUse
from tokenwire.core.testing.client import LocalClient, Response

PNG = "iVBORw0KGgo="
URL = f"data:image/png;base64,{PNG}"
SHOWN = "[image: image/png, 8 bytes, not shown: this model takes none]"


def chat(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "t",
    "content": [{"type": "image", "source": SOURCE}],
}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
READ = [{"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT]}]
CASES = {
    "chat": (
        "/v1/chat/completions",
        chat({"type": "image_url", "image_url": {"url": URL}}),
        "messages[].content[].image_url",
    ),
    "messages": ("/v1/messages", {"messages": READ}, "messages[].content[].image"),
    "responses": (
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}]}]},
        "input[].content[].input_image",
    ),
}


def client(media: str) -> LocalClient:
    model = ModelConfig(
        name="m",
        engine=PluginUse("mock"),
        tokenizer=PluginUse("bytes"),
        parse=ParseConfig(media=media),  # type: ignore[arg-type]
    )
    return LocalClient(Config(models=(model,)))


def ask(at: LocalClient, path: str, body: dict[str, Any]) -> Response:
    limit = {"max_output_tokens": 16} if path == "/v1/responses" else {"max_tokens": 16}
    return at.post(path, {"model": "m", **limit, **body})


def prompt(at: LocalClient, protocol: str, body: dict[str, Any]) -> str:
    request = {"model": "m", "max_tokens": 16, **body}
    answer: Any = at.post("/render", {"protocol": protocol, "body": request}).json()
    return str(answer)


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_unless_it_is_to_be_described(case: str) -> None:
    path, body, listed = CASES[case]
    with client("refuse") as refusing:
        assert ask(refusing, path, body).status == 400
    with client("describe") as describing:
        response = ask(describing, path, body)
        assert response.status == 200
        assert listed in response.headers["x-tokenwire-ignored"].split(", ")


def test_the_model_is_told_and_counting_agrees() -> None:
    with client("describe") as at:
        assert SHOWN in prompt(at, "messages", {"messages": READ})
        counted: Any = at.post("/v1/messages/count_tokens", {"model": "m", "messages": READ}).json()
        answered: Any = ask(at, "/v1/messages", {"messages": READ}).json()
        assert counted["input_tokens"] == answered["usage"]["input_tokens"]


def test_a_picture_somewhere_else_is_not_fetched() -> None:
    image = {"type": "image_url", "image_url": {"url": "http://localhost:9/a.png"}}
    with client("describe") as at:
        assert ask(at, "/v1/chat/completions", chat(image)).status == 200
        assert "[image: http://localhost:9/a.png, not shown" in prompt(
            at, "chat_completions", chat(image)
        )


def test_what_is_text_stays_text_and_is_not_listed() -> None:
    document = {"type": "document", "source": {"type": "text", "data": "tides"}, "title": "t"}
    with client("describe") as at:
        response = ask(at, "/v1/messages", chat(document))
        assert response.status == 200
        assert "document" not in response.headers.get("x-tokenwire-ignored", "")
        assert "not shown" not in prompt(at, "messages", chat(document))
