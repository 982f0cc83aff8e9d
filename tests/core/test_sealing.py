"""Sealed text: opens with any key, for its purpose, model and tenant, and otherwise not at all."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.sealing import bound_to, seal, unseal
from tokenwire.core.signing import Keyring

OLD, NEW = b"o" * 16, b"n" * 32
AAD = bound_to("render", "default")


@given(st.binary(max_size=300), st.binary(max_size=40))
def test_what_was_sealed_opens(data: bytes, aad: bytes) -> None:
    keys = Keyring([OLD])
    assert unseal(keys, "thinking", seal(keys, "thinking", data, aad), aad) == data


def test_the_first_key_seals_and_any_opens() -> None:
    old, both = Keyring([OLD]), Keyring([NEW, OLD])
    assert unseal(both, "thinking", seal(old, "thinking", b"x", AAD), AAD) == b"x"
    assert unseal(old, "thinking", seal(both, "thinking", b"x", AAD), AAD) is None


def test_the_same_data_is_sealed_alike() -> None:
    """Replies are pure: played again they give the same bytes."""
    assert seal(Keyring([OLD]), "p", b"x", AAD) == seal(Keyring([OLD]), "p", b"x", AAD)


@pytest.mark.parametrize(
    ("purpose", "aad"),
    [
        ("other", AAD),
        ("thinking", bound_to("render", "another")),
        ("thinking", bound_to("another", "default")),
        ("thinking", bound_to("renderdefault", "")),
    ],
)
def test_it_opens_for_nothing_else(purpose: str, aad: bytes) -> None:
    keys = Keyring([OLD])
    assert unseal(keys, purpose, seal(keys, "thinking", b"x", AAD), aad) is None


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=7))
def test_no_changed_bit_opens(place: int, bit: int) -> None:
    keys = Keyring([OLD])
    data = bytearray(urlsafe_b64decode(seal(keys, "thinking", b"some thought", AAD)))
    data[place % len(data)] ^= 1 << bit
    assert unseal(keys, "thinking", urlsafe_b64encode(data).decode(), AAD) is None


@pytest.mark.parametrize(
    "respell",
    [
        lambda text: text + "AAAA",
        lambda text: f"{text}=",
        lambda text: text[:9] + "\n" + text[9:],
        lambda text: text[:9] + "é" + text[9:],
        lambda text: f" {text}",
        lambda text: text.rstrip("=")[:-1] + "B" + "=" * (len(text) - len(text.rstrip("="))),
    ],
)
def test_no_other_spelling_of_the_same_bytes_is_taken(respell: Callable[[str], str]) -> None:
    keys = Keyring([OLD])
    for data in (b"some thought", b"some thought.", b"some thought.."):
        assert unseal(keys, "thinking", respell(seal(keys, "thinking", data, AAD)), AAD) is None
        assert not keys.verify("thinking", data, respell(keys.sign("thinking", data)))


@given(st.text() | st.binary().map(lambda data: urlsafe_b64encode(data).decode()))
def test_no_text_makes_it_raise(text: str) -> None:
    assert unseal(Keyring([OLD]), "thinking", text, AAD) is None


def test_derived_keys_differ_by_purpose_and_from_macs() -> None:
    keys = Keyring([OLD, NEW])
    one, two = keys.derive("a"), keys.derive("b")
    assert len({*one, *two}) == 4
    assert {len(key) for key in one} == {64}
