"""What a chat template can take, as a value: found by probe.py, bent by settings and retries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

__all__ = ("Habits", "Message")

Message: TypeAlias = dict[str, Any]


class Habits(Struct, frozen=True):
    """The defaults are those of a template that takes everything."""

    joiner: str = "\n"
    """Between text parts that become one string."""
    takes_strings: bool = True
    """False: content must be a list of parts."""
    roles: Mapping[str, str] = {}
    """Renames: {"developer": "system"} where the template does not know developer."""
    takes_system: bool = True
    """False: system text goes to the head of the first user message."""
    takes_several_systems: bool = True
    takes_late_systems: bool = True
    merges_system: bool = False
    """True: all system text is joined at the front."""
    takes_calls: bool = True
    """False: calls of the history are written out as text."""
    wants_null_content: bool = False
    """True: calls are seen only in a message whose content is None, so text gets one of its own."""
    takes_results: bool = True
    """False: tool results become user messages."""
    no_tools: tuple[Message, ...] | None = None
    """What the variable `tools` holds when there are none."""
    merges_roles: bool = False
    """True: neighbours of the same role become one message."""
    short_ids: bool = False
    """True: call ids become nine letters and digits, the same for call and result."""
    wants_string_arguments: bool = False
    """True: arguments go as JSON text, for the template puts them next to strings."""
    raw_arguments: bool = False
    """True: arguments that are no JSON object become {"raw": text} instead of the text itself."""
