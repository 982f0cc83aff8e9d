"""Sizes are read from headers of each format; anything else is no picture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pictures import PICTURES, png
from tokenwire.plugins.dialects._shared.image_size import image_size

SIDE = st.integers(1, 16_383)


@pytest.mark.parametrize("kind", PICTURES)
@given(width=SIDE, height=SIDE)
def test_the_size_is_in_the_header(kind: str, width: int, height: int) -> None:
    assert image_size(PICTURES[kind](width, height)) == (width, height)


@pytest.mark.parametrize("kind", PICTURES)
def test_a_header_that_is_cut_off_is_none(kind: str) -> None:
    data = PICTURES[kind](300, 200)
    sizes = {image_size(data[:end]) for end in range(len(data) + 1)}
    assert sizes == {None, (300, 200)}


@given(st.binary(max_size=64), st.sampled_from([b"", b"\xff\xd8", b"RIFF", b"GIF89a", b"\x89PNG"]))
def test_any_bytes_have_a_size_or_none(data: bytes, begin: bytes) -> None:
    found = image_size(begin + data)
    assert found is None or min(found) > 0


def test_a_picture_without_pixels_is_none() -> None:
    assert image_size(png(0, 5)) is None
