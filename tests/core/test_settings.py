"""Settings: unknown keys at any depth, secrets wherever a type asks for them, words for values."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from tokenwire.core.errors import ConfigError
from tokenwire.core.secrets import Secret
from tokenwire.core.settings import Place, convert, keys_of, nearest, shown

PLACE = Place("f.yaml", "x")


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    depth: Annotated[int, Meta(ge=1)] = 1
    mode: Literal["fast", "slow"] = "fast"
    token: Secret | None = None


class Outer(Struct, frozen=True, forbid_unknown_fields=True, rename={"klass": "class"}):
    klass: str = ""
    inner: Inner = Inner()
    maybe: Inner | None = None
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    tables: dict[str, dict[str, int]] = {}
    secrets: tuple[Secret, ...] = ()

    def __post_init__(self):
        if self.klass == "none":
            raise ValueError("class: wanted another one")


def refused(values):
    with pytest.raises(ConfigError) as caught:
        convert(Outer, values, PLACE)
    return str(caught.value)


def test_all_of_it():
    values = {
        "class": "c",
        "inner": {"depth": 2, "token": "env:A"},
        "maybe": {"mode": "slow"},
        "many": [{}, {"token": "file:/a"}],
        "named": {"a": {"depth": 3}},
        "tables": {"t": {"u": 1}},
        "secrets": ["env:B"],
    }
    assert convert(Outer, values, PLACE) == Outer(
        klass="c",
        inner=Inner(2, token=Secret("env", "A")),
        maybe=Inner(mode="slow"),
        many=(Inner(), Inner(token=Secret("file", "/a"))),
        named={"a": Inner(3)},
        tables={"t": {"u": 1}},
        secrets=(Secret("env", "B"),),
    )
    assert keys_of(Outer)[0] == "class"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"klass": 1}, "x.klass = 1: there is no such key; the nearest is 'class'"),
        ({"inner": {"dept": 1}}, "x.inner.dept = 1: there is no such key; the nearest is 'depth'"),
        (
            {"maybe": {"zzzz": 1}},
            "x.maybe.zzzz = 1: there is no such key; known: depth, mode, token",
        ),
        (
            {"many": [{}, {"dept": None}]},
            "x.many[1].dept = null: there is no such key; the nearest is 'depth'",
        ),
        ({"named": {"a": {"depth": "1"}}}, 'x.named.a.depth = "1": wanted a whole number'),
        ({"named": {"a": 1}}, "x.named.a = 1: wanted a table"),
        ({"tables": {"t": 1}}, "x.tables.t = 1: wanted a table"),
        ({"inner": {"depth": 0}}, "x.inner.depth = 0: wanted a whole number >= 1"),
        ({"inner": {"depth": True}}, "x.inner.depth = true: wanted a whole number, got true or"),
        ({"inner": {"depth": 1.5}}, "x.inner.depth = 1.5: wanted a whole number, got a number"),
        (
            {"inner": {"mode": "fats"}},
            "x.inner.mode = \"fats\": wanted one of fast, slow; the nearest is 'fast'",
        ),
        ({"inner": {"token": "hunter2"}}, "x.inner.token: wanted env:NAME or file:PATH"),
        ({"secrets": ["env:A", 3]}, "x.secrets[1]: wanted env:NAME or file:PATH"),
        ({"many": {}}, "x.many = a table: wanted a list, got a table"),
        ({"class": "none"}, "x: class: wanted another one"),
    ],
)
def test_each_mistake_is_one_sentence(values, message):
    text = refused(values)
    assert text.startswith(f"f.yaml: {message}")
    assert "hunter2" not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ({"a": 1}, "a table"),
        ([1], "a list"),
        ("a\nb\x1b", '"a\\nb\\x1b"'),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_as_in_a_file(value, text):
    assert shown(value) == text


def test_a_long_value_is_cut():
    assert shown("a" * 500) == '"' + "a" * 54 + ' ..."'


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists), st.text())
def test_a_shown_value_is_one_short_line(value, key):
    assert shown(value, key).isprintable()
    assert len(shown(value, key)) <= 60


@pytest.mark.parametrize("key", ["server.key", "password", "models[0].api_key", "a.auth_token"])
def test_what_may_be_a_secret_is_not_shown(key):
    assert "hunter2" not in shown("hunter2", key)
    assert shown("env:NAME", key) == '"env:NAME"'
    assert shown("bytes", "models[0].tokenizer") == '"bytes"'


def test_nearest_or_all_or_nothing():
    assert nearest("prot", ["port", "host"]) == "; the nearest is 'port'"
    assert nearest("zzz", ["port", "host"]) == "; known: host, port"
    assert nearest("zzz", []) == ""
