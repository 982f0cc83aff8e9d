"""The plugin of OpenAI's Completions protocol: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.completions.codec import Completions


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return Completions()

    summary = "OpenAI Completions: POST /v1/completions"
    return [Factory("completions", NoSettings, build, summary)]
