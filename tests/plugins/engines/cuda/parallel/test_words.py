"""What is said of a group that fails, where no group is needed to say it."""

from __future__ import annotations

from pathlib import Path

from tokenwire.plugins.engines.cuda.parallel.front.words import Words


def test_where_machines_are_missing_it_says_what_to_run_there(tmp_path: Path) -> None:
    words = Words(0, 4, tmp_path / "failure", is_only=True, nodes=2)
    missing = words.silent((), (), 8)
    assert "see that `tokenwire ranks FILE --node K` runs on each other machine" in missing
    assert missing.endswith("from 1 to 1, and reaches `rendezvous`, or raise start_timeout")
    begun = words.silent((), (0, 1), 8)
    assert begun.endswith("look for their last lines in the log, or raise start_timeout")


def test_how_a_launcher_ended_is_said(tmp_path: Path) -> None:
    words = Words(1, 4, tmp_path / "failure", is_only=False)
    assert words.ended(-9) == "group 1: its launcher died: SIGKILL"
    assert words.ended(3) == "group 1: its processes ended with exit code 3"
