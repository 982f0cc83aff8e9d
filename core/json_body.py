"""JSON request bodies, read strictly and quickly; every fault is a RequestError. No protocol.

What is refused and why: broken UTF-8, lone surrogates and NaN (not JSON: RFC 8259, 8.1 and 6),
nesting deeper than MAX_DEPTH (it would exhaust the stack of whoever walks it), and a key written
twice at top level, within `messages` or within `tools` (two readers would read two requests). A key
written twice elsewhere is tolerated and the last one wins.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from gc import is_tracked
from typing import Any, Final, TypeVar

import msgspec

from tokenwire.core.choices import choices
from tokenwire.core.errors import RequestError

__all__ = ("MAX_DEPTH", "check_depth", "read_object", "to_struct")

T = TypeVar("T")

MAX_DEPTH: Final = 128
"""Objects and arrays within one another, the outermost included."""

LONGEST_ECHO: Final = 300
"""Characters of an error message that may repeat what the client sent."""

NO_DUPLICATES_IN: Final = ("messages", "tools")
CONTAINERS: Final = frozenset((dict, list))

_untyped: Final = msgspec.json.Decoder()
_encode: Final = msgspec.json.Encoder().encode

# Maps both kinds of bracket to one kind; the rest is deleted.
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_TOO_DEEP: Final = b"[" * (MAX_DEPTH + 1)
_PASSES: Final = 8
_RUN: Final = re.compile(rb"\[+|\]+")
_OPEN: Final = ord("[")

_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\ud)(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\uD)"
    rb"[c-fC-F][0-9a-fA-F]{2})"
)
_NOT_NUMBERS: Final = re.compile(rb"\b(?:NaN|Infinity|nan|inf)\b")
_AT: Final = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(.*)`$")
_BYTE: Final = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?$")


def read_object(body: bytes) -> dict[str, object]:
    """The body's object, decoded without types. Raises RequestError: what is wrong, and where."""
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]  # Why: RFC 8259, 8.1 lets a reader ignore a byte order mark.
    try:
        value = _untyped.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        outside = _outside_strings(body)
        if _is_too_deep(outside):
            raise _too_deep() from None
        raise RequestError(_fault(body, outside, error), code="invalid_json") from None
    if _may_be_deep(value) and _depth(value) > MAX_DEPTH:
        raise _too_deep()
    if type(value) is not dict:
        raise RequestError(f"the body must be a JSON object, not {_kind(value)}")
    if not _has_each_key_once(body, value):
        _refuse_duplicates(body)
    return value


def _too_deep() -> RequestError:
    return RequestError(
        f"the body is nested deeper than {MAX_DEPTH} objects and arrays", code="too_deep"
    )


def check_depth(text: str, *, param: str) -> None:
    """Refuse JSON text that stands inside a string (a call's arguments) and is nested too deep."""
    opening = text.count("[") + text.count("{")
    if opening > MAX_DEPTH and _is_too_deep(_outside_strings(text.encode("utf-8", "replace"))):
        raise RequestError(
            f"{param} is nested deeper than {MAX_DEPTH} objects and arrays",
            param=param,
            code="too_deep",
        )


def to_struct(value: object, kind: type[T], *, at: str = "") -> T:
    """`value` as `kind`; raises RequestError with the path of the field at fault, below `at`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, path = str(error), ""
        if found := _AT.search(message):
            message, path = message[: found.start()], found.group(1)
        param = (at + path).removeprefix(".")
        if missing := _MISSING.match(message):
            param = f"{param}.{missing.group(1)}".removeprefix(".")
            raise RequestError(f"{param} is missing", param=param, code="missing_field") from None
        message = message[:1].lower() + message[1:LONGEST_ECHO]
        if message.startswith("invalid ") and (legal := choices(kind, path)):
            message = f"{message}: it must be one of {', '.join(legal)}"
        where = f"{param}: {message}" if param else message
        raise RequestError(where, param=param or None, code="invalid_type") from None
    except RecursionError:
        raise RequestError(f"{at or 'the body'} is nested too deep", param=at or None) from None


def _outside_strings(body: bytes) -> bytes:
    """What stands outside JSON strings. A run of backslashes begins with one that escapes."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(body.split(b'"')[::2])


def _has_each_key_once(body: bytes, value: dict[str, object]) -> bool:
    """Whether the body certainly has no key twice in one object; `value` is what it was read as.

    Strategy: written again, `value` has no key twice. So neither has the body where it is the same
    text, as most clients write it. Else colons are counted: each key written over is one more in
    the body, and only a colon that the body spells as an escape is one less.
    """
    try:
        again = _encode(value)
    except (msgspec.MsgspecError, OverflowError):
        return False  # Why: integers past 64 bits are read, and cannot be written.
    return again == body or (
        body.count(b":") == again.count(b":")
        and (b"\\u003" not in body or not (b"\\u003a" in body or b"\\u003A" in body))
    )


def _is_too_deep(outside: bytes) -> bool:
    """Each pass takes the innermost brackets away, and one level with them.

    Strategy: the passes run in C and leave few runs of brackets even of the worst body; those are
    counted. What does not pair is not JSON, which the decoder says.
    """
    if outside.count(b"[") + outside.count(b"{") <= MAX_DEPTH:
        return False
    brackets = outside.translate(_BRACKETS, _NOT_BRACKETS)
    for _ in range(_PASSES):
        if _TOO_DEEP in brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    depth = _PASSES
    for run in _RUN.findall(brackets):
        depth += len(run) if run[0] == _OPEN else -len(run)
        if depth > MAX_DEPTH:
            return True
    return False


def _may_be_deep(root: object) -> bool:
    """False only where `root` is certainly no deeper than MAX_DEPTH.

    Strategy: CPython's collector does not track strings, numbers and dicts of nothing but those, so
    a look at what it tracks passes over most of a body, and misses one level at most. An
    interpreter that tracks every dict is slower here, and says the same.
    """
    depth = 1
    level: list[Any] = [root] if is_tracked(root) else []
    while level and depth < MAX_DEPTH:
        depth += 1
        level = [
            item
            for value in level
            for item in (value.values() if type(value) is dict else value)
            if is_tracked(item)
        ]
    return bool(level)


def _depth(root: object) -> int:
    """How many containers stand within one another: up to one more than MAX_DEPTH, where it
    stops."""
    depth = 0
    level: list[Any] = [root] if type(root) in CONTAINERS else []
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            item
            for value in level
            for item in (value.values() if type(value) is dict else value)
            if type(item) in CONTAINERS
        ]
    return depth


class _Twice(dict[str, object]):
    """An object in which `key` was written twice."""

    key: str = ""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = dict(pairs)
    if len(found) == len(pairs):
        return found
    twice = _Twice(found)
    counts = Counter(key for key, _ in pairs)
    twice.key = next(key for key, count in counts.items() if count > 1)
    return twice


def _refuse_duplicates(body: bytes) -> None:
    root = json.loads(body, object_pairs_hook=_object, parse_int=str, parse_float=str)
    if isinstance(root, _Twice):
        raise _twice(root.key)
    for name in NO_DUPLICATES_IN:
        stack: list[tuple[str, object]] = [(name, root.get(name))]
        while stack:
            path, value = stack.pop()
            if isinstance(value, _Twice):
                raise _twice(f"{path}.{value.key}")
            if isinstance(value, dict):
                stack.extend((f"{path}.{key}", item) for key, item in value.items())
            elif isinstance(value, list):
                stack.extend((f"{path}[{k}]", item) for k, item in enumerate(value))


def _twice(path: str) -> RequestError:
    return RequestError(
        f"the key {path} is written twice: send it once", param=path, code="duplicate_key"
    )


def _fault(body: bytes, outside: bytes, error: Exception) -> str:
    """A sentence for the sender; the decoder's own words are terse and sometimes off the point."""
    if isinstance(error, RecursionError):
        return "the body is nested too deep"
    try:
        body.decode()
    except UnicodeDecodeError as broken:
        return f"the body is not valid UTF-8 at byte {broken.start}"
    if lone := _LONE_SURROGATE.search(body.replace(b"\\\\", b"__")):
        return f"the body has a lone surrogate, which is no character, at byte {lone.start()}"
    if found := _NOT_NUMBERS.search(outside):
        return f"the body is not valid JSON: {found.group().decode()} is not a JSON number"
    message, byte = _BYTE.match(str(error)).groups()  # type: ignore[union-attr]
    message = message[:1].lower() + message[1:].partition(" - at ")[0]
    return f"the body is not valid JSON: {message}" + (f" at byte {byte}" if byte else "")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case list():
            return "an array"
        case str():
            return "a string"
        case _:
            return "a number"
