"""Writes the version-1 fixtures. Run once a version: `python -m tests.compat.make_fixtures`."""

from __future__ import annotations

from pathlib import Path

from tests.compat.samples import samples
from tests.compat.v1 import token_codec, tokens
from tests.compat.v1.token_ids import TokenIds

FOLDER = Path(__file__).parent / "v1"


def main() -> None:
    for name, value in samples(tokens, TokenIds).items():
        (FOLDER / f"{name}.msgpack").write_bytes(token_codec.encode_msgpack(value))
        (FOLDER / f"{name}.json").write_bytes(token_codec.encode_json(value) + b"\n")


if __name__ == "__main__":
    main()
