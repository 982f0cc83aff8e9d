"""From a plan's rows to what the device is asked beyond ids, and back to IdLogprobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from tokenwire.core.tokens import IdLogprobs, LogprobSettings
from tokenwire.plugins.engines.cuda.choice import Choice
from tokenwire.plugins.engines.cuda.edits import RowEdits
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.results import NOTHING, Asked, PromptWish, Results
from tokenwire.plugins.engines.cuda.sampler import Wish

__all__ = ("Wishes", "choice_of")


def choice_of(row: Row) -> Choice:
    owner = row.seq.owner
    assert isinstance(owner, Choice)
    return owner


@final
class Wishes:
    """Of one step: built when it is launched, read when its results are there."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._edits: list[tuple[int, RowEdits]] = []
        self._scored: dict[bool, list[tuple[int, LogprobSettings]]] = {}
        """By "sampled": rows of the logits, and what is asked of them."""
        self._prompts: list[PromptWish] = []
        self._asked: list[LogprobSettings] = []
        self.is_empty = all(choice_of(row).is_plain for row in rows)
        if not self.is_empty:
            self._look()

    def asked(self) -> Asked:
        if self.is_empty:
            return NOTHING
        wishes = tuple(_wish(scored, mode) for mode, scored in self._scored.items())
        return Asked(tuple(self._edits), wishes, tuple(self._prompts))

    def read(self, results: Results) -> dict[int, IdLogprobs]:
        """By row of the logits; and gives choices the scores of their prompts."""
        if self.is_empty:
            return {}
        self._keep_prompts(results)
        found: dict[int, IdLogprobs] = {}
        for scored, lists in zip(self._scored.values(), results.scores, strict=True):
            for at, (row, settings) in enumerate(scored):
                found[row] = _entry(results.ids[row], lists, at, settings, settings.top)
        return found

    def _keep_prompts(self, results: Results) -> None:
        """Give each choice the scores of its prompt's ids that this step brought."""
        for wish, asked, lists in zip(self._prompts, self._asked, results.prompts, strict=True):
            row = self._rows[wish.row]
            if row.epoch != row.seq.epoch:
                continue
            scores = choice_of(row).prompt_scores
            # Why: a sequence that was preempted computes its prompt again.
            del scores[row.start + 1 :]
            scores += [_entry(id, lists, at, asked, wish.top) for at, id in enumerate(wish.targets)]

    def _look(self) -> None:
        at = 0
        for index, row in enumerate(self._rows):
            choice = choice_of(row)
            if not choice.is_plain:
                self._look_at(index, row, choice, at)
            at += 1 + len(row.drafts) if row.samples else 0

    def _look_at(self, index: int, row: Row, choice: Choice, at: int) -> None:
        asked = choice.task.job.logprobs
        if row.samples:
            edits = choice.edits()
            places = range(at, at + 1 + len(row.drafts))
            if edits is not None:
                self._edits += [(place, edits) for place in places]
            if asked is not None:
                scored = self._scored.setdefault(asked.mode == "sampled", [])
                scored += [(place, asked) for place in places]
        if asked is not None and asked.prompt is not None:
            prompt = choice.task.job.prompt
            targets = tuple(prompt[row.start + 1 : row.start + row.count + 1])
            if targets:
                extra = tuple(asked.ids)
                self._prompts.append(PromptWish(index, targets, asked.prompt, extra))
                self._asked.append(asked)


def _wish(scored: Sequence[tuple[int, LogprobSettings]], is_sampled: bool) -> Wish:
    width = max(len(asked.ids) for _, asked in scored)
    extra = np.zeros((len(scored), width), np.int64)
    for at, (_, asked) in enumerate(scored):
        extra[at, : len(asked.ids)] = asked.ids
    rows = np.array([row for row, _ in scored], np.int64)
    return Wish(rows, max(asked.top for _, asked in scored), extra, is_sampled)


def _entry(
    id: int, lists: Mapping[str, list[Any]], at: int, asked: LogprobSettings, top: int
) -> IdLogprobs:
    likeliest = list(zip(lists["top_ids"][at][:top], lists["top_values"][at][:top], strict=True))
    shown = {other for other, _ in likeliest}
    extra = dict(zip(asked.ids, lists["extra"][at], strict=False))
    likeliest += [(other, value) for other, value in extra.items() if other not in shown]
    return IdLogprobs(id, lists["chosen"][at], lists["rank"][at], tuple(likeliest))
