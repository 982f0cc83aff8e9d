"""Small shared values: ids, seeds, hashes, signatures, fingerprints, SSE. Vectors and laws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core import blocks, fingerprint, seeds
from tokenwire.core.signing import Keyring, TextDigest
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.token_schema import json_schema
from tokenwire.core.wire import SseReader, Stamp, escape_breaks, json_text, sse

ROOT = Path(__file__).parents[2]


def test_block_hash_vectors() -> None:
    root = blocks.root("model:test|dtype:bf16|block:4")
    assert root.hex() == "1d1e0de70d06552fc096eb3aadec9d5336d97a7d78173ccd4739387b3990ea25"
    first, second = blocks.chain(root, TokenIds(range(1, 9)), 4)
    assert first.hex() == "22e38d2518eecce0dc43ad49930ed24d953895dfcce05fbe9d41e27cc7c73416"
    assert second.hex() == "e53dd51c81b30cb6a4383e9fd7f612bc3dfa910a7ce0a47abf3ee90229d9bcfa"
    salted = blocks.block(root, TokenIds((1, 2, 3, 4)), b"salt:alice")
    assert salted.hex() == "507facc4290a325a74c92e0c88cca0c77fb7e008c669202095396aefaf8a34be"


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40), st.integers(1, 8))
def test_only_full_blocks_have_an_identity(ids: list[int], size: int) -> None:
    root = blocks.root("r")
    whole = list(blocks.chain(root, TokenIds(ids), size))
    assert len(whole) == len(ids) // size
    longer = list(blocks.chain(root, TokenIds([*ids, *range(size)]), size))
    assert longer[: len(whole)] == whole
    salted = list(blocks.chain(root, TokenIds(ids), size, [b"salt:x"]))
    assert not set(salted) & set(whole)


SEED_VECTORS = {
    (0, 0): 0,
    (0, 1): -7995527694508729151,
    (42, 1): -5014216602933006456,
    (-1, 1): -2152535657050944081,
    (2**63 - 1, 3): -2284564539547870340,
    (-(2**63), 2): -2284564539547870340,
}


def test_splitmix64_of_the_published_sequence() -> None:
    """The first outputs of SplitMix64 from state 0 (Vigna's reference)."""
    gamma = 0x9E3779B97F4A7C15
    outputs = [seeds.splitmix64(k * gamma & (2**64 - 1)) for k in range(3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(("given", "mixed"), SEED_VECTORS.items())
def test_seed_vectors(given: tuple[int, int], mixed: int) -> None:
    assert seeds.mix(*given) == mixed


@given(st.integers(-(2**63), 2**63 - 1))
def test_choices_get_different_seeds(seed: int) -> None:
    mixed = [seeds.mix(seed, k) for k in range(8)]
    assert mixed[0] == seed
    assert len(set(mixed)) == 8
    assert all(-(2**63) <= value < 2**63 for value in mixed)


@given(st.text(), st.lists(st.integers(0, 30), max_size=6))
def test_text_digest_is_the_same_for_every_cutting_and_can_be_saved(
    text: str, cuts: list[int]
) -> None:
    whole = TextDigest()
    whole.push(text)
    parts = TextDigest()
    at = 0
    for cut in cuts:
        parts.push(text[at : at + cut])
        at += cut
        state = parts.save()
        assert sum(len(part) for part in state if isinstance(part, bytes)) <= 32 + 63
        parts = TextDigest()
        parts.restore(*state)
    parts.push(text[at:])
    assert parts.digest() == whole.digest()
    other = TextDigest()
    other.push(text + "x")
    assert other.digest() != whole.digest()


def test_keys_rotate_and_purposes_do_not_mix() -> None:
    old, new = Keyring([b"o" * 16]), Keyring([b"n" * 16, b"o" * 16])
    signature = old.sign("thinking", b"text")
    assert new.verify("thinking", b"text", signature)
    assert not new.verify("state", b"text", signature)
    assert not new.verify("thinking", b"texts", signature)
    assert not old.verify("thinking", b"text", new.sign("thinking", b"text"))
    for junk in ("", "=", "ä", "a" * 43, signature[:-2]):
        assert not new.verify("thinking", b"text", junk)
    with pytest.raises(ValueError, match="16 bytes"):
        Keyring([b"short"])


def test_fingerprints_tell_what_differs() -> None:
    ours = {
        "vocabulary": fingerprint.vocabulary({0: b"a", 1: b"bc"}),
        "added_tokens": fingerprint.added_tokens([(2, "<s>", True)]),
    }
    assert ours["vocabulary"] != fingerprint.vocabulary({0: b"ab", 1: b"c"})
    assert ours["added_tokens"] != fingerprint.added_tokens([(2, "<s>", False)])
    assert fingerprint.merges([("a", "b")], {}) != fingerprint.merges([("ab", "")], {})
    assert fingerprint.chat_template("a\r\nb") == fingerprint.chat_template("a\nb")
    theirs = {**ours, "vocabulary": "other", "merges": "unknown to us"}
    assert [found.name for found in fingerprint.differences(ours, theirs)] == ["vocabulary"]
    assert fingerprint.differences(ours, {}) == ()


EVENT = st.tuples(
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])),
    st.sampled_from(["", "message_start"]),
)


@given(st.lists(EVENT, max_size=5), st.integers(1, 7))
def test_sse_reads_back_from_any_cutting(events: list[tuple[str, str]], size: int) -> None:
    stream = b"".join(sse(data.encode(), name.encode() or None) for data, name in events)
    reader = SseReader()
    cut = [stream[at : at + size] for at in range(0, len(stream), size)]
    found = [message for chunk in cut for message in reader.push(chunk)]
    assert [(message.data, message.event) for message in found] == events


def test_sse_reader_knows_all_line_ends_and_comments() -> None:
    reader = SseReader()
    found = reader.push(b": hello\r\ndata: a\r") + reader.push(b"\ndata:b\r\n\r\n")
    assert found[0].comment == "hello"
    assert found[1].data == "a\nb"


def test_stamp_gives_the_same_ids_again() -> None:
    one, two = Stamp("r", 0.0, b"x" * 16), Stamp("r", 0.0, b"y" * 16)
    assert one.token(1) == Stamp("r", 5.0, b"x" * 16).token(1)
    assert len({one.token(k) for k in range(50)} | {two.token(1)}) == 51
    assert one.token(3).isalnum()
    assert len(one.token(3)) == 24


def test_committed_schema_is_the_structs() -> None:
    committed = json.loads((ROOT / "docs" / "token_interface.schema.json").read_text())
    assert committed == json.loads(json.dumps(json_schema())), (
        "run `make schema` and review the difference"
    )


AWKWARD = st.text(
    st.sampled_from('a\u00e9\u6f6e\x85\u2028\u2029\U0001f30a\r\n\\"\x0b'), max_size=12
)


@given(AWKWARD)
def test_json_text_is_one_line_of_the_same_text(text: str) -> None:
    data = json_text(text)
    assert json.loads(data) == text
    assert data.decode().splitlines() == [data.decode()]
    whole = escape_breaks(json.dumps([text], ensure_ascii=False).encode())
    assert json.loads(whole) == [text]
    assert whole.decode().splitlines() == [whole.decode()]
    assert b"\\u2029" in json_text("\u6f6e\u2029")
