"""An answer between two ids as one small blob: generation and reply, to go on anywhere else.

msgpack of version, render fingerprint and both states; never pickle. It leaves out what was already
produced, so it is flat in the answer's length for a stream. A blob that was outside comes sealed.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from tokenwire.core.errors import RequestError
from tokenwire.core.generation import Generation
from tokenwire.core.ports.codec import Reply
from tokenwire.core.signing import Keyring

__all__ = ("restore", "save", "seal", "unseal")

VERSION = 1
PURPOSE = "answer_state"


class _Blob(Struct, frozen=True, array_like=True):
    version: int
    fingerprint: str
    generation: Any
    reply: Any


class _Sealed(Struct, frozen=True, array_like=True):
    blob: bytes
    mac: str


def save(generation: Generation, reply: Reply, fingerprint: str) -> bytes:
    """The state after the last delta that was pushed."""
    return msgspec.msgpack.encode(_Blob(VERSION, fingerprint, generation.save(), reply.save()))


def restore(blob: bytes, generation: Generation, reply: Reply, fingerprint: str) -> None:
    """Into a fresh generation and reply of the same call and stamp. Raises RequestError for a blob
    of another version or another render, or that is none."""
    try:
        saved = msgspec.msgpack.decode(blob, type=_Blob)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _refused("it is no saved answer") from error
    if saved.version != VERSION:
        raise _refused(f"it is of version {saved.version}, this server reads {VERSION}")
    if saved.fingerprint != fingerprint:
        raise _refused("it was made with another template, tokenizer or model revision")
    try:
        generation.restore(saved.generation)
        reply.restore(saved.reply)
    except Exception as error:
        # Why so wide: replies and parsers are plugins, and whatever one says of a state that it
        # cannot read, the state is at fault.
        raise _refused("it belongs to another call") from error


def seal(blob: bytes, keys: Keyring) -> bytes:
    """With a MAC, to be kept by somebody else."""
    return msgspec.msgpack.encode(_Sealed(blob, keys.sign(PURPOSE, blob)))


def unseal(data: bytes, keys: Keyring) -> bytes:
    """The blob; raises RequestError (400) for one that we did not seal."""
    try:
        sealed = msgspec.msgpack.decode(data, type=_Sealed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _refused("it is no sealed state") from error
    if not keys.verify(PURPOSE, sealed.blob, sealed.mac):
        raise _refused("its signature is not ours")
    return sealed.blob


def _refused(why: str) -> RequestError:
    return RequestError(f"the state cannot be used: {why}", param="state", code="invalid_state")
