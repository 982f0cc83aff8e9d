"""A forward pass as bytes: what a part's leader tells its followers. Knows no group and no device.

Both ends are the same program, so there is no version in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np
from msgspec import Struct, msgpack
from numpy.typing import NDArray

from tokenwire.plugins.engines.cuda.inputs import Inputs, Pass
from tokenwire.plugins.engines.cuda.results import PromptWish

__all__ = ("Told", "read_told", "write_told")

Packed: TypeAlias = tuple[str, tuple[int, ...], bytes]
"""dtype, shape, memory."""


@final
class Told(Struct, frozen=True):
    """`made` None: nothing to do, and the leader is alive."""

    made: Pass | None = None
    prompts: tuple[tuple[int, int], ...] = ()
    """Rows whose prompts are scored, and how many tokens of each."""


class _Frame(Struct, frozen=True, array_like=True):
    decode_rows: int
    has_unknown: bool
    span: int
    inputs: list[Packed]
    """In the order of `ARRAYS`."""
    slots: list[Packed]
    decode: list[Packed]
    prefill: list[Packed]
    adapters: Packed | None
    prompts: tuple[tuple[int, int], ...]


ARRAYS = (
    "ids",
    "positions",
    "token_rows",
    "rows",
    "kv_lens",
    "cu_q",
    "logit_tokens",
    "logit_rows",
    "logit_positions",
)


def write_told(made: Pass | None, prompts: Sequence[PromptWish] = ()) -> bytes:
    """Never empty."""
    if made is None:
        return msgpack.encode(None)
    inputs = made.inputs
    return msgpack.encode(
        _Frame(
            decode_rows=inputs.decode_rows,
            has_unknown=inputs.has_unknown,
            span=made.span,
            inputs=[_pack(getattr(inputs, name)) for name in ARRAYS],
            slots=[_pack(slots) for slots in inputs.slots],
            decode=[_pack(table) for table in made.decode],
            prefill=[_pack(table) for table in made.prefill],
            adapters=None if made.adapters is None else _pack(made.adapters),
            prompts=tuple((wish.row, len(wish.targets)) for wish in prompts),
        )
    )


def read_told(data: bytes) -> Told:
    frame = msgpack.decode(data, type=_Frame | None)
    if frame is None:
        return Told()
    arrays = dict(zip(ARRAYS, map(_unpack, frame.inputs), strict=True))
    inputs = Inputs(
        slots=tuple(map(_unpack, frame.slots)),
        decode_rows=frame.decode_rows,
        has_unknown=frame.has_unknown,
        **arrays,
    )
    decode, prefill = tuple(map(_unpack, frame.decode)), tuple(map(_unpack, frame.prefill))
    adapters = None if frame.adapters is None else _unpack(frame.adapters)
    return Told(Pass(inputs, decode, prefill, adapters, frame.span), frame.prompts)


def _pack(array: NDArray[Any]) -> Packed:
    return array.dtype.str, array.shape, array.tobytes()


def _unpack(packed: Packed) -> NDArray[Any]:
    kind, shape, data = packed
    # Why a copy: torch takes no memory that nobody may write.
    return np.frombuffer(bytearray(data), kind).reshape(shape)
