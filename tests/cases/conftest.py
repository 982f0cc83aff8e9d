"""One stage for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

for _name in ("checks", "completions_message", "message", "official", "responses_message"):
    # Why: so that a check that fails says what it compared.
    pytest.register_assert_rewrite(f"tests.cases.{_name}")

from tests.cases.stage import Stage  # noqa: E402


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage
