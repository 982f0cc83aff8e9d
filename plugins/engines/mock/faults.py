"""Faults to inject, from the settings or from a job's annotations. Decides nothing but when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("Faults", "read_faults")

PREFIX = "mock."


class Faults(Struct, frozen=True):
    """At how many generated tokens of a choice each fault strikes; None: never."""

    error_at: int | None = None
    error_cause: str = "internal"
    stall_at: int | None = None
    disconnect_at: int | None = None

    def strike(self, made: int) -> Literal["error", "disconnect", "stall"] | None:
        """What strikes a choice that has made so many tokens."""
        if self.error_at is not None and made >= self.error_at:
            return "error"
        if self.disconnect_at is not None and made >= self.disconnect_at:
            return "disconnect"
        if self.stall_at is not None and made >= self.stall_at:
            return "stall"
        return None


def read_faults(settings: MockSettings, annotations: Mapping[str, str]) -> Faults | None:
    """Annotations `mock.error_at`, `mock.error_cause`, `mock.stall_at`, `mock.disconnect_at` win
    over the settings; None: no fault. Raises ValueError for what is no number."""
    faults = Faults(
        error_at=_number(annotations, "error_at", settings.error_at),
        error_cause=annotations.get(f"{PREFIX}error_cause", settings.error_cause),
        stall_at=_number(annotations, "stall_at", settings.stall_at),
        disconnect_at=_number(annotations, "disconnect_at", settings.disconnect_at),
    )
    strikes = (faults.error_at, faults.stall_at, faults.disconnect_at)
    return None if strikes == (None, None, None) else faults


def _number(annotations: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = annotations.get(PREFIX + name)
    return default if text is None else int(text)
