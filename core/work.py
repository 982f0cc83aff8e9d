"""One call, ready to run: what was asked, of which model, and what its reply's head says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.exchange import Exchange
from tokenwire.core.generation import Generation
from tokenwire.core.jobs import Planned
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.observer import CallStarted
from tokenwire.core.prompt import HistoryNote, Prompt
from tokenwire.core.served import ServedModel
from tokenwire.core.tokens import TokenJob
from tokenwire.core.wire import Stamp

__all__ = ("IGNORED_HEADER", "Work", "listed", "request_ids")

IGNORED_HEADER: Final = "x-tokenwire-ignored"
HISTORY_HEADER: Final = "x-tokenwire-history"
LONGEST_HEADER: Final = 2000
LONGEST_NAME: Final = 100
ODD: Final = re.compile(r"[^\x21-\x7e]|,")


def request_ids(request_id: str) -> tuple[tuple[str, str], ...]:
    """Why two: the client libraries of the two largest protocols each look for their own."""
    return (("x-request-id", request_id), ("request-id", request_id))


class Work(Struct, frozen=True):
    """One call, ready to run."""

    codec: Codec
    call: Call
    exchange: Exchange
    stamp: Stamp
    model: ServedModel
    prompt: Prompt
    planned: Planned
    began: float
    prompts: tuple[Prompt, ...] = ()
    """Of a call with raw prompts: all of them, of which `prompt` is the first."""
    more: tuple[TokenJob, ...] = ()
    """The jobs of all but the first."""

    def generation(self) -> Generation:
        """The machine that reads the answer."""
        if self.prompts:
            return self.model.raw.generation(self.call, self.prompts, self.planned)
        return self.model.generation(self.call, self.prompt, self.planned)

    @property
    def gathers(self) -> bool:
        """Whether ids may wait for others: one choice, whose text nobody watches."""
        output = self.call.output
        return (
            output.n == 1
            and output.logprobs is None
            and not self.prompts
            and not self.planned.stop_strings
        )

    def started(self) -> CallStarted:
        return CallStarted(
            request_id=self.stamp.id,
            protocol=self.codec.name,
            model=self.model.name,
            tenant=self.call.identity.tenant,
            stream=self.call.output.stream,
            prompt_tokens=sum(len(each.ids) for each in self.prompts or (self.prompt,)),
            time=self.began,
            user=self.call.identity.user,
            session=self.call.identity.session,
            history=self.prompt.history,
        )

    def headers(self, *, is_cached: bool) -> tuple[tuple[str, str], ...]:
        """Of a reply that went well."""
        head = [*request_ids(self.stamp.id), ("x-tokenwire-fingerprint", self.prompt.fingerprint)]
        unread = () if self.prompts else self.model.renderer.powers.unread(self.call.dialogue)
        unused = (self.codec.spelled(name) for name in (*self.planned.ignored, *unread))
        ignored = (*self.call.ignored, *unused)
        if ignored:
            head.append((IGNORED_HEADER, listed(ignored)))
        if (note := self.prompt.history) is not None:
            head.append((HISTORY_HEADER, _told(note)))
        if is_cached:
            head.append(("x-tokenwire-cache", "hit"))
        return tuple(head)


def _told(note: HistoryNote) -> str:
    if note.outcome == "spliced":
        return f"spliced; tokens={note.tokens}"
    return (
        f"diverged; token={note.tokens}; cause={note.cause}; where={note.where}; lost={note.lost}"
    )


def listed(names: Iterable[str]) -> str:
    """As a header. Why so careful: names of fields are the client's, and so may be line breaks."""
    shown = dict.fromkeys(ODD.sub("?", name[:LONGEST_NAME]) for name in names)
    text = ", ".join(shown)
    if len(text) > LONGEST_HEADER:
        text = text[:LONGEST_HEADER].rpartition(", ")[0] + ", and more"
    return text
