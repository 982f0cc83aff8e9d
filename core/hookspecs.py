"""Every hook, in lifecycle order: this file is the extension manual. `impl` marks implementations.

Each `register_*` is called once for each plugin at start-up, one implementation at a time, so that
owners are known; it returns factories. No hook is called per request or per token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

from tokenwire.core.factory import Factory
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.core.ports.engine import Engine
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.router import Router
from tokenwire.core.ports.store import Store
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.ports.transfer import Transfer

if TYPE_CHECKING:
    from tokenwire.core.host import Host

__all__ = ("PROJECT", "impl", "spec")

PROJECT = "tokenwire"
spec = pluggy.HookspecMarker(PROJECT)
impl = pluggy.HookimplMarker(PROJECT)


@spec
def register_commands(cli: Any) -> None:
    """Add commands to the command line: `cli` is the cyclopts App of `tokenwire`."""


@spec
def register_codecs() -> Iterable[Factory[Codec]]:
    """Protocols. A codec's routes join the route table; a route twice is an error."""
    return ()


@spec
def register_templates() -> Iterable[Factory[Template]]:
    """Chat templates; built once a model, with its checkpoint and tokenizer."""
    return ()


@spec
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    """Output parsers; built once a model."""
    return ()


@spec
def register_dialects() -> Iterable[Factory[Dialect]]:
    """Model families: a template, a parser and their habits."""
    return ()


@spec
def register_tokenizers() -> Iterable[Factory[Tokenizer]]:
    """Tokenizers; built once a model, with its checkpoint."""
    return ()


@spec
def register_engines() -> Iterable[Factory[Engine]]:
    """Engines; built once a model, with its checkpoint and tokenizer."""
    return ()


@spec
def register_transfers() -> Iterable[Factory[Transfer]]:
    """Ways to move KV between engines."""
    return ()


@spec
def register_stores() -> Iterable[Factory[Store]]:
    """Stores; `cache.type` names the one in use."""
    return ()


@spec
def register_routers() -> Iterable[Factory[Router]]:
    """Ways to choose an engine of a fleet."""
    return ()


@spec
def register_guards() -> Iterable[Factory[Guard]]:
    """Guards; all of them are asked, in order of registration."""
    return ()


@spec
def register_observers() -> Iterable[Factory[Observer]]:
    """Observers; all of them are told."""
    return ()


@spec
def host_started(host: Host) -> None:
    """Everything is registered and frozen; no engine is built yet."""


@spec
def host_stopping(host: Host) -> None:
    """Engines are drained; what the plugin opened in host_started can be closed."""
