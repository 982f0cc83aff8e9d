"""`parse.unknown_fields`: kept and listed, warned of, or refused, whatever the protocol."""

from __future__ import annotations

import logging

import pytest

from tokenwire.core.config import Config, ModelConfig, ParseConfig, PluginUse
from tokenwire.core.testing.client import LocalClient, Response

PATHS = {"/v1/chat/completions": {}, "/v1/messages": {"max_tokens": 9}}


def ask(wish: str, path: str, **more: object) -> Response:
    model = ModelConfig(
        name="m",
        engine=PluginUse("mock"),
        tokenizer=PluginUse("bytes"),
        parse=ParseConfig(unknown_fields=wish),  # type: ignore[arg-type]
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **PATHS[path], **more}
    with LocalClient(Config(models=(model,))) as client:
        return client.post(path, body)


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_field_is_kept_warned_of_or_refused(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = ask("keep", path, shoe_size=44)
    assert kept.status == 200
    assert "shoe_size" in kept.headers["x-tokenwire-ignored"]
    with caplog.at_level(logging.WARNING):
        assert ask("warn", path, shoe_size=44).status == 200
    assert "shoe_size" in caplog.text
    refused = ask("refuse", path, shoe_size=44)
    assert refused.status == 400
    assert b"shoe_size" in refused.body
    assert ask("refuse", path).status == 200
