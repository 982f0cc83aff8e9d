"""What the laws of the codec kit work with: a codec, examples, streams, and runs of replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NoReturn, TypeAlias, final

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.call import Call, Output, Query
from tokenwire.core.events import Event
from tokenwire.core.fold import Answer, fold
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.testing.codec_compare import normal
from tokenwire.core.testing.laws import Probe
from tokenwire.core.testing.strategies import Shape, event_streams, sample
from tokenwire.core.wire import HttpRequest, Stamp

__all__ = ("STAMP", "CodecProbe", "Example", "Law", "Read", "reading", "shape_for")

STAMP: Final = Stamp("req_kit", 1_700_000_000.25, b"0123456789abcdef")

Read: TypeAlias = Callable[[Call, Iterable[bytes]], Iterable[Event]]


def reading(client: CodecClient) -> Read:
    """Reads whole replies with a codec's own client."""

    def read(call: Call, chunks: Iterable[bytes]) -> list[Event]:
        reader = client.reader(call)
        events = [event for chunk in chunks for event in reader.push(chunk)]
        return [*events, *reader.flush()]

    return read


class Law(Struct, frozen=True):
    name: str
    check: Callable[[CodecProbe], None]
    needs_reply: bool = False
    needs_read: bool = False


class Example(Struct, frozen=True):
    request: HttpRequest
    asked: Call | Query


@final
class CodecProbe(Probe):
    """One law's view of the codec under test."""

    port = "codec"

    def __init__(
        self,
        codec: Codec,
        examples: tuple[Example, ...],
        read: Read | None,
        *,
        call: Call | None,
        count: int,
        drawn: dict[Shape, list[list[Event]]],
        law: str,
    ) -> None:
        super().__init__(law)
        self.codec = codec
        self.examples = examples
        self.count = count
        self._read = read
        self._drawn = drawn
        self._call = call

    @property
    def gives_calls(self) -> bool:
        return self._call is not None

    @property
    def call(self) -> Call:
        """What replies are made for; its output is replaced by what each law asks for."""
        assert self._call is not None
        return self._call

    def broken(self, detail: str) -> NoReturn:
        super().broken(f"{self.codec.name}: {detail}")

    def asking(self, shape: Shape, *, stream: bool) -> Call:
        """The example's call, asking for what `shape` brings."""
        output = Output(
            n=shape.choices, logprobs=2 if shape.logprobs else None, stream=stream, usage=True
        )
        return replace(self.call, output=output)

    def streams(self, shape: Shape) -> list[list[Event]]:
        if shape not in self._drawn:
            self._drawn[shape] = sample(event_streams(shape), self.count)
        return self._drawn[shape]

    def reply(self, call: Call) -> Reply:
        return self.codec.reply(call, STAMP)

    def run(self, call: Call, events: Iterable[Event]) -> list[bytes]:
        """What each event of a fresh reply gave."""
        reply = self.reply(call)
        return [reply.push(event) for event in events]

    def read(self, call: Call, chunks: Sequence[bytes]) -> list[Event]:
        if self._read is None:
            self.broken("gives calls, so that the kit needs `read`")
        return list(self._read(call, chunks))

    def answer(self, call: Call, chunks: Sequence[bytes]) -> Answer:
        return fold(self.read(call, chunks), call.output.n)

    def compare(self, events: list[Event], got: Answer, what: str) -> None:
        """Whether `got` is what `events` add up to, but for the declared losses."""
        wanted = forgive(fold(events, len(got.choices)), got, self.codec.losses)
        losses = self.codec.losses
        if normal(wanted, losses) != normal(got, losses):
            self.broken(
                f"{what} differs from its events\n  events: {events}"
                f"\n  wanted: {normal(wanted, losses)}\n  got:    {normal(got, losses)}"
            )


def forgive(wanted: Answer, got: Answer, losses: frozenset[str]) -> Answer:
    """`wanted` with what only `got` can tell: minted ids, and the reason for a cancelled choice."""
    choices = []
    for want, have in zip(wanted.choices, got.choices, strict=True):
        calls = [part for part in have.parts if part.kind == "tool_call"]
        parts = []
        for part in want.parts:
            twin = calls.pop(0) if part.kind == "tool_call" and calls else part
            minted = twin.call_id if part.call_id is None else None
            parts.append(replace(part, call_id=minted) if minted else part)
        reason = want.reason
        if reason == "cancelled" and "cancelled" in losses:
            reason = have.reason
        choices.append(replace(want, parts=tuple(parts), reason=reason))
    return replace(wanted, choices=tuple(choices))


def shape_for(losses: frozenset[str]) -> Shape:
    """Everything that a wire with these losses has to carry."""
    kinds = tuple(kind for kind in ("text", "reasoning", "tool_call") if kind not in losses)
    return Shape(
        choices=1 if "choices" in losses else 2,
        kinds=kinds,  # type: ignore[arg-type]
        reasons=("stop", "stop_sequence", "length", "context_length", "cancelled"),
        logprobs="logprobs" not in losses,
        custom="custom" not in losses,
        call_ids="call_id" not in losses,
        details=True,
    )
