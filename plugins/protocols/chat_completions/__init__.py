"""The plugin of OpenAI's Chat Completions protocol: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions, Settings


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: Settings, services: Services) -> Codec:
        return ChatCompletions(settings)

    summary = "OpenAI Chat Completions: POST /v1/chat/completions"
    return [Factory("chat_completions", Settings, build, summary)]
