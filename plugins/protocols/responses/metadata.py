"""`metadata`: sixteen pairs of short strings, as the protocol bounds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.core.errors import RequestError

__all__ = ("check_metadata",)

PAIRS: Final = 16
LONGEST_KEY: Final = 64
LONGEST_VALUE: Final = 512


def check_metadata(given: Mapping[str, object] | None) -> None:
    """Raises RequestError."""
    if given is None:
        return
    if len(given) > PAIRS:
        raise _refusal(f"has {len(given)} pairs, and may have {PAIRS}")
    for key, value in given.items():
        if len(key) > LONGEST_KEY:
            raise _refusal(f"has a key of {len(key)} characters, and may have {LONGEST_KEY}")
        if not isinstance(value, str):
            raise _refusal(f"must hold strings: that of {key!r} is none")
        if len(value) > LONGEST_VALUE:
            raise _refusal(
                f"has a value of {len(value)} characters at {key!r}, and may have {LONGEST_VALUE}"
            )


def _refusal(reason: str) -> RequestError:
    return RequestError(f"metadata {reason}", param="metadata", code="invalid_metadata")
