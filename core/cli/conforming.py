"""`conform NAME`: runs the kit of a plugin's port, and says which laws hold. Knows no law."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from cyclopts import App

from tokenwire.core.cli.shell import Shell
from tokenwire.core.dialect_names import ALIASES
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import KINDS, Host
from tokenwire.core.settings import nearest
from tokenwire.core.testing.laws import LawBroken

__all__ = ("add", "pick")

Check: TypeAlias = Callable[[Host, str], tuple[str, ...]]

KITS = {
    "codec": ("codec_kit", "conform"),
    "template": ("dialect_kit", "conform_template"),
    "parser": ("dialect_kit", "conform_parser"),
    "dialect": ("dialect_kit", "conform"),
    "tokenizer": ("tokenizer_kit", "conform"),
    "engine": ("engine_kit", "conform"),
    "store": ("store_kit", "conform"),
}
"""Kind -> the module of its kit, and the function (host, name) there that gives the laws that
hold."""
HALVES = ("template", "parser")
"""A dialect of the same name is checked with both."""


def add(app: App, shell: Shell) -> None:
    """Adds `conform`."""

    @app.command
    def conform(name: str) -> int:
        """Run the conformance kit for an installed plugin.

        Parameters
        ----------
        name
            KIND.NAME, as codec.messages or parser.hermes; or NAME, where only one kind has it.
            A dialect's name, or another name of it (as in a configuration), checks its template
            and its parser together.
        """
        kind, plugin = pick(name, shell.host())
        check = _check(kind)
        try:
            laws = check(shell.host(), plugin)
        except LawBroken as broken:
            shell.complain(str(broken))
            return 1
        for law in laws:
            shell.say(f"holds: {law}")
        shell.say(f"{kind} '{plugin}' conforms: {len(laws)} laws")
        return 0


def _check(kind: str) -> Check:
    module, function = KITS[kind]
    try:
        check: Check = getattr(import_module(f"tokenwire.core.testing.{module}"), function)
        return check
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ConfigError("conform: the kits need hypothesis: pip install hypothesis") from error


def _meant(name: str, host: Host) -> str:
    """Another name of a dialect as its own, with its kind, unless some plugin has it."""
    plain = name.removeprefix("dialect.")
    kinds = ("dialect",) if plain != name else KINDS
    if plain not in ALIASES or any(plain in host.registry(kind) for kind in kinds):
        return name
    return f"dialect.{ALIASES[plain]}"


def pick(name: str, host: Host) -> tuple[str, str]:
    """(kind, name) of a plugin that has a kit; raises ConfigError for none, or for several."""
    name = _meant(name, host)
    kind, _, rest = name.partition(".")
    if rest and kind in KINDS:
        host.registry(kind).find(rest, "conform")
        found = [kind]
        name = rest
    else:
        found = [kind for kind in KINDS if name in host.registry(kind)]
    if not found:
        names = [known for kind in KITS for known in host.registry(kind)]
        raise ConfigError(f"conform: no plugin brings '{name}'{nearest(name, names)}")
    with_kit = [kind for kind in found if kind in KITS]
    if not with_kit:
        raise ConfigError(f"conform: there is no kit for a {found[0]}; kits: {', '.join(KITS)}")
    if "dialect" in with_kit:
        with_kit = [kind for kind in with_kit if kind not in HALVES]
    if len(with_kit) > 1:
        choices = ", ".join(f"{kind}.{name}" for kind in with_kit)
        raise ConfigError(f"conform: '{name}' is several: say one of {choices}")
    return with_kit[0], name
