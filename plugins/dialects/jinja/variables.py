"""Template variables: the names a request may not set, and how reasoning settings are spelt."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from tokenwire.core.dialogue import ReasoningSettings
from tokenwire.plugins.dialects.jinja.meter import METER

__all__ = ("RESERVED", "reasoning_variables")

RESERVED: Final = frozenset(
    {
        "add_generation_prompt", "bos_token", "chat_template", "continue_final_message", "dict",
        "eos_token", "messages", "namespace", "pad_token", "raise_exception", "range",
        "strftime_now", "template", "tokenize", "tools", "unk_token", METER,
    }
)  # fmt: skip
SWITCHES: Final = ("enable_thinking", "thinking")
EFFORTS: Final = ("reasoning_effort", "thinking_effort")


def reasoning_variables(settings: ReasoningSettings, read: Collection[str]) -> dict[str, Any]:
    """Of the variables that the template reads, those that say what `settings` says.

    A mode of on or off sets the switches, an effort the effort names, a budget `thinking_budget`;
    an effort of "none" also switches off. Unset and adaptive leave the template its own default.
    """
    variables: dict[str, Any] = {}
    off = settings.mode == "off" or (settings.mode is None and settings.effort == "none")
    if off or settings.mode == "on":
        variables.update(dict.fromkeys(SWITCHES, not off))
    if settings.mode is not None:
        words = {"on": "enabled", "off": "disabled", "adaptive": "adaptive"}
        variables["thinking_mode"] = words[settings.mode]
    if settings.effort is not None and not off:
        variables.update(dict.fromkeys(EFFORTS, settings.effort))
    if settings.budget is not None and not off:
        variables["thinking_budget"] = settings.budget
    elif off:
        variables["thinking_budget"] = 0
    return {name: value for name, value in variables.items() if name in read}
