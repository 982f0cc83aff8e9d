"""Token ids as a value: `array('I')`, 4 bytes an id. Knows no vocabulary."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import final

__all__ = ("NO_IDS", "TokenIds")

BIG_ENDIAN = sys.byteorder == "big"


@final
class TokenIds(array):  # type: ignore[type-arg]
    """Ids as uint32. Treat it as frozen: whoever wants to append makes a new one.

    msgpack carries it as bin (u32 little endian), JSON as a list; see `codec.py` beside it.
    """

    __slots__ = ()

    def __new__(cls, ids: Iterable[int] = ()) -> TokenIds:
        """Raises OverflowError for an id outside uint32, TypeError for what is no int."""
        if ids.__class__ is bytes:
            raise TypeError("wanted ids, got bytes: use from_le, or list(data)")
        return array.__new__(cls, "I", ids)  # type: ignore[return-value]

    @classmethod
    def from_le(cls, data: bytes) -> TokenIds:
        """From u32 little endian; raises ValueError when the length is no multiple of 4."""
        if len(data) % 4:
            raise ValueError(f"token ids need 4 bytes each, got {len(data)} bytes")
        ids = cls()
        ids.frombytes(data)
        if BIG_ENDIAN:
            ids.byteswap()
        return ids

    def to_le(self) -> bytes:
        if BIG_ENDIAN:
            swapped = array("I", self)
            swapped.byteswap()
            return swapped.tobytes()
        return self.tobytes()

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return TokenIds, (self.tolist(),)


NO_IDS = TokenIds()
