"""What a plugin registers: light factories, given their settings and services when used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.ports.store import Store
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.signing import Keyring

__all__ = ("PORT_VERSION", "Factory", "NoSettings", "Services")

PORT_VERSION = 1

T = TypeVar("T")


class NoSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """For plugins without settings."""


class Services(Struct, frozen=True):
    """What the host lends to a plugin when it builds it."""

    keys: Keyring
    store: Store | None = None
    """None while the store itself is built."""
    scripts: ScriptBook | None = None
    model: str = ""
    """The model it is built for; "" for what serves the whole process."""
    checkpoint: Checkpoint | None = None
    """The model's files, where it has any."""
    tokenizer: Tokenizer | None = None
    """The model's, for templates, parsers and engines."""
    context_length: int | None = None
    """As configured; None: the checkpoint's."""


class Factory(Struct, Generic[T], frozen=True):
    """`build(settings, services)` makes the thing. Listing factories imports nothing heavy: put
    heavy imports inside `build`. `settings` is a frozen Struct that forbids unknown fields."""

    name: str
    settings: type[Struct]
    build: Callable[..., T]
    summary: str = ""
    device: bool = False
    """Of an engine: it holds a device (or weights), so that one process a server may build it."""
    port: int = PORT_VERSION
    """The port version it was written for; the host refuses a newer one with a sentence."""
