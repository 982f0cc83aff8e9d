"""Errors of values that are none of a few say which those few are."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec import Struct

from tokenwire.core.choices import choices
from tokenwire.core.errors import RequestError
from tokenwire.core.json_body import to_struct


class Inner(Struct):
    role: Literal["a", "b"] | None = None
    free: str = ""


class One(Struct, tag="one", tag_field="type"):
    x: int = 0


class Two(Struct, tag="two", tag_field="type"):
    y: Literal["p", "q"] = "p"


class Outer(Struct):
    role: Literal["c", "d"] = "c"
    items: list[Inner] = []
    named: dict[str, Inner] = {}
    parts: list[One | Two] = []


@pytest.mark.parametrize(
    ("path", "legal"),
    [
        (".role", ("c", "d")),
        (".items[3].role", ("a", "b")),
        (".named[...].role", ("a", "b")),
        (".items[0].free", ()),
        (".parts[0].type", ("one", "two")),
        (".parts[0].y", ("p", "q")),
        (".nowhere", ()),
        ("", ()),
    ],
)
def test_what_a_place_allows(path: str, legal: tuple[str, ...]) -> None:
    assert choices(Outer, path) == legal


@pytest.mark.parametrize(
    ("value", "at", "param", "end"),
    [
        ({"role": "z"}, "", "role", "'z': it must be one of c, d"),
        ({"items": [{}, {"role": "z"}]}, "q", "q.items[1].role", "'z': it must be one of a, b"),
        ({"parts": [{"type": "z"}]}, "", "parts[0].type", "'z': it must be one of one, two"),
        ({"items": [{"role": "z" * 999}]}, "", "items[0].role", ": it must be one of a, b"),
        ({"items": [{"free": 1}]}, "", "items[0].free", "expected `str`, got `int`"),
    ],
)
def test_an_error_lists_it(value: object, at: str, param: str, end: str) -> None:
    with pytest.raises(RequestError) as caught:
        to_struct(value, Outer, at=at)
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")
    assert caught.value.message.endswith(end)
