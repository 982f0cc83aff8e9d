"""Which of a text's vectors stands for it, as sentence-transformers' files say. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tokenwire.core.errors import ConfigError

__all__ = ("PoolingSpec", "read_pooling")

Kind = Literal["mean", "last", "first"]
MODES: Mapping[str, Kind] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_cls_token": "first",
}
NAMES: Mapping[str, Kind] = {"mean": "mean", "lasttoken": "last", "cls": "first"}
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


class PoolingSpec(Struct, frozen=True):
    kind: Kind
    """Over the tokens of a text: their mean, or the vector of the last or the first."""
    normalise: bool = True
    """Vectors of length 1."""


def read_pooling(folder: Path, default: Kind) -> PoolingSpec:
    """From modules.json and 1_Pooling/config.json; without them `default`, normalised.

    Raises ConfigError for modules or modes that this engine has not.
    """
    modules = folder / "modules.json"
    if not modules.is_file():
        return PoolingSpec(default)
    listed = _read(modules, list[dict[str, Any]])
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in listed]
    unknown = [kind for kind in kinds if kind not in KNOWN_MODULES]
    if unknown:
        raise ConfigError(
            f"{modules}: wanted only {', '.join(KNOWN_MODULES)}, got {', '.join(unknown)}: "
            "this engine cannot embed with it"
        )
    path = next(
        (
            str(each.get("path", ""))
            for each, kind in zip(listed, kinds, strict=True)
            if kind == "Pooling"
        ),
        None,
    )
    kind = default if path is None else _kind(folder / path / "config.json")
    return PoolingSpec(kind, "Normalize" in kinds)


def _kind(file: Path) -> Kind:
    if not file.is_file():
        raise ConfigError(f"{file}: modules.json names it, and it is not there")
    fields = _read(file, dict[str, Any])
    named = fields.get("pooling_mode")
    if isinstance(named, str) and named in NAMES:
        return NAMES[named]
    chosen = [name for name, value in fields.items() if name.startswith("pooling_mode") and value]
    if len(chosen) == 1 and chosen[0] in MODES:
        return MODES[chosen[0]]
    raise ConfigError(f"{file}: wanted one of {', '.join(MODES)} to be true, got {chosen}")


def _read(file: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{file}: {error}") from error
