"""Where tokens stand in the text, and how their bytes are written."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.events import TokenLogprob
from tokenwire.plugins.protocols.completions.entries import Cursor, entries, spelled, unspelled

BYTES = st.binary(max_size=6)


def token(data: bytes, logprob: float = -1.0, *top: TokenLogprob) -> TokenLogprob:
    return TokenLogprob(0, data.decode("utf-8", "replace"), data, logprob, top)


@given(BYTES)
def test_bytes_are_spelled_and_read_back(data: bytes) -> None:
    assert unspelled(spelled(data)) == data


@pytest.mark.parametrize("text", ["bytes:", "bytes:\\xzz", "bytes:\\xa", "a"])
def test_text_that_looks_like_bytes_is_text(text: str) -> None:
    assert unspelled(text) in (text.encode(), b"")


@given(st.text(max_size=30), st.lists(st.integers(1, 5), max_size=30), st.integers(1, 7))
def test_offsets_count_characters_and_never_fall(text: str, cuts: list[int], size: int) -> None:
    """Tokens of any cutting of the bytes; the text in one delta, and in several."""
    text = text.encode("utf-8", "replace").decode()
    data = text.encode()
    tokens, at = [], 0
    for length in [*cuts, len(data)]:
        if at < len(data):
            tokens.append(token(data[at : at + length]))
            at += length
    offsets = Cursor().place(tokens, text)
    assert offsets == sorted(offsets)
    at = 0
    for each, offset in zip(tokens, offsets, strict=True):
        assert offset == len(data[:at].decode("utf-8", "ignore"))
        at += len(each.bytes)
    # As a decoder sends them: a token goes with the delta in which its text begins.
    cursor, streamed, begun = Cursor(), [], 0
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        own = [k for k, offset in enumerate(offsets) if start <= offset < start + len(piece)]
        own = [k for k in own if k >= begun]
        begun = max([begun, *(k + 1 for k in own)])
        streamed += cursor.place([tokens[k] for k in own], piece)
    assert streamed == offsets


def test_a_token_that_is_not_in_the_text_takes_no_room() -> None:
    bos = token(b"<s>")
    assert Cursor().place([bos, token(b"ab"), token(b"c")], "abc") == [0, 0, 2]


def test_a_first_piece_loses_its_space() -> None:
    assert Cursor().place([token(b" ab"), token(b" c")], "ab c") == [0, 2]


def test_values_that_json_cannot_hold() -> None:
    other = token(b"\xe6", -2.0)
    arrays = entries([token(b"a", nan), token(b"b", -inf, other)], [0, 1], top=True)
    assert arrays == {
        "tokens": ["a", "b"],
        "token_logprobs": [None, -9999.0],
        "top_logprobs": [None, {"bytes:\\xe6": -2.0, "b": -9999.0}],
        "text_offset": [0, 1],
    }
    assert entries([token(b"a")], [0], top=False)["top_logprobs"] is None
