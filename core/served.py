"""One model as it is served: how to ask it, how to read it, and the engine behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set
from typing import Literal, final

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.call import Call, Embed, ModelInfo
from tokenwire.core.choice_ids import ChoiceDecoder
from tokenwire.core.continuation import Continuation
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.described import described
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.dispatch import Dispatcher
from tokenwire.core.errors import ErrorKind, RequestError, ServiceError
from tokenwire.core.generation import Generation
from tokenwire.core.inline_reasoning import InlineReasoning
from tokenwire.core.jobs import JobBuilder, Planned
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt
from tokenwire.core.queries import ParseOptions
from tokenwire.core.raw_calls import RawCalls
from tokenwire.core.rendering import Renderer
from tokenwire.core.splice import Splicer
from tokenwire.core.token_history import TokenHistory
from tokenwire.core.token_report import Report, Telling

__all__ = ("INLINE_CHARACTERS", "AbsentModel", "ServedModel")

log = logging.getLogger("tokenwire.served")

INLINE_CHARACTERS = 8_000
"""So much text is encoded in the event loop: a thread costs more than it saves."""


class AbsentModel(Struct, frozen=True):
    """A configured model that cannot be served, though the server can: its engine is not installed.

    `name` "" stands for any name (the engine would have said its own)."""

    name: str
    problem: str

    def refusal(self) -> ServiceError:
        return _not_ready(self.name or "default", self.problem)


def _not_ready(name: str, problem: str) -> ServiceError:
    return ServiceError(
        ErrorKind.UNAVAILABLE,
        f"model {name!r} is not ready: {problem}",
        code="model_not_ready",
        retry_after=5.0,
    )


@final
class ServedModel:
    """Made at start; `dispatcher` comes when the engine is loaded, else `problem` says why not."""

    def __init__(
        self,
        *,
        name: str,
        created: int,
        tokenizer: Tokenizer,
        renderer: Renderer,
        parser: ParserMaker,
        jobs: JobBuilder,
        raw: RawCalls,
        mock: bool,
        revision: str = "",
        unknown_fields: Literal["keep", "warn", "refuse"] = "keep",
        describes_media: bool = False,
        dialect: tuple[str, str] = ("plain", ""),
    ) -> None:
        """`raw`: for calls without a conversation; `dialect`: which, and why."""
        self.name = name
        self.dialect = dialect
        self.raw = raw
        self.revision = revision
        self.created = created
        self.renderer = renderer
        self.jobs = jobs
        self.is_mock = mock
        self._unknown_fields = unknown_fields
        self._describes_media = describes_media
        self.dispatcher: Dispatcher | None = None
        self.problem = "its engine is loading"
        self._tokenizer = tokenizer
        self._pieces = PieceTable(tokenizer)
        self._parser = parser
        self._history: Continuation | None = None

    def remember(self, history: TokenHistory) -> None:
        """Let conversations go on from their own ids."""
        splicer = Splicer(self.renderer.shield, self._parser, self._pieces)
        self._history = Continuation(self.renderer, splicer, history)

    @property
    def takes_media(self) -> bool:
        """Whether pictures and recordings can reach this model: what they become in its prompt is
        known, and its engine says that it knows the same."""
        processor = self.renderer.media
        if processor is None or self.dispatcher is None:
            return False
        theirs = self.dispatcher.card.media
        ours = (processor.name, processor.revision)
        return theirs is not None and (theirs.name, theirs.revision) == ours

    def engine(self) -> Dispatcher:
        """Raises ServiceError (503) that says what is missing."""
        if self.dispatcher is None:
            raise _not_ready(self.name, self.problem)
        return self.dispatcher

    def able(self, task: Literal["generate", "embed"]) -> Dispatcher:
        """`engine`, of a model whose engine does this. Raises RequestError where it does not."""
        dispatcher = self.engine()
        tasks = dispatcher.card.tasks
        if task not in tasks:
            what = "makes vectors, and no text" if tasks == ("embed",) else "makes no vectors"
            raise RequestError(
                f"model {self.name!r} {what}: its engine does {', '.join(tasks)}, not {task}",
                param="model",
                code="unsupported_task",
            )
        return dispatcher

    def check(self, call: Call | Embed) -> None:
        """Does with fields that the protocol does not read what `parse.unknown_fields` says."""
        if not call.unknown or self._unknown_fields == "keep":
            return
        names = ", ".join(map(repr, call.unknown))
        if self._unknown_fields == "refuse":
            raise RequestError(
                f"model {self.name!r} takes no unknown fields, got {names}",
                param=call.unknown[0],
                code="unknown_field",
            )
        log.warning("model %s: a request has unknown fields: %s", self.name, names)

    def shown(self, call: Call, words: Mapping[str, str]) -> Call:
        """As this model can be told it, once its needs are met: as `parse.media` says. `words`: the
        protocol's."""
        if not self._describes_media:
            return call
        return described(call, self._media_kinds(), words)

    def _media_kinds(self) -> Set[str]:
        processor = self.renderer.media if self.takes_media else None
        return frozenset(() if processor is None else processor.kinds)

    def info(self) -> ModelInfo:
        context = 0
        if self.dispatcher is not None:
            context = self.jobs.context_length(self.dispatcher.card)
        return ModelInfo(self.name, self.created, context)

    async def prompt(
        self, call: Call, now: float, *, tail: str = "", spans: bool = False
    ) -> Prompt:
        """Renders here, encodes long text in a thread that lets the loop run."""
        renderer = self.renderer
        card = None if self.dispatcher is None else self.dispatcher.card
        offered = self.jobs.offered(call.dialogue, card)
        rendered = renderer.render(offered, now, tail=tail, media=self.takes_media)
        # Why: texts are compared there, and do not tell one picture from another.
        history = None if rendered.media else self._history
        look = None if history is None else await history.look(call, rendered)
        encoder = renderer.encoder
        encoding = encoder.begin(rendered.text, rendered.shields, look.known if look else ())
        if encoding.characters <= INLINE_CHARACTERS:
            encoder.fill(encoding)
        else:
            await asyncio.to_thread(encoder.fill, encoding)
        encoder.keep(encoding)
        prompt = renderer.finish(rendered, encoding.ids(), spans=spans)
        if history is not None and look is not None:
            note = history.note(call, rendered, look, prompt.ids)
            prompt = replace(prompt, history=note, trace=look.trace)
        if call.hints.cache_markers:
            marks = renderer.marks(rendered, encoding, call.hints.cache_markers)
            prompt = replace(prompt, marks=marks)
        return renderer.expand(rendered, prompt)

    def keep(self, call: Call, prompt: Prompt, generation: Generation) -> None:
        """What the next turn of this conversation can go on from."""
        if self._history is not None and prompt.trace is not None:
            self._history.keep(call, prompt, generation.answers())

    def reader(self, options: ParseOptions) -> Decoder:
        """For an answer that no call of ours has asked for."""
        setup = DecoderSetup(
            tokenizer=self._tokenizer,
            pieces=self._pieces,
            stops=options.stops,
            include_stop=options.include_stop,
            parallel_calls=options.parallel,
            custom_tools=frozenset(tool.name for tool in options.tools if tool.custom),
        )
        own = ParserSetup(
            phase=options.phase,
            tools=options.tools,
            parse_tools=options.parse_tools,
            reasoning=options.reasoning,
        )
        return Decoder(setup, 0, self._parser.parser(own))

    def generation(self, call: Call, prompt: Prompt, planned: Planned) -> Generation:
        """The machine that reads this call's answer."""
        dialogue = call.dialogue
        setup = DecoderSetup(
            tokenizer=self._tokenizer,
            pieces=self._pieces,
            stops=planned.stop_strings,
            include_stop=call.stopping.include_stop,
            stop_spellings=planned.stop_spellings,
            logprobs=call.output.logprobs is not None,
            parallel_calls=dialogue.tool_choice.parallel,
            custom_tools=frozenset(tool.name for tool in dialogue.tools if tool.custom),
        )
        decoders: list[ChoiceDecoder] = []
        for choice in range(call.output.n):
            own = ParserSetup(
                choice=choice,
                phase=prompt.phase,
                tools=dialogue.tools,
                parse_tools=bool(dialogue.tools) and dialogue.tool_choice.mode != "none",
                reasoning=dialogue.reasoning.mode != "off",
            )
            maker = self._parser
            parser = maker.parser(own)
            if call.output.inline_reasoning:
                start, end = maker.reasoning_start, maker.reasoning_end
                parser = InlineReasoning(parser, choice, start, end)
            decoder = Decoder(setup, choice, parser)
            decoders.append(Telling(decoder) if call.output.token_ids else decoder)
        return Generation(
            decoders,
            prompt.fingerprint,
            pins=planned.job.kv.pins,
            report=self._report(call, prompt),
        )

    def _report(self, call: Call, prompt: Prompt) -> Report | None:
        asks_ids, scores = call.output.token_ids, call.output.prompt_logprobs is not None
        if not (asks_ids or scores):
            return None
        return Report(self._tokenizer, prompt.ids if asks_ids else None, logprobs=scores)
