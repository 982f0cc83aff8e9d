"""What a client wants done: a `Call` (generate) or a `Query` (answer at once). No wire names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue
from tokenwire.core.queries import (
    Capabilities,
    CapabilityTable,
    Detokenize,
    Detokenized,
    Parse,
    Parsed,
    Render,
    RenderedCall,
    Tokenize,
    Tokenized,
)
from tokenwire.core.stored import StoredQuery, StoredResult

__all__ = (
    "CacheMarker",
    "Call",
    "Count",
    "Embed",
    "Embedded",
    "GetModel",
    "Hints",
    "Identity",
    "Keeping",
    "ListModels",
    "ModelInfo",
    "Need",
    "Output",
    "Query",
    "QueryResult",
    "RawPrompt",
    "Sampling",
    "Stopping",
)

NO_BIAS: Mapping[int, float] = {}
NO_EXTRA: Mapping[str, object] = {}


class Sampling(Struct, frozen=True):
    """How to choose tokens. None means that the client did not say; 0 is a value."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    """int64. None: the gateway fills one in, which does not count as sent by the client."""
    logit_bias: Mapping[int, float] = NO_BIAS
    allowed_ids: tuple[int, ...] = ()
    bad_words: tuple[str, ...] = ()
    """Non-empty; no token that spells one of them, alone or behind a space, is chosen."""


class Stopping(Struct, frozen=True):
    """When to stop. `max_tokens` is clamped to what the context leaves; None means all of it."""

    max_tokens: int | None = None
    min_tokens: int = 0
    strings: tuple[str, ...] = ()
    """Non-empty; they apply to the visible answer only."""
    ids: tuple[int, ...] = ()
    sequences: tuple[tuple[int, ...], ...] = ()
    ignore_eos: bool = False
    include_stop: bool = False
    """Leave the matched stop string in the answer."""


class Output(Struct, frozen=True):
    """What to send back."""

    n: int = 1
    best_of: int | None = None
    """How many candidates are made of each prompt, of which the reply sends the `n` best. None: as
    many as are sent."""
    ids: bool = False
    """Answer in ids: the events are Logprobs alone (NaN where none were asked for), no text."""
    logprobs: int | None = None
    """None: none. k: the chosen token's and the k likeliest (0: the chosen alone)."""
    logprob_ids: tuple[int, ...] = ()
    """Beside the likeliest tokens always these; only with `logprobs`."""
    prompt_logprobs: int | None = None
    echo: bool = False
    """Put the prompt's text, with its log probabilities where asked for, before each answer; where
    there is a dialogue, the text of its last turn if that is the assistant's."""
    token_ids: bool = False
    """Say the prompt's ids, and those of all that was generated, beside the text."""
    inline_reasoning: bool = False
    """Reasoning is text of the answer, between the markers that the model wrote around it."""
    stream: bool = False
    usage: bool = True
    """For streams of protocols that send usage only when asked."""
    continuous_usage: bool = False

    @property
    def candidates(self) -> int:
        """Choices that the engine makes of each prompt."""
        return self.n if self.best_of is None else self.best_of


class Identity(Struct, frozen=True):
    """Who asks. `tenant` is set by a Guard, never from the client's own words."""

    tenant: str = "default"
    user: str | None = None
    session: str | None = None


class CacheMarker(Struct, frozen=True):
    """A prompt prefix worth keeping: it ends with part `part` of turn `turn` (-1: the tools)."""

    turn: int
    part: int
    ttl_s: int | None = None


class Hints(Struct, frozen=True):
    """What may help and never changes an answer. A larger `priority` is more urgent."""

    priority: int = 0
    deadline_ms: int | None = None
    expected_tokens: int | None = None
    cache_markers: tuple[CacheMarker, ...] = ()
    cache_salt: str | None = None


class Keeping(Struct, frozen=True):
    """What becomes of an answer beside going out."""

    store: bool = True
    """It can be asked for again, by the reply's id."""
    background: bool = False
    """It is made whether or not anybody listens."""
    conversation: str | None = None
    """A stored conversation that question and answer are added to."""


class Need(Struct, frozen=True):
    """What only the flow can bring before the call can run: a stored response, a picture by URL,
    or what our keys sealed for this tenant and model (`sealing`; found is bytes, or None for what
    we did not seal: that is no error)."""

    kind: Literal["response", "conversation", "url", "sealed"]
    ref: str


class RawPrompt(Struct, frozen=True):
    """A prompt that no chat template renders: text, or ids (then `text` is "")."""

    text: str = ""
    ids: tuple[int, ...] | None = None
    suffix: str | None = None
    """What comes after the answer, which fills the gap between."""
    begin: bool = True
    """Put before `text` what the tokenizer puts before a text."""


class Call(Struct, frozen=True):
    """One request to generate, whichever protocol it came by."""

    model: str
    dialogue: Dialogue
    sampling: Sampling = Sampling()
    stopping: Stopping = Stopping()
    output: Output = Output()
    identity: Identity = Identity()
    hints: Hints = Hints()
    prompts: tuple[RawPrompt, ...] = ()
    """Where there are any, they are asked instead of the dialogue, whose turns are none. Prompt p
    has the choices p * candidates to (p + 1) * candidates - 1."""
    needs: tuple[Need, ...] = ()
    ignored: tuple[str, ...] = ()
    """Fields that the request names and nothing uses, for the header `x-tokenwire-ignored`."""
    unknown: tuple[str, ...] = ()
    """Of `ignored`, the fields that the codec does not read at all: a model may refuse them."""
    annotations: Mapping[str, str] = {}
    """Goes to the engine as it stands (the mock reads its script's name there)."""
    extra: Mapping[str, object] = NO_EXTRA
    """Fields of the protocol that its own reply needs, and unknown ones."""
    keeping: Keeping | None = None
    """Set only by codecs whose replies are `KeptReply`."""
    truncate: bool = False
    """Leave out the oldest turns where the prompt would not fit, instead of refusing it."""
    last_tokens: int | None = None
    """Of a longer prompt only so many of its last tokens are asked; -1: as many as fit."""

    def resolve(self, found: Mapping[Need, object]) -> Call:
        """The call with its needs met. Codecs whose calls have needs return a subclass."""
        missing = [need.ref for need in self.needs if need not in found]
        if missing:
            raise LookupError(f"needs not met: {', '.join(missing)}")
        return replace(self, needs=())


class ListModels(Struct, frozen=True, tag="list_models"):
    """Which models are served. The fields page as the Messages family does."""

    limit: int | None = None
    after: str | None = None
    before: str | None = None


class GetModel(Struct, frozen=True, tag="get_model"):
    """One model's entry."""

    model: str


class Count(Struct, frozen=True, tag="count"):
    """How many tokens would this call's prompt have."""

    call: Call


class Embed(Struct, frozen=True, tag="embed"):
    """What are the vectors of these texts? One an input, in their order."""

    model: str
    inputs: tuple[RawPrompt, ...]
    """`begin`: put around a text what the tokenizer puts around a whole one."""
    dimensions: int | None = None
    """Keep only so many of a vector's first numbers, made to length 1 again. None: all of them."""
    first_tokens: int | None = None
    """Of a longer input only so many of its first tokens; -1: as many as fit."""
    identity: Identity = Identity()
    hints: Hints = Hints()
    ignored: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Both as in `Call`."""


class Embedded(Struct, frozen=True):
    """`model` as it is served; `prompt_tokens` of all inputs."""

    model: str
    vectors: tuple[tuple[float, ...], ...]
    prompt_tokens: int


class ModelInfo(Struct, frozen=True):
    """What a list of models says of one."""

    name: str
    created: int
    """Unix seconds at which this server loaded it."""
    context_length: int
    owner: str = "tokenwire"


Query: TypeAlias = (
    ListModels
    | GetModel
    | Count
    | Embed
    | Tokenize
    | Detokenize
    | Render
    | Parse
    | Capabilities
    | StoredQuery
)
QueryResult: TypeAlias = (
    tuple[ModelInfo, ...]
    | ModelInfo
    | int
    | Embedded
    | Tokenized
    | Detokenized
    | RenderedCall
    | Parsed
    | CapabilityTable
    | StoredResult
)
"""ListModels -> tuple, GetModel -> ModelInfo, Count -> tokens; the others -> what is called so."""
