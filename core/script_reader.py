"""Reads a script's JSON body into a compiled Script. Pure; knows no store and no engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import msgspec

from tokenwire.core.errors import RequestError
from tokenwire.core.script import (
    FIRST_FREE_ID,
    SCRIPT_VOCABULARY_SIZE,
    Script,
    ScriptStep,
    ScriptToken,
    mint,
)
from tokenwire.core.token_ids import TokenIds

__all__ = ("read_script",)

MAX_BODY = 16 * 1024 * 1024
MAX_TOKENS = 2_000_000
MAX_CHOICES = 128
MAX_SLEEP_S = 3600.0
EOS = "<eos>"
FINISHES = ("eos", "length", "abort")
KEYS = ("pieces", "special", "prompt_tail", "finish", "logprobs", "choices", "format")
PIECE_FORMS = (
    'a text, a list of texts, {"hex": ...}, {"repeat": ..., "times": ...}, '
    '{"sleep_s": ...} or {"engine_error": ...}'
)


def read_script(body: bytes) -> Script:
    """`{"pieces", "special", "prompt_tail", "finish", "logprobs", "choices"}`; `format` is allowed
    and ignored. Raises RequestError that names the field."""
    if len(body) > MAX_BODY:
        raise RequestError(f"a script has at most {MAX_BODY} bytes, got {len(body)}")
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"the script is not JSON: {error}") from error
    mint_ids = _Mint()
    script = _read(fields, "", mint_ids)
    return msgspec.structs.replace(script, tokens=tuple(mint_ids.tokens.values()))


@final
class _Mint:
    """Gives pieces their ids, across a script and its choices."""

    def __init__(self) -> None:
        self.tokens: dict[int, ScriptToken] = {}
        self.count = 0

    def id(self, data: bytes, special: bool, fixed: int | None, where: str) -> int:
        key = mint(data, special=special) if fixed is None else fixed
        token = ScriptToken(key, data, special)
        held = self.tokens.setdefault(key, token)
        if held != token:
            raise RequestError(
                f"{where}: id {key} already stands for {held.bytes!r}, so {data!r} needs another: "
                "give one of them a fixed id in `special`",
                param=where,
            )
        return key

    def take(self, count: int, where: str) -> None:
        self.count += count
        if self.count > MAX_TOKENS:
            raise RequestError(f"{where}: a script has at most {MAX_TOKENS} tokens", param=where)


def _read(fields: object, at: str, mint_ids: _Mint) -> Script:
    if not isinstance(fields, dict):
        raise _wanted(at or "script", "an object", fields)
    for key in fields:
        if key not in KEYS:
            raise RequestError(
                f"{at}{key}: a script has no such key, only {', '.join(KEYS)}", param=f"{at}{key}"
            )
    choices = fields.get("choices") or []
    if not isinstance(choices, list) or len(choices) > MAX_CHOICES:
        raise _wanted(f"{at}choices", f"a list of at most {MAX_CHOICES} scripts", choices)
    if choices and at:
        raise RequestError(f"{at}choices: a choice has no choices", param=f"{at}choices")
    finish = fields.get("finish", "eos")
    if finish not in FINISHES:
        raise _wanted(f"{at}finish", " or ".join(FINISHES), finish)
    tail = fields.get("prompt_tail") or ""
    if not isinstance(tail, str):
        raise _wanted(f"{at}prompt_tail", "a text", tail)
    special = _read_special(fields.get("special"), f"{at}special")
    pieces = fields.get("pieces", [] if choices else None)
    if not isinstance(pieces, list):
        raise _wanted(f"{at}pieces", "a list", pieces)
    ends_itself = finish == "eos" and bool(pieces) and pieces[-1] == EOS
    if ends_itself:
        pieces = pieces[:-1]
    reader = _Pieces(special, mint_ids)
    return Script(
        steps=tuple(
            step
            for index, piece in enumerate(pieces)
            for step in reader.steps(piece, f"{at}pieces[{index}]")
        ),
        tokens=(),
        prompt_tail=tail,
        finish=finish,
        eos_id=special.get(EOS) if ends_itself else None,
        logprobs=_read_logprobs(fields.get("logprobs"), f"{at}logprobs"),
        choices=tuple(
            _read(choice, f"choices[{index}].", mint_ids) for index, choice in enumerate(choices)
        ),
    )


@final
class _Pieces:
    """Turns each piece into steps. Equal texts share one step, so that repeats cost nothing."""

    def __init__(self, special: Mapping[str, int | None], mint_ids: _Mint) -> None:
        self._special = special
        self._mint = mint_ids
        self._known: dict[str, ScriptStep] = {}

    def steps(self, piece: object, at: str) -> tuple[ScriptStep, ...]:
        match piece:
            case str():
                self._mint.take(1, at)
                return (self._text(piece, at),)
            case list():
                self._mint.take(len(piece), at)
                return (ScriptStep(TokenIds(self._one_of_list(part, at) for part in piece)),)
            case {"hex": str() as text, **rest} if not rest:
                self._mint.take(1, at)
                return (ScriptStep(TokenIds((self._hex(text, at),))),)
            case {"repeat": str() as text, "times": int() as times, **rest} if not rest:
                if times < 0 or isinstance(times, bool):
                    raise _wanted(f"{at}.times", "a number from 0", times)
                self._mint.take(times, at)
                return (self._text(text, at),) * times
            case {"sleep_s": int() | float() as seconds, **rest} if not rest:
                if isinstance(seconds, bool) or not 0 <= seconds <= MAX_SLEEP_S:
                    raise _wanted(f"{at}.sleep_s", f"seconds from 0 to {MAX_SLEEP_S:g}", seconds)
                return (ScriptStep(sleep_s=float(seconds)),)
            case {"engine_error": str() as kind, **rest} if kind and not rest:
                return (ScriptStep(error=kind),)
            case _:
                raise _wanted(at, PIECE_FORMS, piece)

    def _text(self, text: str, at: str) -> ScriptStep:
        step = self._known.get(text)
        if step is None:
            step = self._known[text] = ScriptStep(TokenIds((self._id(text, at),)))
        return step

    def _id(self, text: str, at: str) -> int:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise RequestError(f"{at}: not a Unicode text: {error.reason}", param=at) from error
        return self._mint.id(data, text in self._special, self._special.get(text), at)

    def _hex(self, text: str, at: str) -> int:
        try:
            data = bytes.fromhex(text)
        except ValueError as error:
            raise _wanted(f"{at}.hex", "hexadecimal digits", text) from error
        return self._mint.id(data, False, None, at)

    def _one_of_list(self, part: object, at: str) -> int:
        match part:
            case str():
                return self._id(part, at)
            case {"hex": str() as text, **rest} if not rest:
                return self._hex(text, at)
            case _:
                raise _wanted(at, 'texts and {"hex": ...} inside a list', part)


def _read_special(value: object, at: str) -> dict[str, int | None]:
    """A list of pieces, or an object piece -> its fixed id (null: minted)."""
    if value is None:
        return {}
    if isinstance(value, list) and all(isinstance(piece, str) for piece in value):
        return dict.fromkeys(value)
    if not isinstance(value, dict):
        raise _wanted(at, "a list of pieces or an object from piece to id", value)
    for piece, fixed in value.items():
        if fixed is None:
            continue
        if not isinstance(fixed, int) or isinstance(fixed, bool):
            raise _wanted(f"{at}.{piece}", "an id or null", fixed)
        # Why eos is exempt: it may name the id that the tokenizer already ends answers with.
        if not (0 if piece == EOS else FIRST_FREE_ID) <= fixed < SCRIPT_VOCABULARY_SIZE:
            wanted = f"an id from {FIRST_FREE_ID} to {SCRIPT_VOCABULARY_SIZE - 1}"
            raise _wanted(f"{at}.{piece}", wanted, fixed)
    return value


def _read_logprobs(value: object, at: str) -> tuple[tuple[float, ...], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wanted(at, "a list of lists of numbers", value)
    rows: list[tuple[float, ...]] = []
    for index, row in enumerate(value):
        if not isinstance(row, list) or not row:
            raise _wanted(f"{at}[{index}]", "a list of numbers, the chosen id's first", row)
        rows.append(tuple(_read_logprob(entry, f"{at}[{index}]") for entry in row))
    return tuple(rows)


def _read_logprob(value: object, at: str) -> float:
    if value == "-inf":
        return -math.inf
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
        return float(value)
    raise _wanted(at, 'numbers up to 0, or "-inf"', value)


def _wanted(at: str, wanted: str, got: object) -> RequestError:
    shown = repr(got)
    if len(shown) > 80:
        shown = f"{shown[:77]}..."
    return RequestError(f"{at}: wanted {wanted}, got {shown}", param=at)
