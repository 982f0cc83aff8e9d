"""The list of fields that nothing uses: names without indexes, each once, bounded."""

from __future__ import annotations

from tokenwire.core.ignored import Ignored

KNOWN = frozenset(("role", "content"))


def test_unknown_fields_are_given_back_and_listed_unless_null() -> None:
    ignored = Ignored()
    given = {"role": "user", "b": 1, "a": None, "c": {}}
    assert ignored.unknown(given, KNOWN, "messages[]") == {"b": 1, "a": None, "c": {}}
    assert ignored.unknown({"seed": 1}, KNOWN, "") == {"seed": 1}
    assert ignored.unknown({"role": "user"}, KNOWN, "messages[]") == {}
    assert ignored.paths == ("messages[].b", "messages[].c", "seed")


def test_a_field_is_named_once_whatever_its_index() -> None:
    ignored = Ignored()
    for k in range(3):
        ignored.add(f"messages[{k}].content[1{k}].x")
    assert ignored.paths == ("messages[].content[].x",)


def test_number_and_length_are_bounded() -> None:
    ignored = Ignored()
    ignored.unknown({f"{k}" + "y" * 500: 1 for k in range(500)}, frozenset(), "")
    assert len(ignored.paths) == 64
    assert all(len(path) == 100 for path in ignored.paths)


def test_unknown_paths_are_those_that_unknown_listed() -> None:
    ignored = Ignored()
    ignored.add("known")
    ignored.unknown({"seed": 1}, KNOWN, "")
    assert (ignored.paths, ignored.unknown_paths) == (("known", "seed"), ("seed",))
