"""How a family writes tool calls as JSON objects. Reads nothing."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("JsonShape",)


class JsonShape(Struct, frozen=True):
    """How a family writes calls as JSON."""

    begin: str = ""
    """The marker before a call, where a model may write it twice."""
    end: str = ""
    """The marker behind the calls, if there is one."""
    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    ids: tuple[str, ...] = ()
    """Keys of the call's id; it counts where it stands before the name."""
    wraps: tuple[str, ...] = ()
    """Keys of an object that holds name and arguments ("function")."""
    between: str = " \t\r\n,[]}"
    """What may stand behind a call without ending the reading."""
    extra: tuple[str, ...] = ()
    """Other keys that may stand before the name of a strict call."""
    is_strict: bool = False
    """Whether only the keys above, and only names of the answer's tools, make a call (for calls
    without a marker)."""
