"""Thinking that is sent sealed: as a signature, or as a block of its own. Knows no stream."""

from __future__ import annotations

from tokenwire.core.call import Call
from tokenwire.core.sealing import REASONING, bound_to, seal
from tokenwire.core.signing import Keyring
from tokenwire.plugins.protocols.messages import reply_schema as wire
from tokenwire.plugins.protocols.messages.call import MessagesCall, Shown

__all__ = ("hidden_block", "sealed", "shown")


def shown(call: Call) -> Shown:
    """How the thinking of this call's answer is to be sent."""
    return call.thinking if isinstance(call, MessagesCall) else "whole"


def sealed(keys: Keyring, text: str, fingerprint: str, tenant: str) -> str:
    """For the same tenant and render alone, which is whom a history comes back to."""
    return seal(keys, REASONING, text.encode(), bound_to(fingerprint, tenant))


def hidden_block(how: Shown, data: str) -> wire.Block:
    return wire.RedactedBlock(data) if how == "redacted" else wire.ThinkingBlock("", data)
