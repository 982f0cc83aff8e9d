"""A call's arguments, piece by piece, as JSON text that is an object at its end. Pure.

What a model writes goes out as written while it may still become an object that a request can hold.
Where it cannot, the object is closed there, and the rest is its member "raw":

- text that does not begin as an object is `{"raw": TEXT}`;
- of an object that stops being JSON, whole members stay, the member in whose value it stopped is
  null at last (nobody may run with half a value), and "raw" has what comes from there on.

Unary bodies are made by the same machine, so that a stream adds up to them.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.json_body import MAX_DEPTH

__all__ = ("InputJson", "InputState")

DEEPEST: Final = MAX_DEPTH - 5
"""A request's body, its messages, one of them, its content and a block stand around an input."""
LONGEST_SCALAR: Final = 4000
"""Digits; Python's own reader takes no more."""

Expect: TypeAlias = Literal["start", "value", "first", "key", "first_key", "colon", "comma", "end"]

ESCAPE: Final = (
    r'\\(?:["\\/bfnrt]|u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
)
RUN: Final = re.compile(rf'(?:[^"\\\x00-\x1f]++|{ESCAPE})*+')
CUT_ESCAPE: Final = re.compile(
    r"\\(?:u(?:[dD](?:[0-7][0-9a-fA-F]{0,1}|[89abAB](?:[0-9a-fA-F]{1,2}(?:\\(?:u(?:[dD]"
    r"(?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?|(?![dD])[0-9a-fA-F]{1,3})?)?\Z"
)
SPACE: Final = re.compile(r"[ \t\n\r]*")
WORD: Final = re.compile(r"[-+.0-9A-Za-z]*")
SCALAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
BEGUN_SCALAR: Final = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?"
    r"|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?"
)
CLOSING: Final = {"{": "}", "[": "]"}

_encode: Final = msgspec.json.Encoder().encode


class InputState(Struct, frozen=True, array_like=True):
    """Between two pieces; as long as its nesting and what is held back."""

    held: str = ""
    """Not sent: behind it the object could not be closed easily."""
    read: int = 0
    """Characters of `held` that are read; the others wait for more."""
    closers: str = ""
    """Of what is open, the innermost first."""
    expect: Expect = "start"
    in_string: bool = False
    key: str = ""
    """The outermost member's, as JSON, while its value is open."""
    is_raw: bool = False
    has_sent: bool = False


@final
class InputJson:
    """`push` each piece, then `close` once; what they give is sent in that order."""

    __slots__ = (
        "_closers",
        "_expect",
        "_has_sent",
        "_held",
        "_in_string",
        "_is_raw",
        "_key",
        "_read",
    )

    def __init__(self, state: InputState = InputState()) -> None:  # noqa: B008  (it is frozen)
        self._held, self._read = state.held, state.read
        self._closers = state.closers
        self._expect: Expect = state.expect
        self._in_string = state.in_string
        self._key = state.key
        self._is_raw = state.is_raw
        self._has_sent = state.has_sent

    def save(self) -> InputState:
        return InputState(
            self._held,
            self._read,
            self._closers,
            self._expect,
            self._in_string,
            self._key,
            self._is_raw,
            self._has_sent,
        )

    def push(self, text: str) -> str:
        if self._is_raw:
            return _inside(text)
        if self._in_string and not self._held:
            # Why: most of what is long is inside of strings, and nothing there is to be escaped.
            if '"' not in text and "\\" not in text and text.isprintable():
                return text
            run = RUN.match(text)
            assert run is not None
            if run.end() == len(text):
                return text
        return self._scan(self._held + text)

    def close(self, *, complete: bool) -> str:
        """The end of the arguments; `complete` is False where they were cut off: then what is held
        goes out as it is, and the object stays open."""
        held, self._held = self._held, ""
        if self._is_raw:
            return '"}'
        if self._expect == "start":
            return held and self._break(held, 0, 0) + '"}'
        if self._expect == "end" or not complete:
            return held
        return self._break(held, 0, 0) + '"}'

    def _scan(self, text: str) -> str:
        """Reads as far as it can be told; sends up to the last place at which to close is easy."""
        at, sent = self._read, 0
        while True:
            if self._in_string:
                run = RUN.match(text, at)
                assert run is not None
                at = sent = run.end()
                self._has_sent = True
                if at == len(text) or CUT_ESCAPE.match(text, at):
                    break
                if text[at] != '"':
                    return self._break(text, sent, at)
                at = sent = at + 1
                self._in_string = False
                self._after_value()
                continue
            start = SPACE.match(text, at).end()  # type: ignore[union-attr]
            if start == len(text):
                break
            end = self._token(text, start)
            if end < 0:
                return self._break(text, sent, start)
            if end == 0:
                break
            at = end
            if self._has_sent and self._is_easy():
                sent = at
        self._held, self._read = text[sent:], at - sent
        return text[:sent]

    def _is_easy(self) -> bool:
        return self._in_string or self._expect in ("first", "first_key", "comma")

    def _token(self, text: str, at: int) -> int:
        """Where the token at `at` ends; 0: it is not whole yet; -1: it may not stand here."""
        mark, expect = text[at], self._expect
        if expect in ("key", "first_key") and mark == '"':
            return self._key_token(text, at)
        if mark in CLOSING and expect in ("start", "value", "first"):
            if (expect == "start" and mark == "[") or len(self._closers) == DEEPEST:
                return -1
            self._has_sent = self._has_sent or bool(self._closers)
            self._closers = CLOSING[mark] + self._closers
            self._expect = "first_key" if mark == "{" else "first"
            return at + 1
        if mark in "]}" and mark == self._closers[:1] and expect in ("first", "first_key", "comma"):
            self._closers = self._closers[1:]
            self._after_value()
            return at + 1
        if (mark, expect) == (":", "colon"):
            self._expect = "value"
            return at + 1
        if (mark, expect) == (",", "comma"):
            self._expect = "key" if self._closers[0] == "}" else "value"
            return at + 1
        if expect not in ("value", "first"):
            return -1
        if mark == '"':
            self._in_string = True
            self._has_sent = True
            return at + 1
        return self._scalar(text, at)

    def _key_token(self, text: str, at: int) -> int:
        run = RUN.match(text, at + 1)
        assert run is not None
        end = run.end()
        if end == len(text) or CUT_ESCAPE.match(text, end):
            return 0
        if text[end] != '"':
            return -1
        if len(self._closers) == 1:
            self._key = text[at : end + 1]
        self._expect = "colon"
        return end + 1

    def _scalar(self, text: str, at: int) -> int:
        word = WORD.match(text, at)
        assert word is not None
        end, found = word.end(), word.group()
        if end == len(text):
            is_begun = len(found) < LONGEST_SCALAR and BEGUN_SCALAR.fullmatch(found)
            return 0 if is_begun else -1
        if not found or not SCALAR.fullmatch(found) or len(found) >= LONGEST_SCALAR:
            return -1
        if found[0] in "-0123456789" and abs(float(found)) == float("inf"):
            return -1  # Why: requests hold no number past a float.
        self._has_sent = True
        self._after_value()
        return end

    def _after_value(self) -> None:
        self._expect = "comma" if self._closers else "end"
        if len(self._closers) <= 1:
            self._key = ""

    def _break(self, text: str, sent: int, at: int) -> str:
        """`text` from `sent` on is what was not sent; at `at` it is no object any more."""
        self._is_raw = True
        if not self._has_sent:
            return '{"raw":"' + _inside(text)
        out = [text[:sent]]
        rest = text[sent:]
        if self._expect == "end":
            rest = rest.partition("}")[2]  # Why: that mark ends our object, behind the rest.
        else:
            if self._in_string:
                out.append('"')
            out.append(self._closers[:-1])
            if self._key and (self._in_string or len(self._closers) > 1):
                out.append(f",{self._key}:null")
        out.append(',"raw":"' + _inside(rest))
        return "".join(out)


def _inside(text: str) -> str:
    """As the inside of a JSON string."""
    return _encode(text)[1:-1].decode()
