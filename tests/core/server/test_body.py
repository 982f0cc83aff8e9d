"""Bodies within bounds."""

from __future__ import annotations

import gzip
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.server.body import declared_length, inflate, is_gzip
from tokenwire.core.server.carrier import join_headers


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(0, 600))
def test_gzip_gives_all_of_the_content_or_413(members, limit):
    content = b"".join(members)
    data = b"".join(gzip.compress(member) for member in members)
    if len(content) <= limit:
        assert inflate(data, limit) == content
    else:
        with pytest.raises(RequestError) as caught:
            inflate(data, limit)
        assert caught.value.kind is ErrorKind.TOO_LARGE


@given(st.binary(max_size=200), st.integers(0, 100))
def test_any_bytes_give_content_or_a_request_error(data, limit):
    with suppress(RequestError):
        assert len(inflate(data, limit)) <= limit


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_cut_gzip_is_never_taken(content, data):
    whole = gzip.compress(content)
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(RequestError):
        inflate(whole[:cut], 1000)


def test_endless_members_are_refused():
    with pytest.raises(RequestError, match="members"):
        inflate(gzip.compress(b"") * 2000, 1000)


@pytest.mark.parametrize(
    ("headers", "length"),
    [({}, 0), ({"content-length": "5"}, 5), ({"transfer-encoding": "chunked"}, None)],
)
def test_declared_length(headers, length):
    assert declared_length(headers, 10) == length


@pytest.mark.parametrize("text", ["11", "9" * 5000, "-1", "+1", "1_0", "٣", "", "5, 5"])
def test_lengths_too_large_or_no_numbers_are_refused(text):
    with pytest.raises(RequestError):
        declared_length({"content-length": text}, 10)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", " gzip "])
def test_gzip_by_any_spelling(coding):
    assert is_gzip({"content-encoding": coding})


def test_no_coding_is_no_gzip():
    assert not is_gzip({})
    assert not is_gzip({"content-encoding": "identity"})


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "cookie"]), st.text("xyz", max_size=3))))
def test_joining_headers_loses_nothing_and_keeps_order(pairs):
    joined = join_headers(pairs)
    for name in {name for name, _ in pairs}:
        between = "; " if name == "cookie" else ", "
        assert joined[name] == between.join(value for key, value in pairs if key == name)
