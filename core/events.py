"""What a model answers: a part-structured stream, and its legal order. No wire names.

`ORDER` is the only statement of what may follow what; codecs, pipeline and kits step through it,
and the docs' diagram is drawn from it. Unary answers are `fold.fold(events)`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

from tokenwire.core.errors import CodecStateError, ErrorKind

__all__ = (
    "ORDER",
    "Event",
    "Failed",
    "FinishReason",
    "Finished",
    "Logprobs",
    "Order",
    "PartDelta",
    "PartEnd",
    "PartKind",
    "PartStart",
    "Started",
    "TokenLogprob",
    "Usage",
)

PartKind: TypeAlias = Literal["text", "reasoning", "tool_call"]
Data: TypeAlias = bytes  # Why: a field called `bytes` hides the type from annotations.
FinishReason: TypeAlias = Literal[
    "stop", "stop_sequence", "length", "context_length", "tool_calls", "cancelled"
]


class Started(Struct, frozen=True, tag="started"):
    """The engine has begun. Token counts are the engine's own."""

    prompt_tokens: int
    cached_tokens: int = 0
    fingerprint: str = ""
    """Of the render: template, tokenizer and model revision."""
    cache_creation_tokens: int = 0
    """Newly computed ones that the client marked to be kept."""
    cache_creation_long_tokens: int = 0
    """Of those, the ones to be kept longer than five minutes."""
    prompt_ids: tuple[int, ...] = ()
    """Where the call asks for token ids."""
    prompt_logprobs: tuple[TokenLogprob | None, ...] = ()
    """One a prompt token where the call asks for them; the first has none."""


class PartStart(Struct, frozen=True, tag="part_start"):
    """A part of `choice` begins. `name` and `call_id` only on tool calls.

    `call_id` is set only where the dialect itself writes one; else the reply mints it.
    """

    choice: int
    kind: PartKind
    name: str = ""
    call_id: str | None = None
    custom: bool = False


class PartDelta(Struct, frozen=True, tag="part_delta", gc=False):
    """More of the open part: text, reasoning, or a piece of a call's argument text. Never empty.

    `end` is how many characters of the model's raw text had been read where `text` ends, so that
    tokens can be told to belong to it (0 where nobody counts).
    """

    choice: int
    text: str
    end: int = 0


class PartEnd(Struct, frozen=True, tag="part_end"):
    """The open part ends. `complete` is False for a tool call that was cut off."""

    choice: int
    complete: bool = True


class TokenLogprob(Struct, frozen=True):
    """One token's log probability: natural log. `bytes` are the token's own bytes."""

    id: int
    text: str
    bytes: Data
    logprob: float
    top: tuple[TokenLogprob, ...] = ()


class Logprobs(Struct, frozen=True, tag="logprobs"):
    """Of the tokens whose text the next PartDelta of this choice carries."""

    choice: int
    tokens: tuple[TokenLogprob, ...]
    ids: tuple[int, ...] = ()
    """Where the call asks for token ids: those generated since the last event that had any, be they
    text or not."""


class Finished(Struct, frozen=True, tag="finished"):
    """This choice is over. `matched` is the stop string that ended it, if one did."""

    choice: int
    reason: FinishReason
    matched: str | None = None


class Usage(Struct, frozen=True, tag="usage"):
    """The last event of an answer that went well. Tokens, over all choices."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cache_creation_long_tokens: int = 0
    """Of `cache_creation_tokens`, those to be kept longer than five minutes."""


class Failed(Struct, frozen=True, tag="failed"):
    """The last event of an answer that failed. `message` is safe to show."""

    kind: ErrorKind
    message: str
    retry_after: float | None = None


Event: TypeAlias = Started | PartStart | PartDelta | PartEnd | Logprobs | Finished | Usage | Failed

State: TypeAlias = Literal["idle", "text", "reasoning", "tool_call", "finished"]

# (state of the choice, event) -> its next state. An absent key is the error. PartStart is looked up
# under its kind. Around it: Started comes first and once; Usage comes once, after every choice that
# began has finished, and is the last; Failed may come at any time and is the last.
ORDER: Final[dict[tuple[State, str], State]] = {
    ("idle", "text"): "text",
    ("idle", "reasoning"): "reasoning",
    ("idle", "tool_call"): "tool_call",
    ("idle", "logprobs"): "idle",
    ("idle", "finished"): "finished",
    ("text", "delta"): "text",
    ("text", "logprobs"): "text",
    ("text", "end"): "idle",
    ("reasoning", "delta"): "reasoning",
    ("reasoning", "logprobs"): "reasoning",
    ("reasoning", "end"): "idle",
    ("tool_call", "delta"): "tool_call",
    ("tool_call", "logprobs"): "tool_call",
    ("tool_call", "end"): "idle",
}


OPEN: Final = frozenset(("text", "reasoning", "tool_call"))


@final
class Order:
    """Checks one answer's events against ORDER. `states` may be saved and given back."""

    __slots__ = ("_choices", "_life", "states")

    def __init__(self, choices: int = 1) -> None:
        self._choices = choices
        self._life: Literal["new", "open", "over"] = "new"
        self.states: list[State] = ["idle"] * choices

    @property
    def is_over(self) -> bool:
        return self._life == "over"

    def step(self, event: Event) -> None:
        """Take one event; raises CodecStateError when it may not come now."""
        kind = type(event)
        if kind is PartDelta and self._life == "open":
            # Why: nine events in ten; a delta never changes the state.
            choice = event.choice  # type: ignore[union-attr]
            if 0 <= choice < self._choices and self.states[choice] in OPEN:
                return
        self._step(event)

    def _step(self, event: Event) -> None:
        if self._life == "over":
            raise CodecStateError(f"{event!r} after the answer's last event")
        match event:
            case Started():
                if self._life != "new":
                    raise CodecStateError("Started came twice")
                self._life = "open"
            case Failed():
                self._life = "over"
            case Usage():
                if self._life == "new" or any(state != "finished" for state in self.states):
                    raise CodecStateError(f"Usage came while choices were {self.states}")
                self._life = "over"
            case PartStart(choice, kind):
                self._move(choice, kind)
            case PartDelta(choice):
                self._move(choice, "delta")
            case PartEnd(choice):
                self._move(choice, "end")
            case Logprobs(choice):
                self._move(choice, "logprobs")
            case Finished(choice):
                self._move(choice, "finished")

    def _move(self, choice: int, key: str) -> None:
        if self._life == "new":
            raise CodecStateError(f"{key} came before Started")
        if not 0 <= choice < self._choices:
            raise CodecStateError(f"choice {choice} of an answer with {self._choices}")
        state = ORDER.get((self.states[choice], key))
        if state is None:
            raise CodecStateError(f"{key} in state {self.states[choice]} of choice {choice}")
        self.states[choice] = state

    def save(self) -> tuple[str, list[str]]:
        return self._life, list(self.states)

    def restore(self, life: str, states: list[str]) -> None:
        self._life = life  # type: ignore[assignment]
        self.states = list(states)  # type: ignore[arg-type]
