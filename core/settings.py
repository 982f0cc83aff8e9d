"""Untyped mappings to settings Structs, a sentence for each mistake. Knows no files and no plugins.

msgspec converts; before it does, a walk along the type finds unknown keys (which need the nearest
known one in their message) and reads secrets, whose text must never be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

import msgspec
from msgspec import Struct, inspect

from tokenwire.core.errors import ConfigError
from tokenwire.core.secrets import Secret

__all__ = ("Place", "convert", "keys_of", "nearest", "parse_secret", "shown")

T = TypeVar("T", bound=Struct)

SECRETIVE = re.compile(r"(pass|secret|credential|api_?key|token$|\bkeys?\b)", re.IGNORECASE)
AT = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")
STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
LONGEST = 60
CUT = ' ..."'
WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
    "null": "nothing",
}


class Place(Struct, frozen=True):
    """Where a value stands: a file (or another source) and the key in it."""

    file: str
    key: str = ""

    def at(self, key: str) -> Place:
        return Place(self.file, f"{self.key}.{key}" if self.key else key)

    def index(self, position: int) -> Place:
        return Place(self.file, f"{self.key}[{position}]")

    def error(self, reason: str) -> ConfigError:
        """Of the key as a whole: "FILE: KEY: REASON"."""
        return ConfigError(": ".join(part for part in (self.file, self.key, reason) if part))

    def wrong(self, value: object, reason: str) -> ConfigError:
        """Of a value: "FILE: KEY = VALUE: REASON"."""
        key = f"{self.key} = {shown(value, self.key)}" if self.key else shown(value)
        return Place(self.file, key).error(reason)


def shown(value: object, key: str = "") -> str:
    """A value for a message: short, and never one that may be a secret."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, str) and SECRETIVE.search(key) and not value.startswith(("env:", "file:")):
        return "(not shown, it may be secret)"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return text if len(text) <= LONGEST else text[: LONGEST - len(CUT)] + CUT


def nearest(word: str, known: Iterable[str]) -> str:
    """For the end of a message: "; the nearest is 'port'", or all that is known, or nothing."""
    words = sorted(set(known))
    close = get_close_matches(word, words, n=1, cutoff=0.5)
    if close:
        return f"; the nearest is '{close[0]}'"
    return f"; known: {', '.join(words)}" if words else ""


def parse_secret(value: object, place: Place) -> Secret:
    """`env:NAME` or `file:PATH`; the message never repeats the value, which may be the secret."""
    if isinstance(value, str):
        source, _, name = value.partition(":")
        if name and source == "env":
            return Secret("env", name)
        if name and source == "file":
            return Secret("file", name)
    raise place.error(
        "wanted env:NAME or file:PATH, got something else (not shown, it may be secret)"
    )


def keys_of(settings: type[Struct]) -> tuple[str, ...]:
    """The keys that a settings Struct knows."""
    return settings.__struct_encode_fields__


def convert(settings: type[T], values: Mapping[str, object], place: Place) -> T:
    """The Struct; raises ConfigError with one sentence: place, value, what was wanted."""
    ready: object = values
    try:
        ready = _walk(inspect.type_info(settings), values, place)
        return msgspec.convert(ready, settings, strict=True)
    except msgspec.ValidationError as error:
        raise _sentence(str(error), ready, place) from error
    except RecursionError as error:
        raise place.error("is nested too deeply") from error


def _walk(kind: inspect.Type, value: object, place: Place) -> object:
    match kind:
        case inspect.StructType(cls=cls) if cls is Secret:
            return value if isinstance(value, Secret) else parse_secret(value, place)
        case inspect.StructType(fields=fields) if isinstance(value, Mapping):
            return _walk_fields({field.encode_name: field.type for field in fields}, value, place)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if isinstance(
            value, list | tuple
        ):
            return [_walk(item, entry, place.index(n)) for n, entry in enumerate(value)]
        case inspect.DictType(value_type=item) if isinstance(value, Mapping):
            return {key: _entry(item, entry, place.at(str(key))) for key, entry in value.items()}
        case inspect.LiteralType(values=known) if value not in known:
            words = ", ".join(str(word) for word in known)
            hint = nearest(str(value), [str(word) for word in known]).split("; known")[0]
            raise place.wrong(value, f"wanted one of {words}{hint}")
        case inspect.UnionType(types=types):
            return _walk_union(types, value, place)
    return value


def _entry(kind: inspect.Type, value: object, place: Place) -> object:
    """A mapping's value. Why apart: msgspec does not say under which key it stands."""
    if isinstance(kind, inspect.DictType | inspect.StructType) and not isinstance(value, Mapping):
        raise place.wrong(value, "wanted a table")
    if isinstance(kind, inspect.StrType) and not isinstance(value, str):
        raise place.wrong(value, "wanted a text")
    if isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
        return convert(kind.cls, value, place)
    return _walk(kind, value, place)


def _walk_fields(
    types: Mapping[str, inspect.Type], value: Mapping[object, object], place: Place
) -> dict[object, object]:
    walked: dict[object, object] = {}
    for key, entry in value.items():
        if key not in types:
            raise place.at(str(key)).wrong(entry, "there is no such key" + nearest(str(key), types))
        walked[key] = _walk(types[str(key)], entry, place.at(str(key)))
    return walked


def _walk_union(types: tuple[inspect.Type, ...], value: object, place: Place) -> object:
    structs = [kind for kind in types if isinstance(kind, inspect.StructType)]
    texts = [kind for kind in types if isinstance(kind, inspect.StrType)]
    if value is None or len(structs) != 1:
        return value
    is_secret = structs[0].cls is Secret
    if isinstance(value, Mapping) or (is_secret and isinstance(value, str) and not texts):
        return _walk(structs[0], value, place)
    return value


def _sentence(message: str, values: object, place: Place) -> ConfigError:
    found = AT.match(message)
    reason, path = (found["reason"], found["path"] or "") if found else (message, "")
    value: object = values
    for key, position in STEP.findall(path):
        if key and isinstance(value, Mapping):
            value, place = value.get(key), place.at(key)
        elif position and isinstance(value, list):
            value, place = value[int(position)], place.index(int(position))
    if missing := MISSING.match(reason):
        return place.error(f"the key '{missing['key']}' is missing")
    reason = re.sub(r"`([^`]*)`", lambda word: _plain(word[1]), reason)
    reason = reason.replace("Expected", "wanted")
    # Why: of a whole table, the Struct itself complains, and names its keys.
    is_whole = isinstance(value, Mapping) and not reason.startswith("wanted")
    return place.error(reason) if is_whole else place.wrong(value, reason)


def _plain(kinds: str) -> str:
    """msgspec's `int | null` in words that a reader of YAML knows."""
    return " or ".join(WORDS.get(kind, kind) for kind in kinds.split(" | "))
