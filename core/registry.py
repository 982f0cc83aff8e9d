"""Names to factories, each with its owner; frozen after start-up. Knows no plugin manager.

`Registry.build` is the typed way to make a thing: settings are converted to the factory's Struct,
and what comes out is checked against the port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast, final

from msgspec import Struct

from tokenwire.core.errors import ConfigError, PluginError, TokenwireError
from tokenwire.core.factory import PORT_VERSION, Factory, Services
from tokenwire.core.settings import Place, convert, nearest

__all__ = ("Registry", "said")

T = TypeVar("T")
NOTHING: Mapping[str, str] = {}
NO_SETTINGS: Mapping[str, object] = {}


@final
class Registry(Mapping[str, Factory[T]], Generic[T]):
    """Factories of one kind ("codec", "engine", ...), by name, in order of registration."""

    def __init__(self, kind: str, port: type, replaces: Mapping[str, str] = NOTHING) -> None:
        """`port`: what `build` must give. `replaces`: name -> the owner that wins over another."""
        self.kind = kind
        self.port = port
        self._replaces = replaces
        self._factories: dict[str, Factory[T]] = {}
        self._owners: dict[str, str] = {}
        self._frozen = False

    def __getitem__(self, name: str) -> Factory[T]:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def owner(self, name: str) -> str:
        """The plugin that registered `name`; raises KeyError."""
        return self._owners[name]

    def add(self, item: object, owner: str) -> None:
        """Raises PluginError, naming the owner, for what is no usable factory or comes late."""
        factory = self._checked(item, owner)
        if self._frozen:
            raise PluginError(
                f"{owner}: {self.kind} '{factory.name}' came after start-up: register it in "
                f"register_{self.kind}s"
            )
        holder = self._owners.get(factory.name)
        if holder is not None and not self._yields(factory.name, holder, owner):
            return
        self._factories[factory.name] = factory
        self._owners[factory.name] = owner

    def freeze(self) -> None:
        """No more registrations. Raises ConfigError for a `replaces` that replaced nothing."""
        self._frozen = True
        for name, owner in self._replaces.items():
            if self._owners.get(name) == owner:
                continue
            raise ConfigError(
                f"replaces: {self.kind}.{name} = \"{owner}\": plugin '{owner}' registers no "
                f"{self.kind} '{name}'"
            )

    def find(self, name: str, where: str = "") -> Factory[T]:
        """The factory; raises ConfigError that names `where`, the name, and the nearest one."""
        factory = self._factories.get(name)
        if factory is not None:
            return factory
        known = nearest(name, self._factories) or "; none is"
        raise ConfigError(f"{where or self.kind}: no {self.kind} '{name}' is installed{known}")

    def settings(
        self, name: str, values: Mapping[str, object] = NO_SETTINGS, where: str | Place = ""
    ) -> Struct:
        """`values` as the factory's Struct; raises ConfigError for unknown keys, wrong values."""
        place = where if isinstance(where, Place) else Place(where or f"{self.kind} '{name}'")
        return convert(self.find(name).settings, values, place)

    def build(
        self,
        name: str,
        values: Mapping[str, object],
        services: Services,
        where: str | Place = "",
    ) -> T:
        """Make it. Raises ConfigError for the user's faults, PluginError for the plugin's."""
        factory, owner = self.find(name), self._owners.get(name, "")
        settings = self.settings(name, values, where)
        try:
            made: object = factory.build(settings, services)
        except TokenwireError:
            raise
        except Exception as error:
            raise PluginError(
                f"{owner}: {self.kind} '{name}' could not be built: {said(error)}"
            ) from error
        if not isinstance(made, self.port):
            raise PluginError(
                f"{owner}: {self.kind} '{name}' built {made!r}, which is not a {self.port.__name__}"
            )
        return cast("T", made)

    def _checked(self, item: object, owner: str) -> Factory[T]:
        if not isinstance(item, Factory):
            raise PluginError(
                f"{owner}: register_{self.kind}s gave {item!r}, which is not a Factory"
            )
        if not isinstance(item.port, int) or item.port > PORT_VERSION:
            raise PluginError(
                f"{owner}: {self.kind} '{item.name}' was written for port version {item.port}, "
                f"this Tokenwire has {PORT_VERSION}: upgrade Tokenwire, or install an older {owner}"
            )
        wanted: list[tuple[bool, str]] = [
            (isinstance(item.name, str) and bool(item.name), "a name that is a text"),
            (callable(item.build), "a build that can be called"),
            (
                _is_settings(item.settings),
                "a frozen Struct that forbids unknown fields as settings",
            ),
        ]
        for is_right, what in wanted:
            if not is_right:
                raise PluginError(f"{owner}: {self.kind} '{item.name}' needs {what}")
        return cast("Factory[T]", item)

    def _yields(self, name: str, holder: str, owner: str) -> bool:
        """Whether `holder` gives `name` up to `owner`."""
        winner = self._replaces.get(name)
        if winner == owner and holder != owner:
            return True
        if winner == holder and holder != owner:
            return False
        raise PluginError(
            f"{owner}: {self.kind} '{name}' is already owned by {holder}: uninstall or disable one "
            f'(TOKENWIRE_DISABLE), or choose with replaces: {{"{self.kind}.{name}": "{owner}"}}'
        )


def _is_settings(settings: object) -> bool:
    if not (isinstance(settings, type) and issubclass(settings, Struct)):
        return False
    made = settings.__struct_config__
    return bool(made.frozen and made.forbid_unknown_fields)


def said(error: BaseException) -> str:
    """An exception in one line: its text, or its name where it has none."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
