"""The token-ID interface's version 1: old frames read by the new code, new frames by the old."""

from __future__ import annotations

from hashlib import sha256
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
FROZEN = {
    "__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "abort.json": "2fadc3f988b44b16a46c1ba3c4d9674a30fcb91cf92f0372f5d4377963f1eb3e",
    "abort.msgpack": "77cda99542c5847ca04a97ec7efe046e12da7c1cd3d4378d2edfed0c54aea6a8",
    "card.json": "bcc3eb946380c36784def0856c0b4e1a38424ec0664e5362c20074ab8fc5d8a7",
    "card.msgpack": "ae5080b3cfb9820e45961c43d76c25d3c54ba042f6747b5990af7906301fb203",
    "credit.json": "d44e38ddb27fef803c03e749d477b46462f84faeede250c1b23e905c68642905",
    "credit.msgpack": "5d29471e88e8ccc88c054b92e5fd7fbb4d4f8cccd5d05278fd1b2862c5726d56",
    "delta.json": "6364047bf8c05985ab549a656c04b93c3597601314e930ad4b01c36eca04d4e8",
    "delta.msgpack": "65e176a5d1858c51e666d1f2405caffa44d1ed9b8e5ebcaf404ab288735b427b",
    "job.json": "c549b2838d845d68af3e0243d7ed1576c70031c8d55a4d998dc6c59c03fed907",
    "job.msgpack": "451915db1cd8d64c9a88ba62ef472bcb525920502c545fb9864154a36279960e",
    "link.json": "8cd9849fe838903c0386c61c109423bb806a7b41491af041496c89fc18ae4910",
    "link.msgpack": "efb9a8f4c6995ff5eb78df6cdd7559134962a10e6c366861b33a5381195f898d",
    "release.json": "6f994157b7178396d52c40b19d1958c942ae2871d21256f0478c9d49a214ec2c",
    "release.msgpack": "0ad28afd0511060e13aca8d00eaf5dde6cbcfe925180cbe946809db6b8c6872e",
    "removed.json": "686fecd10429b22b3983423a96a77799b9bba751b7ebb2d17a960e1d8a852289",
    "removed.msgpack": "94a0e63edaf17647669a4513dd5d13c823c019627e22cc33131e12d9076f5e68",
    "snapshot.json": "d9dbef5b271ef40eeca1697b1124a26c62d1ab11a512ebffb0e1f523555641a4",
    "snapshot.msgpack": "958d6aa4ec66dd311da62e5737f3d2186a69f996e1166da9451a0f8f9a61648c",
    "status.json": "17fd40606f4954b3490a5cb6bf175212a7f46b9f7fdd2c70eb5bb6f0804c4a34",
    "status.msgpack": "1e551a3b7a5157af6aa8467334040e9fc652ab35c680d8797d9017e8bf425802",
    "stored.json": "fd9b704a7226b114777f0f40c08c5460b4240056c28d6eb033a76fb717b988ce",
    "stored.msgpack": "822521f2d5cea75c1c52a12a6834c1404da696696cf491b248195733dbdf1cf1",
    "token_codec.py": "d3dc24a70769185cb56e8af01f74e0ad4cc982b2abd34e726f8bdada4289e11f",
    "token_ids.py": "464fa53cf59a75a90ef0fa9c51b6301b8d34962b42c759104bffef7d3710a5d0",
    "tokens.py": "7e7dceba33ae499fc2ed4598c9e0128be8d21812e67a4cfccbf15c4b1e30a929",
}
"""sha256 of each file. After the first release nothing here may change: a new version of the
interface gets a folder of its own."""


def test_version_1_is_as_it_was_frozen() -> None:
    files = (path for path in FOLDER.iterdir() if path.is_file())
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in files} == FROZEN


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


def test_samples_leave_no_field_of_version_1_at_its_default() -> None:
    for name, value in NEW.items():
        for field in msgspec.structs.fields(OLD[name]):
            if field.name != "interface":
                assert getattr(value, field.name) != field.default, f"{name}.{field.name}"


def test_what_was_added_since_is_optional_and_passed_over() -> None:
    figure = tokens.Figure("tokens", (3.0,), "generated")
    fuller = msgspec.structs.replace(NEW["status"], figures=(figure,), about={"a": "b", "c": 1.5})
    for name, value in NEW.items():
        known = {field.name for field in msgspec.structs.fields(OLD[name])}
        for field in msgspec.structs.fields(value):
            assert field.name in known or not field.required, f"{name}.{field.name}"
    packed, text = token_codec.encode_msgpack(fuller), token_codec.encode_json(fuller)
    assert token_codec.decode_msgpack(packed, tokens.EngineStatus) == fuller
    assert token_codec.decode_json(text, tokens.EngineStatus) == fuller
    assert old_codec.decode_msgpack(packed, old.EngineStatus) == OLD["status"]
    assert old_codec.decode_json(text, old.EngineStatus) == OLD["status"]


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
