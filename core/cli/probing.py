"""Links as a package measures them: the entry point `tokenwire.links`. Imports none of them before
it is asked, and measures nothing itself."""

from __future__ import annotations

from importlib.metadata import entry_points

from tokenwire.core.cost.links import Links, Probe
from tokenwire.core.errors import ConfigError
from tokenwire.core.registry import said

__all__ = ("GROUP", "links_of")

GROUP = "tokenwire.links"


def links_of(asked: Probe) -> Links:
    """What the first package that can measure finds, a function (Probe) -> Links. Raises
    ConfigError: there is none, or what it says of this machine."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    if not points:
        raise ConfigError(
            f"--measure: no installed package measures links (entry points {GROUP!r}): install "
            "tokenwire anew, or plan without it"
        )
    point = points[0]
    try:
        measure = point.load()
    except Exception as error:
        raise ConfigError(
            f"--measure: {point.value} cannot be imported: {said(error)}: install its package "
            "anew, or plan without it"
        ) from error
    found = measure(asked)
    if not isinstance(found, Links):
        raise ConfigError(
            f"--measure: {point.value} gave {type(found).__name__}, wanted Links: its package is "
            "to be mended; plan without it"
        )
    return found
