"""A reader of replies, as the client of this protocol makes it."""

from __future__ import annotations

from tokenwire.core.call import Call, Output
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.ports.codec import ReplyReader
from tokenwire.plugins.protocols.messages.client import MessagesClient

__all__ = ("reader_of",)


def reader_of(*, stream: bool) -> ReplyReader:
    return MessagesClient().reader(Call("m", Dialogue(()), output=Output(stream=stream)))
