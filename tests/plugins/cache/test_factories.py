"""What the two plugins register, and that it makes stores."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.factory import Services
from tokenwire.core.ports.store import Store
from tokenwire.core.signing import Keyring
from tokenwire.plugins.cache import memory, redis


@pytest.mark.parametrize(
    ("plugin", "name", "durability"), [(memory, "memory", "process"), (redis, "redis", "shared")]
)
def test_one_factory_each_that_opens_nothing_when_it_builds(plugin, name, durability):
    (factory,) = plugin.register_stores()
    assert factory.name == name
    assert factory.summary
    store = factory.build(factory.settings(), Services(keys=Keyring((b"k" * 32,))))
    assert isinstance(store, Store)
    assert store.durability == durability
    asyncio.run(store.close())
