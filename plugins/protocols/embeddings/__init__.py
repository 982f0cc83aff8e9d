"""The plugin of OpenAI's Embeddings protocol: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.embeddings.codec import EmbeddingsCodec


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return EmbeddingsCodec()

    summary = "OpenAI Embeddings: POST /v1/embeddings"
    return [Factory("embeddings", NoSettings, build, summary)]
