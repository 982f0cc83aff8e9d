"""The jobs that a part has not ended: what was delivered of each choice, how to end it. Pure."""

from __future__ import annotations

from typing import final

from msgspec.structs import replace

from tokenwire.core.tokens import Counts, Finish, TokenDelta, TokenJob

__all__ = ("OpenJobs",)


@final
class _Choice:
    __slots__ = ("at", "counts", "is_over", "tokens")

    def __init__(self, job: TokenJob) -> None:
        self.at = len(job.resume_ids)
        self.counts = Counts(prompt=len(job.prompt))
        self.tokens = len(job.prompt) + self.at
        self.is_over = False


@final
class OpenJobs:
    def __init__(self) -> None:
        self.tokens = 0
        """Of all open choices: prompts, and what they have generated."""
        self._jobs: dict[tuple[str, int], list[_Choice]] = {}
        self._names: dict[str, int] = {}
        """How many open jobs have a name: attempts of one."""

    def __len__(self) -> int:
        return len(self._jobs)

    def has(self, name: str) -> bool:
        return name in self._names

    def add(self, job: TokenJob) -> None:
        choices = self._jobs[job.job, job.attempt] = [_Choice(job) for _ in range(max(job.n, 1))]
        self._names[job.job] = self._names.get(job.job, 0) + 1
        self.tokens += sum(choice.tokens for choice in choices)

    def take(self, delta: TokenDelta) -> bool:
        """Note what came; False: of nothing that is open here, so that nobody waits for it."""
        choices = self._jobs.get((delta.job, delta.attempt))
        if choices is None or not 0 <= delta.choice < len(choices):
            return False
        choice = choices[delta.choice]
        if choice.is_over:
            return False
        more = len(delta.ids)
        choice.at = delta.at + more
        choice.tokens += more
        self.tokens += more
        if delta.counts is not None:
            choice.counts = delta.counts
        if delta.finish is not None:
            self._end(delta.job, delta.attempt, choice)
        return True

    def end_all(self, finish: Finish) -> list[TokenDelta]:
        """The last delta of every open choice, as if each had ended so."""
        deltas = []
        for (name, attempt), choices in tuple(self._jobs.items()):
            for index, choice in enumerate(choices):
                if not choice.is_over:
                    counts = replace(choice.counts, generated=choice.at)
                    deltas.append(
                        TokenDelta(name, choice.at, attempt, index, counts=counts, finish=finish)
                    )
                    self._end(name, attempt, choice)
        return deltas

    def _end(self, name: str, attempt: int, choice: _Choice) -> None:
        choice.is_over = True
        self.tokens -= choice.tokens
        if all(each.is_over for each in self._jobs[name, attempt]):
            del self._jobs[name, attempt]
            self._names[name] -= 1
            if not self._names[name]:
                del self._names[name]
