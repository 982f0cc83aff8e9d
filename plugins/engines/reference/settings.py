"""The reference engine's settings."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ("ReferenceSettings",)


class ReferenceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`{plugin = "reference", ...}`"""

    path: str | None = None
    """A folder that transformers loads, or one with a .gguf file. None: the model's checkpoint."""
    gguf: str | None = None
    """The .gguf file's name, where the folder has several."""
    device: str = "auto"
    """"auto" (a GPU, where torch sees one), "cpu", "cuda", "cuda:1", ..."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """"auto": float32 on a CPU, the checkpoint's own (bfloat16 from a .gguf) on a GPU."""
    context_length: int | None = None
    """Tokens of prompt and answer. None: the model's."""
    max_running: int = 8
    """Choices that take turns, each with a KV cache of its own."""
    max_waiting: int = 256
    """Choices that wait; more are refused as overloaded."""
    credit_cap: int = 1024
