"""The plugin that says what every protocol does with every field: what it registers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec
from tokenwire.plugins.protocols.capabilities.codec import CapabilitiesCodec


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    def build(settings: NoSettings, services: Services) -> Codec:
        return CapabilitiesCodec()

    summary = "GET /v1/capabilities: each model, protocol and field"
    return [Factory("capabilities", NoSettings, build, summary)]
