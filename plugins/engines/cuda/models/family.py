"""What a family says of itself: which checkpoints are its own, and how their config is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.document import Document

__all__ = ("Family",)


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    architectures: tuple[str, ...]
    """As config.json's `architectures` names them."""
    read: Callable[[Document], ModelConfig]
    """Raises ConfigError that names the file and the field."""
