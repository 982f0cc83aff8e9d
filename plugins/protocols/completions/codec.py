"""OpenAI Completions as a Codec: `POST /v1/completions`, unary and streaming.

What this wire cannot carry (the loss table): reasoning and calls, which raw text has none of; the
ids of logprobs' tokens, and alternatives of one spelling; where one text part ends; why `length`
came; tokens written to a cache; prompt tokens before the end; most digits of the fingerprint.
"""

from __future__ import annotations

from typing import Final, final

from tokenwire.core.call import Call
from tokenwire.core.errors import CallError, ErrorKind
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp, retry_after
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_body, error_reply
from tokenwire.plugins.protocols.completions import schema
from tokenwire.plugins.protocols.completions.answer import AnswerBody
from tokenwire.plugins.protocols.completions.client import CompletionsClient
from tokenwire.plugins.protocols.completions.decode import decode_call
from tokenwire.plugins.protocols.completions.encode import StreamReply, UnaryReply
from tokenwire.plugins.protocols.completions.fields import FIELDS

__all__ = ("Completions",)

CALL_LOSSES: Final = frozenset(
    {
        "annotations",
        "bad_words",
        "cache_markers",
        "deadline",
        "dialogue",
        "expected_tokens",
        "ids",
        "inline_reasoning",
        "keeping",
        "last_tokens",
        "open_limit",
        "prompt_logprobs",
        "stop_id_sequences",
        "token_reports",
        "truncate",
    }
)
LOSSES: Final = frozenset(
    {
        "cache_creation",
        "cancelled",
        "context_length",
        "empty_part",
        "fingerprint",
        "logprob_ids",
        "logprob_top",
        "part_order",
        "reasoning",
        "started_tokens",
        "tool_call",
    }
)


@final
class Completions(Codec):
    name = "completions"
    routes = (
        Route(
            "POST",
            "/v1/completions",
            "Complete a text",
            body=schema.Request,
            reply=AnswerBody,
            media=("application/json", "text/event-stream"),
        ),
    )
    losses = LOSSES
    call_losses = CALL_LOSSES
    error_body = ErrorBody
    fields = FIELDS

    def decode(self, request: HttpRequest) -> Call:
        return decode_call(request.body)

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        return StreamReply(call, stamp) if call.output.stream else UnaryReply(call, stamp)

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        if error.kind is ErrorKind.CONTEXT_LENGTH:
            body = error_body(error.kind, error.message, param="prompt")
            return HttpReply(error.status, "application/json", body, retry_after(error))
        return error_reply(error, request_id)

    def client(self) -> CodecClient:
        return CompletionsClient()
