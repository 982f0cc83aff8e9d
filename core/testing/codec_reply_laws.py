"""The codec's laws about replies: what is written can be read, in any cut, and ends once."""

from __future__ import annotations

from typing import Final

import msgspec

from tokenwire.core.call import Call
from tokenwire.core.errors import CodecStateError, ErrorKind
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.testing.codec_probe import CodecProbe, Law, shape_for
from tokenwire.core.testing.strategies import Shape, cuts, sample

__all__ = ("REPLY_LAWS",)

BOUND: Final = 300
"""Bytes of a stream's state, for one choice."""

_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder().decode


def _plain(probe: CodecProbe) -> Shape:
    """What no wire for answers may lose: text, and calls unless it has none; ends of all kinds."""
    kinds = ("text",) if "tool_call" in probe.codec.losses else ("text", "tool_call")
    return Shape(kinds=kinds)  # type: ignore[arg-type]


def faithful_stream(probe: CodecProbe) -> None:
    shape = _plain(probe)
    call = probe.asking(shape, stream=True)
    for events in probe.streams(shape):
        chunks = probe.run(call, events)
        probe.compare(events, probe.answer(call, chunks), "the stream")


def deterministic(probe: CodecProbe) -> None:
    shape = shape_for(probe.codec.losses)
    for stream in (True, False):
        call = probe.asking(shape, stream=stream)
        for events in probe.streams(shape):
            first, second = probe.run(call, events), probe.run(call, events)
            if first != second:
                probe.broken(f"the same events gave {first} and then {second}")


def unary_equals_streamed(probe: CodecProbe) -> None:
    shape = shape_for(probe.codec.losses)
    call = probe.asking(shape, stream=False)
    for events in probe.streams(shape):
        chunks = probe.run(call, events)
        if any(chunks[:-1]):
            probe.broken(f"a unary reply sent bytes before its last event: {chunks[:-1]}")
        probe.compare(events, probe.answer(call, chunks), "the unary body")


def isolation(probe: CodecProbe) -> None:
    shape = _plain(probe)
    samples = probe.streams(shape)
    for stream in (True, False):
        call = probe.asking(shape, stream=stream)
        for one, other in zip(samples, reversed(samples), strict=True):
            alone = probe.run(call, one), probe.run(call, other)
            replies = probe.reply(call), probe.reply(call)
            mixed: tuple[list[bytes], list[bytes]] = ([], [])
            for k in range(max(len(one), len(other))):
                for which, events in enumerate((one, other)):
                    if k < len(events):
                        mixed[which].append(replies[which].push(events[k]))
            if mixed != alone:
                probe.broken(f"two replies at a time gave {mixed}, one at a time {alone}")


def nothing_after_the_end(probe: CodecProbe) -> None:
    shape = _plain(probe)
    late: tuple[Event, ...] = (
        PartDelta(0, "late"),
        PartStart(0, "text"),
        PartEnd(0),
        Logprobs(0, ()),
        Finished(0, "stop"),
        Started(1),
        Usage(1, 1),
    )
    for stream in (True, False):
        call = probe.asking(shape, stream=stream)
        for events in probe.streams(shape):
            _refuses(probe, call, events, late)
    call = probe.asking(shape, stream=True)
    _refuses(probe, call, [Started(1), Failed(ErrorKind.INTERNAL, "x")], late)
    _refuses(probe, call, [], late[:3])
    _refuses(probe, call, [Started(1)], (PartDelta(0, "x"), PartEnd(0), PartDelta(7, "x")))
    _refuses(
        probe, call, [Started(1), PartStart(0, "text"), PartDelta(0, "x")], (PartDelta(-1, "x"),)
    )


def _refuses(probe: CodecProbe, call: Call, events: list[Event], late: tuple[Event, ...]) -> None:
    for event in late:
        reply = probe.reply(call)
        for before in events:
            reply.push(before)
        try:
            data = reply.push(event)
        except CodecStateError:
            continue
        probe.broken(f"{event} after {events[-2:]} gave {data!r}, wanted CodecStateError")


def any_cut_of_the_bytes(probe: CodecProbe) -> None:
    shape = _plain(probe)
    for stream in (True, False):
        call = probe.asking(shape, stream=stream)
        for events in probe.streams(shape)[: probe.count // 2]:
            data = b"".join(probe.run(call, events))
            whole = probe.read(call, [data])
            bytewise = [data[k : k + 1] for k in range(len(data))]
            for pieces in (bytewise, *sample(cuts(data), 4)):
                got = probe.read(call, pieces)
                if got != whole:
                    probe.broken(f"read {whole} from the whole and {got} from {pieces}")


def declared_losses_only(probe: CodecProbe) -> None:
    shape = shape_for(probe.codec.losses)
    call = probe.asking(shape, stream=True)
    for events in probe.streams(shape):
        chunks = probe.run(call, events)
        probe.compare(events, probe.answer(call, chunks), "the stream")


def failure_ends_the_wire(probe: CodecProbe) -> None:
    shape = _plain(probe)
    call = probe.asking(shape, stream=True)
    for events in probe.streams(shape)[: probe.count // 2]:
        for kind in (ErrorKind.INTERNAL, ErrorKind.OVERLOADED):
            # Why: the one place where no wire may send a failure is after its own end.
            for end in range(1, len(events)):
                _fails(probe, call, events[:end], Failed(kind, 'lost "it"'))


def _fails(probe: CodecProbe, call: Call, events: list[Event], failed: Failed) -> None:
    reply = probe.reply(call)
    chunks = [reply.push(event) for event in events]
    chunks.append(reply.push(failed))
    got = probe.read(call, chunks)
    ends = [event for event in got if isinstance(event, Failed | Usage)]
    if len(ends) != 1 or not isinstance(ends[0], Failed) or got[-1] is not ends[0]:
        probe.broken(f"{failed} after {events[-2:]} was read as {got[-3:]}")
    if ends[0].message != failed.message:
        probe.broken(f"{failed} was read as {ends[0]}")
    finished = sum(isinstance(event, Finished) for event in events)
    # Why not equal: some wires say how a choice ended together with the totals.
    if sum(isinstance(event, Finished) for event in got) > finished:
        probe.broken(f"{failed} after {events[-2:]} faked the end of a choice: {got[-3:]}")


def saved_state(probe: CodecProbe) -> None:
    shape = shape_for(probe.codec.losses)
    for stream in (True, False):
        call = probe.asking(shape, stream=stream)
        for events in probe.streams(shape)[: probe.count // 2]:
            whole = probe.run(call, events)
            reply = probe.reply(call)
            for k, event in enumerate(events):
                if reply.push(event) != whole[k]:
                    probe.broken(f"{event} gave other bytes after a restore")
                state = _unpack(_pack(reply.save()))
                reply = probe.reply(call)
                reply.restore(state)
                if reply.repeats:
                    reply.recall(events[: k + 1])
    _is_flat(probe)


def _is_flat(probe: CodecProbe) -> None:
    reply = probe.reply(probe.asking(Shape(), stream=True))
    sizes = []
    for event in (Started(1, 0, "f" * 64), PartStart(0, "text")):
        reply.push(event)
    for _ in range(3):
        for _ in range(400):
            reply.push(PartDelta(0, "some words "))
        sizes.append(len(_pack(reply.save())))
    if max(sizes) - min(sizes) > 16 or max(sizes) > BOUND:
        probe.broken(f"the state of a stream has {sizes} bytes after 400, 800, 1200 deltas")


REPLY_LAWS: Final = (
    Law("faithful stream", faithful_stream, needs_reply=True, needs_read=True),
    Law("deterministic", deterministic, needs_reply=True),
    Law("unary equals streamed", unary_equals_streamed, needs_reply=True, needs_read=True),
    Law("isolation", isolation, needs_reply=True),
    Law("nothing after the end", nothing_after_the_end, needs_reply=True),
    Law("any cut of the bytes", any_cut_of_the_bytes, needs_reply=True, needs_read=True),
    Law("declared losses only", declared_losses_only, needs_reply=True, needs_read=True),
    Law("failure ends the wire", failure_ends_the_wire, needs_reply=True, needs_read=True),
    Law("saved state", saved_state, needs_reply=True),
)
