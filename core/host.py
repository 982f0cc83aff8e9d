"""Finds plugins, asks each hook of each plugin once, and keeps what they register. Serves nothing.

No hook is called after start-up but `host_stopping`: what plugins registered is reached through the
frozen registries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from secrets import token_bytes
from types import ModuleType
from typing import Any, final

import pluggy

from tokenwire.core import hookspecs
from tokenwire.core.discovery import Plugin, given, installed
from tokenwire.core.errors import ConfigError, PluginError
from tokenwire.core.factory import Services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.core.ports.engine import Engine
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.router import Router
from tokenwire.core.ports.store import Store
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.ports.transfer import Transfer
from tokenwire.core.registry import Registry, said
from tokenwire.core.settings import Place, nearest
from tokenwire.core.signing import Keyring

__all__ = ("HOOKS", "KINDS", "Host", "lone_services")

HOOKS = (
    "register_commands",
    "register_codecs",
    "register_templates",
    "register_parsers",
    "register_dialects",
    "register_tokenizers",
    "register_engines",
    "register_transfers",
    "register_stores",
    "register_routers",
    "register_guards",
    "register_observers",
    "host_started",
    "host_stopping",
)
KINDS = tuple(hook.removeprefix("register_").removesuffix("s") for hook in HOOKS[1:-2])
NO_REPLACES: Mapping[str, str] = {}
NO_SETTINGS: Mapping[str, object] = {}


@final
class Host:
    """All plugins of a process. Tests say `Host({"mine": module}, entry_points=False)`."""

    def __init__(
        self,
        plugins: Mapping[str, ModuleType] | None = None,
        *,
        entry_points: bool = True,
        replaces: Mapping[str, str] = NO_REPLACES,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`plugins` come after those of `entry_points`. `replaces`: "KIND.NAME" -> owner that wins.
        `environ` (None: this process's) holds TOKENWIRE_PLUGINS and TOKENWIRE_DISABLE, which choose
        among entry points. Raises PluginError or ConfigError: a sentence with the owner."""
        wins = _by_kind(replaces)
        self.codecs: Registry[Codec] = Registry("codec", Codec, wins["codec"])
        self.templates: Registry[Template] = Registry("template", Template, wins["template"])
        self.parsers: Registry[ParserMaker] = Registry("parser", ParserMaker, wins["parser"])
        self.dialects: Registry[Dialect] = Registry("dialect", Dialect, wins["dialect"])
        self.tokenizers: Registry[Tokenizer] = Registry("tokenizer", Tokenizer, wins["tokenizer"])
        self.engines: Registry[Engine] = Registry("engine", Engine, wins["engine"])
        self.transfers: Registry[Transfer] = Registry("transfer", Transfer, wins["transfer"])
        self.stores: Registry[Store] = Registry("store", Store, wins["store"])
        self.routers: Registry[Router] = Registry("router", Router, wins["router"])
        self.guards: Registry[Guard] = Registry("guard", Guard, wins["guard"])
        self.observers: Registry[Observer] = Registry("observer", Observer, wins["observer"])
        found = installed(os.environ if environ is None else environ) if entry_points else ()
        self.plugins: tuple[Plugin, ...] = (*found, *given(plugins or {}))
        self._manager = _manager(self.plugins)
        self._told: list[Plugin] = []
        for kind in KINDS:
            self._register(self.registry(kind))

    def registry(self, kind: str) -> Registry[Any]:
        """The registry of "codec", "engine", ...; raises ConfigError for a kind that is none."""
        if kind not in KINDS:
            raise ConfigError(f"there is no plugin kind '{kind}'{nearest(kind, KINDS)}")
        registry: Registry[Any] = getattr(self, f"{kind}s")
        return registry

    def build(
        self,
        kind: str,
        name: str,
        settings: Mapping[str, object] = NO_SETTINGS,
        services: Services | None = None,
        where: str | Place = "",
    ) -> Any:
        """Make a plugin's thing; `host.codecs.build(...)` and so on are the same with types.

        `where` names the settings in messages: "models[0].engine". Without services it gets a
        random keyring. Raises ConfigError for the user's faults, PluginError for the plugin's.
        """
        return self.registry(kind).build(name, settings, services or lone_services(), where)

    def add_commands(self, cli: Any) -> None:
        """Let plugins add commands to the command line."""
        for plugin in self.plugins:
            self._ask(plugin, "register_commands", cli=cli)

    def started(self) -> None:
        """Tell every plugin. When one fails, those told before it are told that the host stops."""
        for plugin in self.plugins:
            try:
                self._ask(plugin, "host_started", host=self)
            except PluginError:
                self.stopping()
                raise
            self._told.append(plugin)

    def stopping(self) -> None:
        """Tell the started plugins, the last first, each whatever the others do; a second call
        tells nobody. Raises one PluginError with all their failures."""
        failures = []
        while self._told:
            try:
                self._ask(self._told.pop(), "host_stopping", host=self)
            except PluginError as error:
                failures.append(str(error))
        if failures:
            raise PluginError("; ".join(failures))

    def hooks(self, plugin: Plugin) -> tuple[str, ...]:
        """The hooks that a plugin implements, in lifecycle order."""
        callers = self._manager.get_hookcallers(plugin.module) or ()
        names = {caller.name for caller in callers}
        return tuple(hook for hook in HOOKS if hook in names)

    def _register(self, registry: Registry[Any]) -> None:
        hook = f"register_{registry.kind}s"
        for plugin in self.plugins:
            for answer in self._ask(plugin, hook):
                for item in _items(answer, plugin, hook):
                    registry.add(item, plugin.name)
        registry.freeze()

    def _ask(self, plugin: Plugin, hook: str, **arguments: object) -> list[object]:
        """One plugin's implementation alone, so that its owner is known."""
        if hook not in self.hooks(plugin):
            return []
        others = [other.module for other in self.plugins if other is not plugin]
        caller = self._manager.subset_hook_caller(hook, remove_plugins=others)
        try:
            answers: list[object] = caller(**arguments)
        except (Exception, SystemExit) as error:
            raise _failed(plugin, hook, error) from error
        return answers


def _manager(plugins: Iterable[Plugin]) -> pluggy.PluginManager:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for plugin in plugins:
        try:
            manager.register(plugin.module, plugin.name)
            manager.check_pending()
        except ValueError as error:
            raise PluginError(
                f"{plugin.name}: {plugin.module.__name__} or its name is there already"
            ) from error
        except pluggy.PluginValidationError as error:
            raise PluginError(f"{plugin.name}: {_misfit(manager, plugin, error)}") from error
        if not manager.get_hookcallers(plugin.module):
            raise PluginError(
                f"{plugin.name}: {plugin.module.__name__} has no hook: mark its functions @impl"
            )
    return manager


def _misfit(
    manager: pluggy.PluginManager, plugin: Plugin, error: pluggy.PluginValidationError
) -> str:
    for caller in manager.get_hookcallers(plugin.module) or ():
        if not caller.has_spec():
            return f"unknown hook '{caller.name}'{nearest(caller.name, HOOKS)}"
    return said(error).partition(": ")[2]


def _items(answer: object, plugin: Plugin, hook: str) -> list[object]:
    if not isinstance(answer, Iterable):
        raise PluginError(f"{plugin.name}: {hook} gave {answer!r}, wanted an iterable of factories")
    try:
        return list(answer)
    except (Exception, SystemExit) as error:
        raise _failed(plugin, hook, error) from error


def _failed(plugin: Plugin, hook: str, error: BaseException) -> PluginError:
    return PluginError(f"{plugin.name}: {hook} failed: {said(error)}")


def _by_kind(replaces: Mapping[str, str]) -> dict[str, dict[str, str]]:
    wins: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for key, owner in replaces.items():
        kind, _, name = key.partition(".")
        if kind not in wins or not name:
            raise ConfigError(
                f'replaces: {key} = "{owner}": wanted KIND.NAME{nearest(kind, KINDS)}'
            )
        wins[kind][name] = owner
    return wins


def lone_services() -> Services:
    """For a plugin that is built outside a server: a random key, and nothing else."""
    return Services(Keyring([token_bytes(32)]))
