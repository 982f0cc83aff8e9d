"""Anthropic's Messages protocol: POST /v1/messages and /v1/messages/count_tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.plugins.protocols.messages.settings import Settings

if TYPE_CHECKING:
    from tokenwire.core.ports.codec import Codec


def _build(settings: Settings, services: Services) -> Codec:
    from tokenwire.plugins.protocols.messages.codec import MessagesCodec

    return MessagesCodec(services.keys, settings)


@impl
def register_codecs() -> list[Factory[Codec]]:
    return [Factory("messages", Settings, _build, "Anthropic Messages and token counting")]
