"""What no network can be made of, refused in words before memory is asked for. Knows no family: a
field is named as most checkpoints name it."""

from __future__ import annotations

from collections.abc import Iterator

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.config import ModelConfig

__all__ = ("checked",)


def checked(config: ModelConfig, where: str) -> ModelConfig:
    """The same; ConfigError, in which `where` names the file, if its numbers do not fit."""
    for is_wrong, wanted in (*_of_heads(config), *_of_ropes(config), *_of_weights(config)):
        if is_wrong:
            raise ConfigError(f"{where}: {wanted}: config.json is not a model's, or was edited")
    return config


def _of_heads(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    heads, keys, windows = config.heads, config.kv_heads, config.windows
    yield (
        heads % keys != 0,
        f"num_key_value_heads: wanted a divisor of num_attention_heads ({heads}), got {keys}",
    )
    least = min(windows)
    yield least < 0, f"sliding_window: wanted a number of tokens, or 0 for all, got {least}"


def _of_ropes(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    width = config.head_dim if config.mla is None else config.mla.rope_dim
    for rope in config.ropes:
        yield (
            rope.dim % 2 != 0 or not 2 <= rope.dim <= width,
            f"wanted an even number of rotated dimensions, 2 to {width} a head, got {rope.dim}",
        )
        yield rope.theta <= 0, f"rope_theta: wanted more than 0, got {rope.theta}"
        yield rope.factor <= 0, f"factor of the rope: wanted more than 0, got {rope.factor}"


def _of_weights(config: ModelConfig) -> Iterator[tuple[bool, str]]:
    found = config.quantisation
    if found is not None:
        block = list(found.block)
        yield min(block) < 1, f"weight_block_size: wanted two numbers above 0, got {block}"
    yield config.rms_eps < 0, f"rms_norm_eps: wanted 0 or more, got {config.rms_eps}"
