"""One stage for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases.stage import Stage


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage
