"""Every store of ours passes the store kit."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.testing.store_kit import LAWS, run_store_kit


@pytest.mark.parametrize("law", LAWS)
def test_conforms(make, law):
    run_store_kit(make, laws=[law])


def test_a_lone_surrogate_is_a_name_too(make):
    async def check():
        async with make() as store:
            await store.set("\ud800", "\udfff:", b"1")
            assert await store.get("\ud800", "\udfff:") == b"1"
            assert await store.keys("\ud800") == ("\udfff:",)
            assert await store.keys("\ud801") == ()

    asyncio.run(check())
