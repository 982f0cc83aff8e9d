"""How many tokens a picture takes: transformers' own rule is the oracle."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pictures import png
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects._shared.qwen_vl import Grid, QwenVl, media_of

SIDE = st.integers(1, 5000)
GRIDS = st.sampled_from([Grid(), Grid(16, 2, 65_536, 16_777_216), Grid(14, 2, 3136, 12_845_056)])


def oracle() -> Callable[..., tuple[int, int]]:
    """`smart_resize` alone: its module imports what decodes pictures."""
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("needs transformers")
    path = Path(spec.origin).parent / "models" / "qwen2_vl" / "image_processing_qwen2_vl.py"
    tree = ast.parse(path.read_text())
    (rule,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "smart_resize"
    )
    space: dict[str, Any] = {"math": math}
    exec(compile(ast.Module([rule], []), str(path), "exec"), space)
    found: Callable[..., tuple[int, int]] = space["smart_resize"]
    return found


@pytest.mark.torch  # Why: transformers comes with the same extra.
def test_the_rule_is_the_published_one() -> None:
    resize = oracle()

    @given(SIDE, SIDE, GRIDS)
    def agrees(width: int, height: int, grid: Grid) -> None:
        if max(width, height) > 200 * min(width, height):
            return
        rows, columns = resize(
            height, width, factor=grid.unit, min_pixels=grid.least, max_pixels=grid.most
        )
        assert grid.tokens(width, height) == rows * columns // grid.unit**2

    agrees()


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(28, 28, 4), (224, 224, 64), (640, 480, 391), (1920, 1080, 1222), (1, 1, 4), (56, 56, 4)],
)
def test_figures_worked_out_by_hand(width: int, height: int, tokens: int) -> None:
    assert QwenVl(Grid()).length("image", png(width, height)) == tokens


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n", b"<svg/>"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(RequestError, match="must be PNG, JPEG, GIF or WebP"):
        QwenVl(Grid()).length("image", data)


def test_a_stripe_is_refused() -> None:
    with pytest.raises(RequestError, match="more than 200 times"):
        QwenVl(Grid()).length("image", png(2010, 10))


def test_a_checkpoint_says_how_its_pictures_are_seen(tmp_path: Path) -> None:
    def write(name: str, **values: Any) -> None:
        (tmp_path / name).write_bytes(msgspec.json.encode(values))

    assert media_of(None) is None
    write("config.json", model_type="qwen2")
    assert media_of(Checkpoint(tmp_path)) is None
    write("config.json", model_type="qwen2_5_vl")
    plain = media_of(Checkpoint(tmp_path))
    assert plain is not None
    assert plain.revision == "14-2-3136-1003520"
    write("preprocessor_config.json", patch_size=14, merge_size=2, max_pixels=12_845_056)
    wide = media_of(Checkpoint(tmp_path))
    assert wide is not None
    assert wide.revision == "14-2-3136-12845056"
    sizes = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
    write("preprocessor_config.json", patch_size=16, merge_size=2, size=sizes)
    edges = media_of(Checkpoint(tmp_path))
    assert edges is not None
    assert edges.revision == "16-2-65536-16777216"
