"""A call and its prompt to a job in ids. Pure; what the engine cannot do is refused or listed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import final

from msgspec import Struct

from tokenwire.core.bad_words import BANNED, banned_ids
from tokenwire.core.call import Call, Sampling
from tokenwire.core.constraints import held, offered
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.ports.dialect import ParserMaker
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Constraint,
    EngineCard,
    JobSampling,
    JobStopping,
    KvPin,
    KvSettings,
    LogprobSettings,
    ReasoningBudget,
    TokenJob,
)

__all__ = ("JobBuilder", "Planned")


class Planned(Struct, frozen=True):
    """A job, the fields that this engine cannot use, and what its stop ids stand for."""

    job: TokenJob
    ignored: tuple[str, ...] = ()
    stop_strings: tuple[str, ...] = ()
    stop_spellings: Mapping[int, str] = {}


@final
class JobBuilder:
    """Made once a model. `defaults` is what the checkpoint recommends where a client is silent."""

    def __init__(
        self,
        model: str,
        tokenizer: Tokenizer,
        parser: ParserMaker,
        *,
        defaults: Mapping[str, object],
        context_length: int | None = None,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._parser = parser
        self._defaults = _defaults(defaults)
        self._context = context_length
        self._added = {token.text: token.id for token in tokenizer.vocabulary.added}
        self._eos = tokenizer.vocabulary.eos_ids
        self._dialect_stops = tuple(
            self._added[text] for text in parser.stop_strings if text in self._added
        )
        self._reasoning = (
            (tokenizer.encode(parser.reasoning_start), tokenizer.encode(parser.reasoning_end))
            if parser.reasoning_start
            else None
        )

    def offered(self, dialogue: Dialogue, card: EngineCard | None) -> Dialogue:
        """What the template is given: without tools that only their absence keeps from being
        called."""
        return offered(dialogue, self._parser, card)

    def context_length(self, card: EngineCard) -> int:
        return min(self._context or card.context_length, card.context_length)

    def plan(self, call: Call, prompt: Prompt, card: EngineCard, *, job: str, seed: int) -> Planned:
        """Raises RequestError when the prompt does not fit, or a field cannot be honoured and an
        answer without it would be wrong."""
        context = self.context_length(card)
        left = context - len(prompt.ids)
        if left < 1:
            raise RequestError(
                f"prompt is too long: {len(prompt.ids)} tokens > {context - 1} maximum"
                f" (this model's maximum context length is {context} tokens, and an answer needs"
                " at least one)",
                kind=ErrorKind.CONTEXT_LENGTH,
                param="messages",
                code="context_length_exceeded",
            )
        logprobs = self._logprobs(call, card)
        self._check_ids(call, card)
        ignored: list[str] = []
        spellings = self._stop_spellings(call)
        wanted = call.stopping.max_tokens
        stopping = JobStopping(
            max_tokens=left if wanted is None else min(wanted, left),
            min_tokens=call.stopping.min_tokens,
            stop_ids=self._stop_ids(call, spellings),
            sequences=tuple(map(TokenIds, call.stopping.sequences)),
            ignore_eos=call.stopping.ignore_eos,
        )
        constraint = self._constraint(call, prompt, card, ignored)
        built = TokenJob(
            job=job,
            model=self._model,
            prompt=prompt.ids,
            n=call.output.n,
            sampling=self._sampling(call.sampling, card, seed, ignored),
            stopping=stopping,
            reasoning=self._budget(call, prompt, card, ignored, follow=constraint is not None),
            constraint=constraint,
            logprobs=logprobs,
            kv=KvSettings(salt=_salt(call), pins=self._pins(call, prompt, card, ignored)),
            media=prompt.media,
            priority=call.hints.priority,
            deadline_ms=call.hints.deadline_ms,
            expected_tokens=call.hints.expected_tokens,
            annotations=call.annotations,
        )
        return Planned(
            built,
            tuple(ignored),
            tuple(text for text in call.stopping.strings if text not in spellings.values()),
            spellings,
        )

    def _pins(
        self, call: Call, prompt: Prompt, card: EngineCard, ignored: list[str]
    ) -> tuple[KvPin, ...]:
        """Only whole blocks can be kept: each mark moves back to the last border before it."""
        if call.hints.cache_markers and not (card.hash_root and prompt.marks):
            ignored.append("cache_markers")
            return ()
        pins: dict[int, int | None] = {}
        for mark in prompt.marks:
            tokens = mark.tokens // card.block_size * card.block_size
            if tokens:
                pins[tokens] = max(pins.get(tokens) or 0, mark.ttl_s or 0) or None
        return tuple(KvPin(tokens, ttl_s) for tokens, ttl_s in pins.items())

    def _logprobs(self, call: Call, card: EngineCard) -> LogprobSettings | None:
        output = call.output
        needed = {"logprobs": output.logprobs, "prompt_logprobs": output.prompt_logprobs}
        asked = [name for name, count in needed.items() if count is not None]
        for name in asked:
            if not (card.can(name) and card.can("logprobs")):
                of = "" if name == "logprobs" else " of a prompt"
                raise RequestError(
                    f"model {self._model!r} cannot give log probabilities{of}", param=name
                )
        if not asked:
            return None
        ids = TokenIds(output.logprob_ids) if output.logprob_ids else NO_IDS
        return LogprobSettings(top=output.logprobs or 0, ids=ids, prompt=output.prompt_logprobs)

    def _check_ids(self, call: Call, card: EngineCard) -> None:
        """Ids that a client names must be the model's."""
        named = {
            "logprob_token_ids": call.output.logprob_ids,
            "logit_bias": call.sampling.logit_bias,
            "allowed_token_ids": call.sampling.allowed_ids,
            "stop_token_ids": call.stopping.ids,
            "stopping.sequences": chain.from_iterable(call.stopping.sequences),
        }
        for field, ids in named.items():
            for id in ids:
                if not 0 <= id < card.vocab_size:
                    raise RequestError(
                        f"{field}: model {self._model!r} has token ids 0 to"
                        f" {card.vocab_size - 1}, got {id}",
                        param=field,
                    )

    def _stop_spellings(self, call: Call) -> dict[int, str]:
        """Stop strings that spell one added token end the answer by id, before any text."""
        if call.stopping.include_stop:
            return {}
        return {self._added[text]: text for text in call.stopping.strings if text in self._added}

    def _stop_ids(self, call: Call, spellings: Mapping[int, str]) -> TokenIds:
        own = () if call.stopping.ignore_eos else (*self._eos, *self._dialect_stops)
        ids = dict.fromkeys((*own, *call.stopping.ids, *spellings))
        return TokenIds(ids) if ids else NO_IDS

    def _sampling(
        self, asked: Sampling, card: EngineCard, seed: int, ignored: list[str]
    ) -> JobSampling:
        values: dict[str, object] = dict(self._defaults)
        for name in ("temperature", "top_p", "top_k", "repetition_penalty"):
            if (value := getattr(asked, name)) is not None:
                values[name] = value
        for name, capability in OPTIONAL:
            value = getattr(asked, name)
            if value is None or not value:
                continue
            if card.can(capability):
                values[name] = TokenIds(value) if name == "allowed_ids" else value
            else:
                ignored.append(name)
        if asked.bad_words and not card.can("logit_bias"):
            ignored.append("bad_words")
        elif asked.bad_words:
            banned, is_whole = banned_ids(asked.bad_words, self._tokenizer)
            values["logit_bias"] = {**asked.logit_bias, **dict.fromkeys(banned, BANNED)}
            ignored += () if is_whole else ("bad_words",)
        values["seed"] = asked.seed if asked.seed is not None else seed
        if asked.seed is not None and not card.can("seed"):
            ignored.append("seed")
        values["top_k"] = max(0, int(values.get("top_k", 0)))  # type: ignore[call-overload]
        return JobSampling(**values)  # type: ignore[arg-type]

    def _constraint(
        self, call: Call, prompt: Prompt, card: EngineCard, ignored: list[str]
    ) -> Constraint | None:
        may_think = self._reasoning is not None and call.dialogue.reasoning.mode != "off"
        thinks = prompt.phase == "reasoning" or may_think
        found = held(call.dialogue, self._parser, card, thinks=thinks)
        ignored += found.ignored
        return found.constraint

    def _budget(
        self, call: Call, prompt: Prompt, card: EngineCard, ignored: list[str], *, follow: bool
    ) -> ReasoningBudget | None:
        """`follow`: the engine must know where reasoning ends, for a constraint begins there."""
        budget = call.dialogue.reasoning.budget
        if budget is not None and (self._reasoning is None or not card.can("reasoning_budget")):
            ignored.append("reasoning_budget")
            budget = None
        if self._reasoning is None or (budget is None and not follow):
            return None
        start, end = self._reasoning
        return ReasoningBudget(
            open=prompt.phase == "reasoning",
            start_ids=start,
            end_ids=end,
            budget=budget,
            on_budget="force" if budget is not None else "finish",
            force_ids=end if budget is not None else NO_IDS,
        )


OPTIONAL = (
    ("min_p", "min_p"),
    ("frequency_penalty", "penalties"),
    ("presence_penalty", "penalties"),
    ("logit_bias", "logit_bias"),
    ("allowed_ids", "allowed_ids"),
)


def _defaults(config: Mapping[str, object]) -> dict[str, object]:
    """Of generation_config.json: what the checkpoint's makers sample with."""
    if config.get("do_sample") is False:
        return {}
    found: dict[str, object] = {}
    for name in ("temperature", "top_p", "top_k", "repetition_penalty"):
        value = config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found


def _salt(call: Call) -> str:
    """Tenants never share blocks; within one, a client may split further. The tenant's length comes
    first, so that no client's salt can spell another tenant's."""
    tenant = "" if call.identity.tenant == "default" else call.identity.tenant
    salt = call.hints.cache_salt or ""
    return f"{len(tenant)}:{tenant}/{salt}" if tenant or salt else ""
