"""The plugin of Tokenwire's own routes about tokens: what it registers, one codec a route."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.tokens.detokenize import DetokenizeCodec
from tokenwire.plugins.protocols.tokens.generate import GenerateCodec
from tokenwire.plugins.protocols.tokens.parse import ParseCodec
from tokenwire.plugins.protocols.tokens.render import RenderCodec
from tokenwire.plugins.protocols.tokens.tokenize import TokenizeCodec

CODECS = (
    (TokenizeCodec, "POST /tokenize: text or a request to ids"),
    (DetokenizeCodec, "POST /detokenize: ids to text"),
    (RenderCodec, "POST /render: a request of any protocol to its prompt"),
    (ParseCodec, "POST /parse: a model's answer to events"),
    (GenerateCodec, "POST /v1/generate: ids to ids"),
)


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    return [_factory(codec, summary) for codec, summary in CODECS]


def _factory(codec: type[Codec], summary: str) -> Factory[Codec]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return codec()

    return Factory(codec.name, NoSettings, build, summary)
