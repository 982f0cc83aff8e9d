"""Block hashes: a chain is its blocks, and what goes into which block."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Adapter, KvSettings, MediaItem, TokenJob

ROOT = blocks.root("model:test|dtype:bf16|block:4")


@given(ids=st.lists(st.integers(0, 2**32 - 1), max_size=40), size=st.integers(1, 9))
def test_a_chain_is_its_blocks(ids: list[int], size: int) -> None:
    parent, wanted = ROOT, []
    for start in range(0, len(ids) - size + 1, size):
        parent = blocks.block(parent, TokenIds(ids[start : start + size]))
        wanted.append(parent)
    assert list(blocks.chain(ROOT, TokenIds(ids), size)) == wanted


def job(**fields) -> TokenJob:
    return TokenJob(job="j", model="m", prompt=TokenIds(range(64)), **fields)


def test_extras() -> None:
    assert blocks.extras(job(), 16) == ()
    assert blocks.extras(job(kv=KvSettings(salt="alice")), 16) == (b"salt:alice",)
    picture = MediaItem("image", "ab", at=20, length=20)
    both = job(kv=KvSettings(salt="s"), adapter=Adapter("a", "r1"), media=(picture,))
    assert blocks.extras(both, 16) == (b"salt:s\0adapter:a@r1", b"media:ab@4", b"media:ab@-12")


def test_names_cannot_pass_for_other_extras() -> None:
    salted = job(kv=KvSettings(salt="s\0adapter:a@r1"))
    adapted = job(kv=KvSettings(salt="s"), adapter=Adapter("a", "r1"))
    assert blocks.extras(salted, 16) != blocks.extras(adapted, 16)
