"""Biases of single tokens as several protocols write them: a map whose keys are ids in decimal."""

from __future__ import annotations

from collections.abc import Mapping

from tokenwire.core.errors import RequestError

__all__ = ("read_logit_bias",)


def read_logit_bias(
    given: Mapping[str, float] | None, param: str = "logit_bias"
) -> dict[int, float]:
    """Raises RequestError that names `param` for a key that is no token id."""
    bias: dict[int, float] = {}
    for key, value in (given or {}).items():
        if not (key.isascii() and key.isdigit() and len(key) <= 10 and int(key) < 2**32):
            raise RequestError(
                f"{param} has the key {key[:64]!r}: keys are token ids in decimal digits",
                param=param,
            )
        bias[int(key)] = value
    return bias
