"""What is said of a group that fails: which rank, how, and what to do. Reads one file; knows no
connection."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from signal import Signals
from typing import final

__all__ = ("Words",)

ENGINE = "engine cuda: "
"""What says it again at the front of the whole sentence."""


@final
class Words:
    def __init__(
        self, index: int, ranks: int, failure: Path, *, is_only: bool, nodes: int = 1
    ) -> None:
        """`failure`: where the group's launcher says what failed first. `is_only`: there is no
        other group that it could be. `nodes`: machines that its ranks run on."""
        self._index = index
        self._ranks = ranks
        self.failure = failure
        self._is_only = is_only
        self._nodes = nodes

    def who(self, rank: int) -> str:
        group = "" if self._is_only else f" of group {self._index}"
        return f"rank {rank} of {self._ranks}{group}"

    def said(self, rank: int, text: str) -> str:
        """By a rank that could not go on."""
        return f"{self.who(rank)}: {text.removeprefix(ENGINE)}"

    def gone(self, rank: int) -> str:
        return f"{self.who(rank)} is gone: its connection closed"

    def ended(self, code: int) -> str:
        """All processes, by themselves; a negative code is that of a signal."""
        if code < 0:
            return f"group {self._index}: its launcher died: {Signals(-code).name}"
        return f"group {self._index}: its processes ended with exit code {code}"

    def died(self) -> tuple[str, bool] | None:
        """What the launcher has written, and whether it is a signal: no rank can say that of
        itself. None: nothing yet."""
        try:
            found = json.loads(self.failure.read_text())
        except (OSError, ValueError):
            return None
        text = str(found.get("message") or "").removeprefix(ENGINE)
        if isinstance(rank := found.get("rank"), int):
            how = found.get("signal") or f"exit code {found.get('code')}"
            return f"{self.who(rank)} died: {how}", bool(found.get("signal"))
        return f"group {self._index}: {text}", False

    def mute(self, rank: int, seconds: float) -> str:
        """A rank that was ready, and whose connection is open still."""
        return (
            f"{self.who(rank)} has said nothing for {seconds:g} s: its process is stopped or "
            "hangs, or its machine cannot be reached"
        )

    def silent(self, ready: Collection[int], entered: Collection[int], seconds: float) -> str:
        """Of the ranks that are not `ready` after so long without a word."""
        left = [rank for rank in range(self._ranks) if rank not in ready]
        begun = ", ".join(str(rank) for rank in left if rank in entered) or "none of them"
        noun = "rank" if len(left) == 1 else "ranks"
        hint = "look for their last lines in the log"
        if self._nodes > 1 and not entered:
            # Why: none begins before all machines are there.
            hint = (
                "see that `tokenwire ranks FILE --node K` runs on each other machine, from 1 to "
                f"{self._nodes - 1}, and reaches `rendezvous`"
            )
        return (
            f"group {self._index}: {noun} {', '.join(map(str, left))} of {self._ranks} said "
            f"nothing for {seconds:g} s while starting ({begun} had begun): {hint}, or raise "
            "start_timeout"
        )
