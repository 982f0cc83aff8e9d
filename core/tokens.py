"""The token-ID interface, version 1: what a gateway and an engine say to each other.

Knows no text and no roles: strings here are names, grammars and annotations, never a prompt. Every
Struct is encoded as a map; new fields are optional and readers skip what they do not know; an enum
value from a newer peer decodes to `OTHER` with its name kept. Unset means unset; 0 is a value.
Argues its length: it is the contract that everything else rests on, and reads best in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal, Self, TypeAlias

from msgspec import Struct

from tokenwire.core.token_ids import NO_IDS, TokenIds

__all__ = (
    "CAPABILITIES",
    "INTERFACE_VERSION",
    "Abort",
    "AbortReason",
    "Adapter",
    "BlockRemoved",
    "BlockSnapshot",
    "BlockStored",
    "Constraint",
    "Control",
    "Counts",
    "Credit",
    "EngineCard",
    "EngineStatus",
    "Figure",
    "Finish",
    "FinishCause",
    "FinishKind",
    "Handoff",
    "IdLogprobs",
    "Job",
    "JobSampling",
    "JobStopping",
    "KvEvent",
    "KvLayout",
    "KvPin",
    "KvSettings",
    "Link",
    "LogprobSettings",
    "MediaItem",
    "MediaProcessor",
    "ReasoningBudget",
    "Release",
    "TokenDelta",
    "TokenJob",
    "TraceContext",
    "is_capability",
)

INTERFACE_VERSION = 1

CAPABILITIES = (
    "n",  # several choices of one job
    "logprobs",  # of the generated ids
    "prompt_logprobs",  # of the prompt's ids
    "stop_ids",  # ids that end a choice, beside eos
    "stop_sequences",  # sequences of ids that end it
    "logit_bias",  # added to the logits of single ids
    "allowed_ids",  # no other id may be chosen
    "penalties",  # frequency, presence and repetition
    "min_p",  # a floor relative to the likeliest id
    "seed",  # the same seed, the same ids
    "priority",  # of jobs that wait
    "deadline",  # jobs end when their time is over
    "handoff",  # KV computed on one engine is used on another
    "resume",  # a job continues after ids that were delivered before
    "reasoning_budget",  # reasoning is ended after so many ids
    "credit",  # no more tokens are sent than the receiver allowed
    "adapter",  # LoRA adapters, by name
)
"""What an engine can declare, and "grammar:KIND" for each kind of constraint that it keeps to."""

GRAMMAR = "grammar:"


def is_capability(name: str) -> bool:
    return name in CAPABILITIES or name.removeprefix(GRAMMAR) not in (name, "")


class OpenEnum(Enum):
    """An enum that keeps a name it does not know: `.name` is "OTHER", `.value` the name."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        other = object.__new__(cls)
        other._name_ = "OTHER"
        other._value_ = value
        return other

    @property
    def is_known(self) -> bool:
        return self._name_ != "OTHER"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value_ == self._value_

    def __hash__(self) -> int:
        return hash(self._value_)


# --- the handshake ---------------------------------------------------------------------------


class KvLayout(Struct, frozen=True, omit_defaults=True):
    """The pairing key of prefill and decode: two engines exchange KV only where it is equal."""

    dtype: str
    layers: int
    kv_heads: int
    head_dim: int
    page_tokens: int
    kind: str = "gqa"


class Adapter(Struct, frozen=True, omit_defaults=True):
    """A LoRA adapter, by name and revision."""

    name: str
    revision: str = ""


class MediaProcessor(Struct, frozen=True, omit_defaults=True):
    """Turns media into placeholder tokens; both sides must agree on name and revision."""

    name: str
    revision: str


class EngineCard(Struct, frozen=True, omit_defaults=True):
    """The handshake: what this engine serves and what it can honour."""

    model: str
    vocab_size: int
    context_length: int
    interface: int = INTERFACE_VERSION
    revision: str = ""
    fingerprints: Mapping[str, str] = {}
    """Name -> sha256 hex: "vocabulary", "added_tokens", "merges", "chat_template" (fingerprint.py).
    Absent: the engine cannot know it."""
    eos_ids: tuple[int, ...] = ()
    block_size: int = 16
    """KV block grain, in tokens."""
    hash_scheme: str = "kvb1"
    hash_root: str = ""
    """Hex of blocks.root(...); empty: this engine has no block cache."""
    kv_layout: KvLayout | None = None
    role: Literal["full", "encode", "prefill", "decode"] = "full"
    parallel: str = ""
    """For example "TP_2" or "DEP_8"."""
    zone: str = ""
    adapters: tuple[Adapter, ...] = ()
    media: MediaProcessor | None = None
    tasks: tuple[str, ...] = ("generate",)
    """Of "generate", "embed", "score"."""
    embedding_size: int | None = None
    """Numbers in a vector of a task "embed". None: unknown, or no such task."""
    capabilities: tuple[str, ...] = ()
    """Of CAPABILITIES, and "grammar:KIND" for each kind of constraint. Of any other, a gateway
    knows nothing."""
    credit_cap: int = 1024
    """How many tokens a job without credit may run ahead, buffered as ids."""

    def can(self, capability: str) -> bool:
        return capability in self.capabilities


class Figure(Struct, frozen=True, omit_defaults=True):
    """One figure of an engine, by its name in `core.figures`."""

    name: str
    values: tuple[float, ...]
    """One number; of a histogram the count of each bucket, and the sum."""
    label: str = ""
    """What it is told apart by, where a name has several."""


class EngineStatus(Struct, frozen=True, omit_defaults=True):
    """What an engine is doing now. Never claims capacity that it does not have."""

    card: EngineCard
    ready: bool = True
    reason: str = ""
    """Why it is not ready, for people."""
    running: int = 0
    waiting: int = 0
    kv_blocks_total: int = 0
    kv_blocks_free: int = 0
    """Free or evictable."""
    draining: bool = False
    figures: tuple[Figure, ...] = ()
    """Counted since it started, and sizes now. Readers skip names that they do not know."""
    about: Mapping[str, str | int | float] = {}
    """What it found and chose when it started, for people."""


# --- the job ---------------------------------------------------------------------------------


class JobSampling(Struct, frozen=True, omit_defaults=True):
    """How to choose tokens. Choice k samples with seeds.mix(seed, k)."""

    temperature: float = 1.0
    """0: greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0: all."""
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    """int64; the gateway always fills one."""
    logit_bias: Mapping[int, float] = {}
    allowed_ids: TokenIds = NO_IDS
    """Empty: all."""


class JobStopping(Struct, frozen=True, omit_defaults=True):
    """When to stop. The id that ends a choice counts towards `max_tokens`."""

    max_tokens: int | None = None
    """None: what the context leaves."""
    min_tokens: int = 0
    """Before that many, eos and stop ids are masked and sequences do not match."""
    stop_ids: TokenIds = NO_IDS
    sequences: tuple[TokenIds, ...] = ()
    ignore_eos: bool = False


class ReasoningBudget(Struct, frozen=True, omit_defaults=True):
    """How long to think, in ids. `open`: the prompt ends inside reasoning."""

    open: bool = False
    start_ids: TokenIds = NO_IDS
    end_ids: TokenIds = NO_IDS
    budget: int | None = None
    on_budget: Literal["force", "finish"] = "finish"
    force_ids: TokenIds = NO_IDS
    """With "force": delivered and counted, flagged `forced`."""


class Constraint(Struct, frozen=True, omit_defaults=True):
    """What the ids must spell. `start`: at the first id, after reasoning, or after `after_ids`."""

    kind: str
    """"json_schema", "json_object", "regex", "grammar", "choice", "structural_tag"."""
    text: str = ""
    """The schema, pattern or grammar; a JSON array of the choices; a structural tag as JSON."""
    start: Literal["now", "after_reasoning", "after_ids"] = "now"
    after_ids: TokenIds = NO_IDS


class LogprobSettings(Struct, frozen=True, omit_defaults=True):
    """Which log probabilities to send. `mode` "raw": before temperature, penalties and masks."""

    top: int = 0
    """0: the chosen id's alone."""
    ids: TokenIds = NO_IDS
    """Always report these ids too."""
    prompt: int | None = None
    """None: no prompt logprobs; k: with the k likeliest."""
    mode: Literal["raw", "sampled"] = "raw"


class KvPin(Struct, frozen=True, omit_defaults=True):
    """The blocks of the prompt's first `tokens` ids are worth keeping, for `ttl_s` seconds from
    their last use (None: as long as others are)."""

    tokens: int
    ttl_s: int | None = None


class KvSettings(Struct, frozen=True, omit_defaults=True):
    """Who may share this prompt's blocks: the salt goes into every block hash."""

    salt: str = ""
    hash_scheme: str = "kvb1"
    pins: tuple[KvPin, ...] = ()
    """By rising number of tokens, each a whole number of blocks. A hint: it never changes ids."""


class Handoff(Struct, frozen=True, omit_defaults=True):
    """Names a KV hand-over on both of its legs."""

    room: str
    peer: str = ""
    ticket: str = ""


class MediaItem(Struct, frozen=True, omit_defaults=True):
    """One picture or recording, whose placeholder ids stand at `at` for `length` tokens."""

    kind: str
    sha256: str
    at: int
    length: int
    size: tuple[int, ...] = ()
    ref: str | None = None
    data: bytes | None = None


class TraceContext(Struct, frozen=True, omit_defaults=True):
    """W3C Trace Context headers."""

    traceparent: str
    tracestate: str = ""


class TokenJob(Struct, frozen=True, omit_defaults=True):
    """One prompt to run, in ids."""

    job: str
    model: str
    prompt: TokenIds
    attempt: int = 0
    task: Literal["generate", "embed", "score"] = "generate"
    adapter: Adapter | None = None
    n: int = 1
    sampling: JobSampling = JobSampling()
    stopping: JobStopping = JobStopping()
    reasoning: ReasoningBudget | None = None
    constraint: Constraint | None = None
    logprobs: LogprobSettings | None = None
    kv: KvSettings = KvSettings()
    phase: Literal["full", "encode", "prefill", "decode"] = "full"
    handoff: Handoff | None = None
    media: tuple[MediaItem, ...] = ()
    priority: int = 0
    """Larger is more urgent."""
    deadline_ms: int | None = None
    """Time left when this was sent."""
    expected_tokens: int | None = None
    resume_ids: TokenIds = NO_IDS
    """Output that an earlier attempt already delivered: counts, and is never sent again."""
    credit: int | None = None
    """How many tokens may be sent before a Credit is needed. None: no limit."""
    annotations: Mapping[str, str] = {}
    trace: TraceContext | None = None


Job: TypeAlias = TokenJob


# --- the answer ------------------------------------------------------------------------------


class FinishKind(OpenEnum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class FinishCause(OpenEnum):
    """The finer reason, under its kind."""

    # stop
    EOS = "eos"
    ID = "id"
    SEQUENCE = "sequence"
    GRAMMAR = "grammar"
    # length
    MAX = "max"
    CONTEXT = "context"
    BUDGET = "budget"
    # abort
    CLIENT = "client"
    STOP_TEXT = "stop_text"
    DEADLINE = "deadline"
    DRAIN = "drain"
    PREEMPTED = "preempted"
    # error
    REFUSED = "refused"
    OVERLOADED = "overloaded"
    CONTEXT_LENGTH = "context_length"
    LOST = "lost"
    INTERNAL = "internal"


class Finish(Struct, frozen=True, omit_defaults=True):
    """The end of a choice. `matched`: the ids that ended it, which no delta carries as `ids`."""

    kind: FinishKind
    cause: FinishCause
    matched: TokenIds = NO_IDS
    retryable: bool = False
    """error: another engine might do better."""
    replay_safe: bool = False
    """error: nothing happened that sending the job again would double."""
    message: str = ""
    """error: for the log. Shown to a client only where its own constraint was refused: in one short
    line, and only if that quotes nothing of the prompt (`failures.constraint_error`)."""


class IdLogprobs(Struct, frozen=True, omit_defaults=True):
    """Of one position: the chosen id's log probability (natural log), its rank, the likeliest."""

    id: int
    logprob: float
    rank: int = 0
    """1: the likeliest; 0: unknown."""
    top: tuple[tuple[int, float], ...] = ()
    """(id, logprob), likeliest first."""


class Counts(Struct, frozen=True, omit_defaults=True):
    """Tokens: of the prompt, of it found in the cache, of it computed, and generated (choice)."""

    prompt: int = 0
    cached: int = 0
    computed: int = 0
    generated: int = 0


class TokenDelta(Struct, frozen=True, omit_defaults=True):
    """What one step brought for one choice.

    `at`: generated tokens of this choice before this delta. A receiver takes it if `at` equals the
    tokens it holds, trims an overlap after comparing ids, and fails on a gap or a mismatch.
    Exactly one delta of a (job, choice) has `finish`: the last.
    """

    job: str
    at: int = 0
    attempt: int = 0
    choice: int = 0
    ids: TokenIds = NO_IDS
    logprobs: tuple[IdLogprobs, ...] = ()
    """One an id, where asked for."""
    prompt_logprobs: tuple[IdLogprobs | None, ...] | None = None
    """One a prompt token; the first is None."""
    vectors: tuple[tuple[float, ...], ...] = ()
    scores: tuple[float, ...] = ()
    forced: bool = False
    counts: Counts | None = None
    """On the first delta of each choice and on the last."""
    handoff: Handoff | None = None
    finish: Finish | None = None


# --- control and events ----------------------------------------------------------------------


class AbortReason(OpenEnum):
    CLIENT = "client"
    STOP_TEXT = "stop_text"
    DEADLINE = "deadline"
    DRAIN = "drain"


class Abort(Struct, frozen=True, omit_defaults=True, tag="abort"):
    """Stop a choice, or the whole job when `choice` is None. Aborting what is over is nothing."""

    job: str
    choice: int | None = None
    reason: AbortReason = AbortReason.CLIENT


class Credit(Struct, frozen=True, omit_defaults=True, tag="credit"):
    """The receiver can take `tokens` more tokens of this job."""

    job: str
    tokens: int


class Release(Struct, frozen=True, omit_defaults=True, tag="release"):
    """The KV held under this hand-over ticket may go."""

    ticket: str


Control: TypeAlias = Abort | Credit | Release


class BlockStored(Struct, frozen=True, omit_defaults=True, tag="stored"):
    """Blocks that the cache now holds, as a chain after `parent` (hex hashes)."""

    seq: int
    hashes: tuple[str, ...]
    parent: str = ""
    tier: str = "device"


class BlockRemoved(Struct, frozen=True, omit_defaults=True, tag="removed"):
    """Blocks that the cache no longer holds."""

    seq: int
    hashes: tuple[str, ...]
    tier: str = "device"


class BlockSnapshot(Struct, frozen=True, omit_defaults=True, tag="snapshot"):
    """All that the cache holds as of `seq`: where a reader starts, or starts again after a gap."""

    seq: int
    hashes: tuple[str, ...]
    tier: str = "device"


KvEvent: TypeAlias = BlockStored | BlockRemoved | BlockSnapshot


class Link(Struct, frozen=True, omit_defaults=True):
    """One numbered frame of a gateway-engine stream: the deltas of one engine step."""

    seq: int
    deltas: tuple[TokenDelta, ...] = ()
