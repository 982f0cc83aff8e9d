"""docs/protocols/responses.md says what the code does: endings and losses."""

from __future__ import annotations

import re
from pathlib import Path

from tokenwire.core.signing import Keyring
from tokenwire.plugins.protocols.responses.codec import Responses
from tokenwire.plugins.protocols.responses.encode import ENDS
from tokenwire.plugins.protocols.responses.shapes import STATUSES

PAGE = (Path(__file__).parents[4] / "docs/protocols/responses.md").read_text()
CODEC = Responses(Keyring([b"k" * 16]))


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"no section {title!r}"
    return found.group(1)


def test_how_answers_end() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([\w.]+)` \|$", section("Events"), re.MULTILINE)
    assert {reason: (status, last) for reason, status, last in rows} == {
        reason: (status, ENDS[status].decode()) for reason, status in STATUSES.items()
    }


def test_what_it_loses() -> None:
    named = re.findall(r"`(\w+)`(?! is)", section("What the wire cannot carry"))
    assert set(named) >= CODEC.losses
