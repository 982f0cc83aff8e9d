"""The body of each case with each of its fields replaced by odd things: refused or answered, and
never the server's fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import checks
from tests.cases.shared import FILE, asked, bodies, every, is_played, paths
from tests.cases.stage import Stage

ODD: tuple[Any, ...] = (None, True, -1, 1.5, 2**70, "", "x\0\ud83d", [], [None], {}, {"": [None]})
LONGEST = 5000
CASES = [case for case in every() if is_played(case)]


def _bent(body: Any, deep: int = 3) -> Iterator[Any]:
    """The body with one value replaced by each odd one, or without it."""
    if deep == 0:
        return
    items = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in list(items):
        for odd in ODD:
            bent = dict(body) if isinstance(body, dict) else list(body)
            bent[key] = odd
            yield bent
        if isinstance(body, dict):
            yield {name: kept for name, kept in body.items() if name != key}
        if isinstance(value, dict | list):
            for inner in _bent(value, deep - 1):
                bent = dict(body) if isinstance(body, dict) else list(body)
                bent[key] = inner
                yield bent


@pytest.mark.skipif(not CASES, reason=f"there are no shared cases at {FILE}")
def test_bodies_of_cases_bent_in_one_place(stage: Stage) -> None:
    seen: set[tuple[str, str]] = set()
    for case in CASES:
        for path in paths(case):
            for body in bodies(case):
                given = asked(path, body, case)
                if given is None or len(json.dumps(given)) > LONGEST:
                    continue
                given = {key: value for key, value in given.items() if key != "model"}
                for bent in _bent(given):
                    text = json.dumps({"max_tokens": 3, "max_output_tokens": 16, **bent})
                    if (path, text) in seen:
                        continue
                    seen.add((path, text))
                    asks = text[:-1] + ', "model": "plain"}'
                    response = stage.client.post(path, asks.encode())
                    try:
                        checks.client_fault(path, response)
                        checks.no_leak(response)
                    except AssertionError as error:
                        error.add_note(f"{path} {asks}")
                        raise
