"""The plugin that lists models to clients of both families: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.models.codec import Models


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return Models()

    summary = "GET /v1/models, as OpenAI's or as Anthropic's clients expect it"
    return [Factory("models", NoSettings, build, summary)]
