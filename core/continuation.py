"""One model's conversations, turn upon turn: looks for the last one's ids, keeps this one's.

Ties together what is found (token_history.py), what may be spliced (splice.py), and why nothing
could be (prefix_break.py). Knows no protocol and no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import final

from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.conversation import digests
from tokenwire.core.prefix_break import Fresh, explain
from tokenwire.core.prompt import HistoryNote, HistoryTrace, Prompt
from tokenwire.core.rendering import Rendered, Renderer
from tokenwire.core.splice import Ask, Spliced, Splicer
from tokenwire.core.token_history import VERSION, Kept, Place, TokenHistory
from tokenwire.core.token_ids import TokenIds

__all__ = ("Continuation", "Look")


class Look(Struct, frozen=True):
    """What was found for one request."""

    trace: HistoryTrace | None
    """None: this request cannot be gone on from."""
    ask: Ask
    kept: Kept | None = None
    spliced: Spliced | None = None
    begun: tuple[tuple[str, TokenIds], ...] = ()
    """Where nothing is spliced: the kept prompt up to its last turn, if the text begins so."""

    @property
    def known(self) -> tuple[tuple[str, TokenIds], ...]:
        """The runs with which the prompt begins, and their ids."""
        spliced = self.spliced
        if spliced is None:
            return self.begun
        text, at = self.ask.text, spliced.characters
        end = len(text) - len(spliced.rest)
        ids, count = spliced.ids, spliced.prompt_ids
        return (text[:at], TokenIds(ids[:count])), (text[at:end], TokenIds(ids[count:]))


@final
class Continuation:
    """`look` before a prompt is encoded, `note` once it is, `keep` when it was answered."""

    def __init__(self, renderer: Renderer, splicer: Splicer, history: TokenHistory) -> None:
        self._renderer = renderer
        self._splicer = splicer
        self._history = history
        # Why the spellings too: hidden texts compare only where the same ones are hidden.
        named = "\0".join((renderer.fingerprint, *renderer.shield.hidden))
        self._fingerprint = sha256(named.encode("utf-8", "surrogatepass")).hexdigest()

    async def look(self, call: Call, rendered: Rendered) -> Look:
        """Waits for the store for at most its bound."""
        said = digests(call.dialogue)
        trace = HistoryTrace(said, rendered.text, rendered.now)
        if not self._renderer.shield.is_usual(rendered.shields):
            # Why not at all: its hidden text compares with no other one's.
            return Look(None, Ask(rendered.text, rendered.shields, ()))
        ask = Ask(rendered.text, rendered.shields, call.dialogue.tools)
        if not any(turn.role == "assistant" for turn in call.dialogue.turns):
            return Look(trace, ask)
        place = self._place(call)
        kept = await self._history.find(place, call.dialogue, said)
        if kept is None:
            kept = await self._history.last(place, said)
            return Look(trace, ask, kept, begun=self._begun(ask, kept))
        spliced = self._splicer.splice(ask, kept)
        begun = self._begun(ask, kept) if spliced is None else ()
        return Look(trace, ask, kept, spliced, begun)

    def _begun(self, ask: Ask, kept: Kept | None) -> tuple[tuple[str, TokenIds], ...]:
        """Another answer does not change what the engine has computed before it."""
        mark = self._renderer.encoder.mark
        if kept is None or mark is None or not self._splicer.has_prompt(ask.text, kept):
            return ()
        ids, [id] = kept.prompt, self._renderer.tokenizer.encode(mark)
        text = ask.text[: max(ask.text.rfind(mark, 0, kept.characters), 0)]
        count = len(ids) - 1 - ids[::-1].index(id) if id in ids else 0
        return ((text, TokenIds(ids[:count])),) if text and count else ()

    def note(self, call: Call, rendered: Rendered, look: Look, ids: TokenIds) -> HistoryNote | None:
        """What to tell of it; None where there is nothing to go on from."""
        if look.kept is None:
            return None
        if look.spliced is not None:
            return HistoryNote("spliced", len(look.spliced.ids))
        fresh = Fresh(
            dialogue=call.dialogue,
            digests=digests(call.dialogue),
            ask=look.ask,
            ids=ids,
            text_at=lambda now: self._renderer.text_at(rendered, now),
            segments=lambda: self._renderer.segments(rendered),
        )
        found = explain(self._splicer, look.kept, fresh)
        return HistoryNote("diverged", found.token, found.cause, found.where, found.lost)

    def keep(self, call: Call, prompt: Prompt, answers: Sequence[TokenIds]) -> None:
        """One answer a choice. Does not wait for the store."""
        trace = prompt.trace
        if trace is None or not answers:
            return
        text = trace.text.encode("utf-8", "surrogatepass")
        kept = Kept(
            version=VERSION,
            digests=trace.digests,
            now=trace.now,
            ids=prompt.ids.to_le(),
            characters=len(trace.text),
            text_digest=sha256(text).digest(),
            phase=prompt.phase,
            answers=tuple(map(self._splicer.kept_answer, answers)),
        )
        self._history.keep(self._place(call), kept)

    def _place(self, call: Call) -> Place:
        identity = call.identity
        return Place(
            self._fingerprint, identity.tenant, call.hints.cache_salt or "", identity.session
        )
