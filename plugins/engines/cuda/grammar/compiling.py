"""Grammars of one model: compiled in threads, kept by what they are, one machine made a choice.

Knows which backends there are, and imports none before it is built.
"""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Literal, final

from tokenwire.core.errors import ConfigError
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.tokens import Constraint, TokenJob
from tokenwire.plugins.engines.cuda.constrained import Constrained, Grammars, Make
from tokenwire.plugins.engines.cuda.grammar.backend import WORDS_KEPT, Backend, Follow, Words
from tokenwire.plugins.engines.cuda.grammar.held import Held
from tokenwire.plugins.engines.cuda.grammar.threads import Threads

__all__ = ("BACKENDS", "CompiledGrammars", "grammars")

KEPT = 256
THREADS = 2


def _xgrammar() -> Backend:
    from tokenwire.plugins.engines.cuda.grammar.by_xgrammar import XGrammar

    return XGrammar()


def _llguidance() -> Backend:
    from tokenwire.plugins.engines.cuda.grammar.by_llguidance import LLGuidance

    return LLGuidance()


BACKENDS: dict[str, Callable[[], Backend]] = {"xgrammar": _xgrammar, "llguidance": _llguidance}
"""In the order of preference. Names are those of the packages."""


def grammars(
    name: Literal["auto", "xgrammar", "llguidance", "none"],
    tokenizer: Tokenizer | None,
    size: int,
    eos_ids: tuple[int, ...],
) -> CompiledGrammars | None:
    """None: answers are held to no grammar here, since no backend is installed, or the ids'
    bytes are not known. Raises ConfigError where the one that is named is not installed."""
    if name == "none":
        return None
    wanted = list(BACKENDS) if name == "auto" else [name]
    there = [each for each in wanted if importlib.util.find_spec(each) is not None]
    if not there and name != "auto":
        raise ConfigError(f"engine cuda: grammar {name!r} is not installed: pip install {name}")
    if not there or tokenizer is None:
        return None
    return CompiledGrammars(BACKENDS[there[0]](), tokenizer, size, eos_ids)


@final
class CompiledGrammars(Grammars):
    def __init__(
        self, backend: Backend, tokenizer: Tokenizer, size: int, eos_ids: tuple[int, ...]
    ) -> None:
        self._backend = backend
        self._tokenizer = tokenizer
        self._size = size
        # Why not all: a tokenizer may know more ids than the network has scores for.
        self._eos_ids = tuple(id for id in eos_ids if id < size)
        self._threads = Threads[tuple[Follow, Words]](THREADS, "tokenwire-grammar")
        self._lock = Lock()
        self._made: OrderedDict[tuple[str, str], Future[tuple[Follow, Words]]] = OrderedDict()
        self._words: OrderedDict[frozenset[str], Words] = OrderedDict()
        self.kinds = backend.kinds
        self.name = backend.name

    def begin(self, job: TokenJob) -> Future[Make]:
        assert job.constraint is not None
        constraint, result = job.constraint, Future[Make]()

        def give(done: Future[tuple[Follow, Words]]) -> None:
            if done.cancelled():
                result.cancel()
                result.set_running_or_notify_cancel()
                return
            error = done.exception()
            if error is not None:
                result.set_exception(error)
                return
            follow, words = done.result()

            def make() -> Constrained:
                return Held(constraint, job.reasoning, follow, words)

            result.set_result(make)

        self._compiled(constraint).add_done_callback(give)
        return result

    def close(self) -> None:
        self._threads.close()

    def _compiled(self, constraint: Constraint) -> Future[tuple[Follow, Words]]:
        key = constraint.kind, constraint.text
        with self._lock:
            found = self._made.get(key)
            if found is None or _has_failed(found):
                found = self._made[key] = self._threads.submit(partial(self._compile, constraint))
                if len(self._made) > KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return found

    def _compile(self, constraint: Constraint) -> tuple[Follow, Words]:
        words = self._words_for(constraint)
        return self._backend.compile(constraint, words), words

    def _words_for(self, constraint: Constraint) -> Words:
        """Special tokens are no text, but for those that the constraint spells itself: the
        markers of a family's calls."""
        specials = [each for each in self._tokenizer.vocabulary.added if each.special]
        spelled = frozenset(each.text for each in specials if each.text in constraint.text)
        with self._lock:
            words = self._words.get(spelled)
            if words is not None:
                self._words.move_to_end(spelled)
        if words is None:
            hidden = {each.id for each in specials if each.text not in spelled}
            words = Words(tuple(self._piece(id, hidden) for id in range(self._size)), self._eos_ids)
            with self._lock:
                self._words[spelled] = words
                if len(self._words) > WORDS_KEPT:
                    self._drop(self._words.popitem(last=False)[1])
        return words

    def _drop(self, words: Words) -> None:
        """What was compiled over a vocabulary that is kept no more holds on to it."""
        for key, found in tuple(self._made.items()):
            if found.done() and not _has_failed(found) and found.result()[1] is words:
                del self._made[key]

    def _piece(self, id: int, hidden: set[int]) -> bytes:
        if id in hidden or id in self._eos_ids:
            return b""
        try:
            return self._tokenizer.token_bytes(id)
        except KeyError:
            return b""


def _has_failed(found: Future[tuple[Follow, Words]]) -> bool:
    return found.done() and (found.cancelled() or found.exception() is not None)
