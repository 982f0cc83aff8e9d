"""The thread that stands for a GPU's stream: in order, and what follows a failure."""

from __future__ import annotations

import pytest

from tokenwire.plugins.engines.cuda.stream import Stream


def fail() -> None:
    raise ValueError("the test's fault")


def test_work_is_done_in_order() -> None:
    done: list[int] = []
    with Stream() as stream:
        for index in range(50):
            stream.submit(done.append, index)
    assert done == list(range(50))


@pytest.mark.parametrize("is_shared", [False, True])
def test_after_a_failure(is_shared: bool) -> None:
    """One's own steps go on, and are run again alone; what others share does not."""
    with Stream(is_shared=is_shared) as stream:
        first, later = stream.submit(fail), stream.submit(int, 7)
    assert isinstance(first.exception(), ValueError)
    if is_shared:
        assert str(later.exception()) == "a pass before it failed"
    else:
        assert later.result() == 7
