"""The token-ID interface's version 1: old frames read by the new code, new frames by the old."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.compat.samples import samples
from tests.compat.v1 import token_codec as old_codec
from tests.compat.v1 import tokens as old
from tests.compat.v1.token_ids import TokenIds as OldIds
from tokenwire.core import token_codec, tokens
from tokenwire.core.token_ids import TokenIds

FOLDER = Path(__file__).parent / "v1"
NEW = samples(tokens, TokenIds)
OLD = samples(old, OldIds)
NAMES = sorted(NEW)


@pytest.mark.parametrize("name", NAMES)
def test_new_code_reads_version_1_frames(name: str) -> None:
    kind = type(NEW[name])
    packed = (FOLDER / f"{name}.msgpack").read_bytes()
    text = (FOLDER / f"{name}.json").read_bytes()
    assert token_codec.decode_msgpack(packed, kind) == NEW[name]
    assert token_codec.decode_json(text, kind) == NEW[name]


@pytest.mark.parametrize("name", NAMES)
def test_version_1_reads_new_frames(name: str) -> None:
    kind = type(OLD[name])
    assert old_codec.decode_msgpack(token_codec.encode_msgpack(NEW[name]), kind) == OLD[name]
    assert old_codec.decode_json(token_codec.encode_json(NEW[name]), kind) == OLD[name]


@pytest.mark.parametrize("name", NAMES)
def test_readers_skip_fields_they_do_not_know(name: str) -> None:
    raw = msgspec.msgpack.decode(token_codec.encode_msgpack(NEW[name]))
    raw["a_field_of_version_2"] = {"deep": [1, 2, 3]}
    packed = msgspec.msgpack.encode(raw)
    assert old_codec.decode_msgpack(packed, type(OLD[name])) == OLD[name]
    assert token_codec.decode_msgpack(packed, type(NEW[name])) == NEW[name]


def test_samples_leave_no_field_at_its_default() -> None:
    for name, value in NEW.items():
        for field in msgspec.structs.fields(value):
            if field.name != "interface":
                assert getattr(value, field.name) != field.default, f"{name}.{field.name}"


def test_unknown_finish_is_other_with_its_name() -> None:
    frame = token_codec.decode_json(
        b'{"job":"j","finish":{"kind":"melted","cause":"too_hot"}}', tokens.TokenDelta
    )
    assert frame.finish is not None
    assert (frame.finish.kind.name, frame.finish.kind.value) == ("OTHER", "melted")
    assert not frame.finish.cause.is_known
    assert b'"melted"' in token_codec.encode_json(frame)
    again = token_codec.decode_json(token_codec.encode_json(frame), tokens.TokenDelta)
    assert again == frame
    assert list(tokens.FinishKind) == [
        tokens.FinishKind.STOP,
        tokens.FinishKind.LENGTH,
        tokens.FinishKind.ABORT,
        tokens.FinishKind.ERROR,
    ], "an unknown name must not be remembered"


@pytest.mark.parametrize("body", [b'{"job":"j","ids":[-1]}', b'{"job":"j","ids":[4294967296]}'])
def test_ids_outside_uint32_are_refused(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        token_codec.decode_json(body, tokens.TokenDelta)


def test_ids_of_a_broken_length_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="4 bytes"):
        token_codec.decode_msgpack(
            msgspec.msgpack.encode({"job": "j", "ids": b"\x01\x02\x03"}), tokens.TokenDelta
        )
