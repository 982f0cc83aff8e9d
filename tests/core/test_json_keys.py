"""A key that is written twice is found however keys, strings and white space are spelled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
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


def spelled(text: str, how: int) -> str:
    """As a JSON string: plain, or every character as an escape, in small or capital digits."""
    if how == 0:
        return json.dumps(text, ensure_ascii=False)
    digits = "04x" if how == 1 else "04X"
    return '"' + "".join(f"\\u{format(ord(char), digits)}" for char in text) + '"'


STRINGS = st.builds(spelled, st.text(st.sampled_from('ab:"\\é{['), max_size=3), st.integers(0, 2))
NAMES = st.builds(spelled, st.sampled_from(("a", "b", ":", "messages")), st.integers(0, 2))
LEAVES = STRINGS | st.sampled_from(["1", "-0", "1.50", "1e3", "null", "true", "9" * 30, "[]", "{}"])


def listed(items: list[str], space: str) -> str:
    return f"[{space}" + f",{space}".join(items) + f"{space}]"


def keyed(members: list[tuple[str, str]], before: str, after: str) -> str:
    return "{" + f",{after}".join(f"{key}{before}:{after}{text}" for key, text in members) + "}"


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(keyed, st.lists(st.tuples(NAMES, values), max_size=3), SPACE, SPACE)


TEXTS = st.recursive(
    LEAVES,
    lambda inner: objects(inner) | st.builds(listed, st.lists(inner, max_size=3), SPACE),
    max_leaves=8,
)
PLACES = st.sampled_from(('"messages"', '"tools"', '"metadata"', '"me\\u0073sages"'))
BODIES = st.builds(keyed, st.lists(st.tuples(PLACES, TEXTS), max_size=3), SPACE, SPACE)


def has_twice(body: str) -> bool:
    """Slowly and plainly: at top level, or anywhere within messages and tools."""

    def pairs(found: list[tuple[str, object]]) -> tuple[str, list[tuple[str, object]]]:
        return ("object", found)

    def within(value: object) -> bool:
        match value:
            case ("object", members):
                keys = [key for key, _ in members]
                return len(set(keys)) < len(keys) or any(within(item) for _, item in members)
            case list():
                return any(map(within, value))
        return False

    _, members = json.loads(body, object_pairs_hook=pairs)
    keys = [key for key, _ in members]
    strict = [item for key, item in members if key in ("messages", "tools")]
    return len(set(keys)) < len(keys) or within(strict)


@settings(max_examples=300)
@given(BODIES)
def test_the_verdict_is_that_of_a_plain_reader(body: str) -> None:
    if not has_twice(body):
        assert read_object(body.encode()) == json.loads(body)
        return
    with pytest.raises(RequestError) as caught:
        read_object(body.encode())
    assert caught.value.code == "duplicate_key"


@pytest.mark.parametrize("colon", [":", "\\u003a", "\\u003A", "\\\\u003a"])
def test_a_colon_spelled_as_an_escape_hides_no_key(colon: str) -> None:
    """Two members of one name are one colon too many; an escaped one would make up for it."""
    twice = '{"model":"a","model":"b","user":"' + colon + '"}'
    with pytest.raises(RequestError, match="model is written twice"):
        read_object(twice.encode())
    once = '{ "model":"a","user":"' + colon + '"}'
    assert read_object(once.encode()) == json.loads(once)
