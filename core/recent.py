"""The last few prompts, kept for debugging only. Bounded; empty unless `server.debug` is on."""

from __future__ import annotations

from collections import OrderedDict
from typing import final

from msgspec import Struct

from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt

__all__ = ("RecentPrompt", "RecentPrompts")


class RecentPrompt(Struct, frozen=True):
    """A prompt and the tokenizer that can spell its ids."""

    prompt: Prompt
    tokenizer: Tokenizer


@final
class RecentPrompts:
    """The prompts of the last `limit` calls, by request id."""

    __slots__ = ("_kept", "_limit")

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, RecentPrompt] = OrderedDict()

    def keep(self, request_id: str, prompt: Prompt, tokenizer: Tokenizer) -> None:
        self._kept[request_id] = RecentPrompt(prompt, tokenizer)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def get(self, request_id: str) -> RecentPrompt | None:
        return self._kept.get(request_id)
