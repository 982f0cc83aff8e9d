"""The codec's other side: asks for the vector of a call's text, and shows its numbers as text."""

from __future__ import annotations

from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Text
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.ports.codec import CodecClient, ReplyReader
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols._shared.openai_errors import kind_of
from tokenwire.plugins.protocols._shared.replies import BodyReader
from tokenwire.plugins.protocols.embeddings.schema import AnswerBody

__all__ = ("EmbeddingsClient",)

NAME: Final = "Embeddings"

_encode: Final = msgspec.json.Encoder().encode
_answer: Final = msgspec.json.Decoder(AnswerBody)


class ErrorField(Struct, frozen=True):
    message: str
    type: str
    code: str | None = None


class Refusal(Struct, frozen=True):
    error: ErrorField | None = None


_refusal: Final = msgspec.json.Decoder(Refusal)


@final
class EmbeddingsClient(CodecClient):
    """Asks as this protocol does. Stateless."""

    def request(self, call: Call) -> HttpRequest:
        texts = (
            part.text
            for turn in call.dialogue.turns
            for part in turn.parts
            if isinstance(part, Text)
        )
        asked: dict[str, object] = {"input": "\n".join(texts), "encoding_format": "float"}
        if call.model:
            asked["model"] = call.model
        headers = {"content-type": "application/json"}
        return HttpRequest("POST", "/v1/embeddings", headers, body=_encode(asked))

    def reader(self, call: Call) -> ReplyReader:
        return BodyReader(NAME, _read)


def _read(data: bytes) -> list[Event]:
    """A body has no parts: its vectors stand as one text, one a line."""
    error = _refusal.decode(data).error
    if error is not None:
        return [Failed(kind_of(error.type, error.code), error.message)]
    body = _answer.decode(data)
    lines = (_encode(each.embedding).decode() for each in body.data)
    return [
        Started(body.usage.prompt_tokens),
        PartStart(0, "text"),
        PartDelta(0, "\n".join(lines)),
        PartEnd(0),
        Finished(0, "stop"),
        Usage(body.usage.prompt_tokens, 0),
    ]
