"""Fixtures for plugin authors: `tokenwire_host`, `tokenwire_client`. Imports nothing until used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tokenwire.core.host import Host
    from tokenwire.core.testing.client import LocalClient


@pytest.fixture
def tokenwire_host() -> Host:
    """Every installed plugin, registered; nothing is built."""
    from tokenwire.core.host import Host

    return Host()


@pytest.fixture
def tokenwire_client() -> Callable[..., LocalClient]:
    """Makes an in-process client: `with tokenwire_client(config) as client: client.post(...)`.

    No socket is opened; without a configuration it serves the model `mock`.
    """
    from tokenwire.core.testing.client import LocalClient

    return LocalClient


__all__ = ("tokenwire_client", "tokenwire_host")
