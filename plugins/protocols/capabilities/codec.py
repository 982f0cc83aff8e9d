"""What becomes of every field, by model and protocol, as JSON. Knows no generation.

A field is `used`, `emulated` (by other means than the protocol's own servers use), `refused` (400,
with its name) or `ignored` (named in the response header `x-tokenwire-ignored`). `lacks` names what
the model's engine would have to declare for more, and ("dialect:...") what its chat template or
the parser of its answers would have to do.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from tokenwire.core.call import Query, QueryResult
from tokenwire.core.errors import CallError
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.queries import (
    Capabilities,
    CapabilityTable,
    FieldUse,
    ModelCapabilities,
)
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols._shared.openai_errors import error_reply

__all__ = ("CapabilitiesCodec",)

_encode: Final = msgspec.json.Encoder().encode


@final
class CapabilitiesCodec(Codec):
    name = "capabilities"
    routes = (
        Route("GET", "/v1/capabilities", "What becomes of each field, of every model"),
        Route("GET", "/v1/capabilities/{model}", "The same, of one model"),
        Route("GET", "/v1/capabilities/{owner}/{model}", "The same, of a name with a slash"),
    )

    def decode(self, request: HttpRequest) -> Query:
        model = request.path_params.get("model")
        owner = request.path_params.get("owner")
        return Capabilities(f"{owner}/{model}" if owner else model)

    def reply(self, call: object, stamp: Stamp) -> Reply:
        raise NotImplementedError("capabilities gives queries only")

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(query, Capabilities) or not isinstance(result, CapabilityTable):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        each = [_model(model) for model in result.models]
        body: object = {"object": "list", "data": each} if query.model is None else each[0]
        return HttpReply(200, "application/json", _encode(body))

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return error_reply(error, request_id)


def _model(model: ModelCapabilities) -> dict[str, object]:
    return {
        "id": model.name,
        "object": "capabilities",
        "aliases": model.aliases,
        "ready": model.is_ready,
        "context_length": model.context_length,
        "tasks": model.tasks,
        "embedding_size": model.embedding_size,
        "dialect": {"name": model.dialect, "why": model.why},
        "fingerprint": model.fingerprint,
        "engine": model.engine,
        "protocols": {
            name: {field.name: _field(field) for field in fields}
            for name, fields in model.protocols.items()
        },
    }


def _field(field: FieldUse) -> dict[str, object]:
    said: dict[str, object] = {"how": field.how}
    if field.what:
        said["what"] = field.what
    if field.lacks:
        said["lacks"] = field.lacks
    return said
