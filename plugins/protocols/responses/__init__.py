"""The plugin of OpenAI's Responses protocol: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.responses.codec import Responses


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return Responses(services.keys)

    summary = "OpenAI Responses: /v1/responses, /v1/conversations"
    return [Factory("responses", NoSettings, build, summary)]
