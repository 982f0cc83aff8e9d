"""Calls without a conversation, of one model: their prompts, their jobs, who reads their answers.

A prompt's answer is text as the model writes it: no reasoning and no calls are looked for. Several
prompts of a call are as many jobs, whose answers come as one. Knows no protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, final

from msgspec.structs import replace

from tokenwire.core import seeds
from tokenwire.core.call import Call, RawPrompt
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.echo import Echo
from tokenwire.core.errors import RequestError
from tokenwire.core.generation import Generation
from tokenwire.core.id_decoder import IdDecoder
from tokenwire.core.jobs import JobBuilder, Planned
from tokenwire.core.muted import Muted
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt, Shields
from tokenwire.core.raw_prompts import RawPrompts
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import EngineCard, TokenJob

__all__ = ("RawCalls",)

INLINE_CHARACTERS: Final = 8_000
"""So much text is encoded in the event loop: a thread costs more than it saves."""


@final
class RawCalls:
    """`prompts`, `plan`, `generation`, in this order, of a call that has raw prompts."""

    def __init__(
        self,
        *,
        model: str,
        tokenizer: Tokenizer,
        parser: ParserMaker,
        jobs: JobBuilder,
        texts: RawPrompts,
    ) -> None:
        """`parser`: makes parsers to which everything is text."""
        self.texts = texts
        self._model = model
        self._tokenizer = tokenizer
        self._pieces = PieceTable(tokenizer)
        self._parser = parser
        self._jobs = jobs

    async def prompts(self, call: Call) -> tuple[Prompt, ...]:
        """Raises RequestError for ids that are none, and for a suffix that cannot be."""
        texts = [self.texts.text(raw) for raw in call.prompts]
        work = [(raw.text, raw.shields) for raw in texts if raw is not None]
        ids = iter(await self._encoded(work))
        return tuple(
            self.texts.prompt(raw, None if text is None else next(ids))
            for raw, text in zip(call.prompts, texts, strict=True)
        )

    def plan(
        self, call: Call, prompts: tuple[Prompt, ...], card: EngineCard, *, job: str, seed: int
    ) -> tuple[Planned, tuple[TokenJob, ...]]:
        """The first prompt's job, and the others'. Raises RequestError as `JobBuilder.plan`."""
        output = call.output
        if output.best_of is not None and not card.can("logprobs"):
            raise self._cannot("best_of", "rank candidates: it gives no log probabilities")
        if output.prompt_logprobs is not None and not card.can("prompt_logprobs"):
            raise self._cannot("echo", "give log probabilities of a prompt: leave logprobs out")
        if call.stopping.sequences and not card.can("stop_sequences"):
            raise self._cannot("stopping.sequences", "end an answer by several ids")
        asked = replace(
            call,
            output=replace(output, n=output.candidates, logprobs=_logprobs(call)),
            stopping=replace(call.stopping, max_tokens=_most(call)),
        )
        planned = [
            # Why: without a seed of the client's, equal prompts must not get equal answers.
            self._jobs.plan(asked, prompt, card, job=job, seed=seeds.mix(seed, k << 16))
            for k, prompt in enumerate(prompts)
        ]
        return planned[0], tuple(each.job for each in planned[1:])

    def generation(self, call: Call, prompts: tuple[Prompt, ...], planned: Planned) -> Generation:
        """The machine that reads the answers to all prompts."""
        choices = range(call.output.candidates * len(prompts))
        echoes: list[Echo] = []
        if call.output.echo:
            scored = call.output.prompt_logprobs is not None
            echoes = [Echo(prompt, self._tokenizer, logprobs=scored) for prompt in prompts]
        return Generation(
            [self._decoder(call, planned, choice) for choice in choices],
            prompts[0].fingerprint,
            prompts=len(prompts),
            echoes=echoes,
        )

    def _decoder(self, call: Call, planned: Planned, choice: int) -> Decoder | IdDecoder | Muted:
        if call.stopping.max_tokens == 0:
            return Muted(choice)
        if call.output.ids:
            return IdDecoder(choice)
        setup = DecoderSetup(
            tokenizer=self._tokenizer,
            pieces=self._pieces,
            stops=planned.stop_strings,
            include_stop=call.stopping.include_stop,
            stop_spellings=planned.stop_spellings,
            logprobs=_logprobs(call) is not None,
        )
        own = ParserSetup(choice=choice, parse_tools=False, reasoning=False)
        return Decoder(setup, choice, self._parser.parser(own))

    def _cannot(self, param: str, what: str) -> RequestError:
        return RequestError(f"{param}: model {self._model!r} cannot {what}", param=param)

    async def encode(self, text: str, *, add_special: bool, parse_special: bool | None) -> TokenIds:
        """A text's ids alone, with what stands around a whole text where that is wanted."""
        raw = self.texts.bare(text, parse_special=parse_special)
        (ids,) = await self._encoded([(raw.text, raw.shields)])
        return self.texts.around(ids) if add_special else ids

    async def whole(self, prompts: Sequence[RawPrompt], most: int | None) -> list[TokenIds]:
        """Each prompt as a text that is over: nothing is generated behind it. Of longer ones the
        first `most` tokens. Raises RequestError for ids that are none of the model's."""
        for raw in prompts:
            if raw.ids is not None:
                self.texts.check(raw.ids, "prompt")
        bare = [self.texts.bare(raw.text) for raw in prompts if raw.ids is None]
        ids = iter(await self._encoded([(each.text, each.shields) for each in bare]))
        return [self._whole(raw, ids, most) for raw in prompts]

    def _whole(self, raw: RawPrompt, ids: Iterator[TokenIds], most: int | None) -> TokenIds:
        if raw.ids is not None:
            return TokenIds(raw.ids[:most])
        own = next(ids)
        return self.texts.around(own, most) if raw.begin else TokenIds(own[:most])

    async def _encoded(self, work: list[tuple[str, Shields]]) -> list[TokenIds]:
        """Long text in a thread that lets the loop run."""
        if sum(len(text) for text, _ in work) <= INLINE_CHARACTERS:
            return [self._tokenizer.encode(*each) for each in work]
        return await asyncio.to_thread(self._tokenizer.encode_many, work)


def _logprobs(call: Call) -> int | None:
    """Candidates are ranked by theirs, whether or not the client sees them."""
    output = call.output
    return 0 if output.logprobs is None and output.best_of is not None else output.logprobs


def _most(call: Call) -> int | None:
    """An engine makes at least one token; of a call that wants none, it is dropped."""
    return 1 if call.stopping.max_tokens == 0 else call.stopping.max_tokens
