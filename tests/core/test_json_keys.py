"""A key that is written twice is found however keys, strings and white space are spelled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import RequestError
from tokenwire.core.json_body import read_object

KEYS = st.text(st.sampled_from('ab:"\\ \n'), max_size=4)
SPACE = st.text(st.sampled_from(" \t\r\n"), max_size=4)
VALUES = KEYS.map(json.dumps) | st.sampled_from(["1", "[]", '{"a":":"}', '["\\\\",":"]'])
MEMBERS = st.lists(st.tuples(KEYS, SPACE, SPACE, VALUES), max_size=6)


def written(members: list[tuple[str, str, str, str]]) -> bytes:
    said = (f"{json.dumps(key)}{before}:{after}{value}" for key, before, after, value in members)
    return ("{" + ",".join(said) + "}").encode()


@given(MEMBERS)
def test_twice_is_refused_and_once_is_read(members: list[tuple[str, str, str, str]]) -> None:
    body = written(members)
    keys = [key for key, *_ in members]
    if len(set(keys)) == len(keys):
        assert read_object(body) == json.loads(body)
        return
    with pytest.raises(RequestError) as caught:
        read_object(body)
    assert caught.value.code == "duplicate_key"


@pytest.mark.parametrize(
    "more",
    [
        '"x\\\\":1',
        '"x" :1',
        '"x"\n :1',
        '"y":":"',
        '"y":[":",":"]',
        '"\\"":"\\":"',
        '"y":"a\\": b"',
    ],
)
def test_nothing_beside_it_hides_it(more: str) -> None:
    with pytest.raises(RequestError, match="model is written twice"):
        read_object(('{"model":"a","model":"b",' + more + "}").encode())
