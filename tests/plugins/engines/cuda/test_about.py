"""What the engine says of itself when it has started can be shown: in a line, and as JSON."""

from __future__ import annotations

import msgspec
import pytest

from tests.plugins.engines.cuda.driving import engine
from tests.plugins.engines.reference.tiny import tiny_llama

pytestmark = pytest.mark.torch


def test_its_status_is_plain() -> None:
    from tokenwire.plugins.engines.cuda.about import line

    about = engine(tiny_llama()).status().about
    # Why exact types: libraries bring kinds of text that no encoder takes.
    assert {type(value) for value in about.values()} == {str, int, float}
    assert msgspec.json.decode(msgspec.json.encode(about)) == about
    told = line(about)
    for name in ("load_gb_s", "weights_gib", "kv_gib", "kv_blocks", "full_context_requests"):
        assert f" {name}={about[name]}" in told
    assert f'kernels="{about["kernels"]}"' in told
