"""The mock engine's settings: what it says, how fast, how much it holds, and how it fails."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from tokenwire.core.tokens import CAPABILITIES, is_capability

__all__ = ("ANSWER", "MockSettings")

ANSWER = "This is the mock engine of Tokenwire: it gives every request this one answer."
THOUGHT = "One sentence will do."

Time: TypeAlias = Annotated[float, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Size: TypeAlias = Annotated[int, Meta(ge=1)]


class MockSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`{plugin = "mock", ...}`. Times are 0 by default: one step a turn of the event loop."""

    answer: str = ANSWER
    """What it says unscripted."""
    thought: str = THOUGHT
    """What it thinks first, where the prompt ends inside reasoning."""
    context_length: Size | None = None
    """Tokens of prompt and answer. None: the model's, else 8192."""
    ttft_ms: Time = 0.0
    """From admission to the first token."""
    prompt_token_us: Time = 0.0
    """Added to `ttft_ms` for each prompt token that the cache did not hold."""
    token_ms: Time = 0.0
    """Between tokens."""
    max_running: Size = 1024
    """Choices that run together."""
    max_waiting: Count = 4096
    """Choices that wait; more are refused as overloaded."""
    kv_blocks: Count = 65536
    """Blocks of the cache. 0: no cache and no bound."""
    block_size: Size = 16
    """Tokens a block."""
    credit_cap: Size = 1024
    tasks: tuple[Literal["generate", "embed"], ...] = ("generate",)
    """What it takes jobs for. To "embed" it answers at once, with a vector of length 1 that is
    made from the prompt's ids alone: prompts that share ids have vectors that are close."""
    embedding_size: Size = 64
    """Numbers in a vector."""
    adapters: tuple[str, ...] = ()
    """LoRA adapters that it pretends to have: "NAME" or "NAME@REVISION"."""
    media: str = ""
    """Pictures that it pretends to see: "NAME@REVISION" of a media processor. Empty: none."""
    without: tuple[str, ...] = ()
    """Capabilities that it does not declare, and therefore refuses."""
    error_at: Count | None = None
    """Fault: every choice fails after that many tokens."""
    error_cause: Literal["refused", "overloaded", "context_length", "lost", "internal"] = "internal"
    """The cause it fails with."""
    stall_at: Count | None = None
    """Fault: every choice falls silent after that many tokens."""
    disconnect_at: Count | None = None
    """Fault: when a choice has that many tokens, all choices are lost."""
    disconnect_ms: Time = 1000.0
    """How long it then stays away."""

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("tasks: wanted generate, embed or both, got none")
        if self.media and "@" not in self.media:
            raise ValueError(f"media: wanted NAME@REVISION, got {self.media[:64]!r}")
        for name in self.without:
            if not is_capability(name):
                raise ValueError(
                    f"without: wanted names among {', '.join(CAPABILITIES)} and grammar:KIND,"
                    f" got {name[:64]!r}"
                )
