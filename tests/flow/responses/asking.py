"""Short ways to ask in Responses, and the models that are asked."""

from __future__ import annotations

import json
from typing import Any

from tokenwire.core.config import ModelConfig, PluginUse
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.wire import HttpRequest

__all__ = ("MODELS", "PATH", "TALKS", "ask", "events", "get", "post", "prompt")

PATH, TALKS = "/v1/responses", "/v1/conversations"
MODELS = tuple(
    ModelConfig(
        name=name,
        engine=PluginUse("mock", {"context_length": 600}),
        tokenizer=PluginUse("script"),
        dialect=name,
    )
    for name in ("plain", "hermes+think")
)


def ask(client: LocalClient, script: str = "short", **fields: Any) -> Any:
    response = post(client, script, **fields)
    assert response.status == 200, response.body
    return response.json()


def post(client: LocalClient, script: str = "short", **fields: Any) -> Response:
    body = {"model": "plain", "input": "hi", **fields}
    return client.post(PATH, body, {"x-mock-script": script})


def get(client: LocalClient, path: str, query: str = "", method: str = "GET") -> Response:
    return client.send(HttpRequest(method, path, query=query))


def prompt(client: LocalClient, response: Response) -> str:
    found = client.deployment.recent_prompt(response.headers["x-request-id"])
    assert found is not None
    return found.prompt.text


def events(response: Response) -> list[Any]:
    return [json.loads(message.data) for message in response.events() if message.comment is None]
