"""OpenAI Chat Completions as a Codec: `POST /v1/chat/completions`, unary and streaming.

What this wire cannot carry (the loss table): the ids of logprobs' tokens, and the logprobs of what
is not content; the order of parts and where one text part ends; whitespace beside calls; whether a
call is complete (`length` says that one may not be); why `length` came; tokens written to a cache;
prompt tokens before the end; all but the first digits of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, final

from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.errors import CallError
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_reply
from tokenwire.plugins.protocols.chat_completions import schema
from tokenwire.plugins.protocols.chat_completions.answer import AnswerBody
from tokenwire.plugins.protocols.chat_completions.chunks import ReasoningField
from tokenwire.plugins.protocols.chat_completions.client import ChatClient
from tokenwire.plugins.protocols.chat_completions.decode import decode_call
from tokenwire.plugins.protocols.chat_completions.encode import StreamReply, UnaryReply
from tokenwire.plugins.protocols.chat_completions.fields import FIELDS

__all__ = ("ChatCompletions", "Settings")

CALL_LOSSES: Final = frozenset(
    {
        "annotations",
        "best_of",
        "cache_markers",
        "deadline",
        "document_text",
        "document_title",
        "document_url",
        "empty_part",
        "empty_turn",
        "expected_tokens",
        "ids",
        "keeping",
        "part_order",
        "result_cuts",
        "result_error",
        "sealed",
        "signature",
        "stop_id_sequences",
        "truncate",
    }
)
LOSSES: Final = frozenset(
    {
        "blank_text",
        "cache_creation",
        "cancelled",
        "complete",
        "context_length",
        "empty_part",
        "fingerprint",
        "logprob_ids",
        "logprobs_outside_text",
        "part_order",
        "started_tokens",
    }
)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[plugins.chat_completions]`."""

    reasoning_field: ReasoningField = "reasoning_content"
    """Under which name reasoning is sent; both are read."""


@final
class ChatCompletions(Codec):
    name = "chat_completions"
    routes = (
        Route(
            "POST",
            "/v1/chat/completions",
            "Create a chat completion",
            body=schema.Request,
            reply=AnswerBody,
            media=("application/json", "text/event-stream"),
        ),
    )
    losses = LOSSES
    call_losses = CALL_LOSSES
    error_body = ErrorBody
    fields = FIELDS
    words: ClassVar[Mapping[str, str]] = {
        "allowed_ids": "allowed_token_ids",
        "messages[].content[].audio": "messages[].content[].input_audio",
        "messages[].content[].document": "messages[].content[].file",
        "messages[].content[].image": "messages[].content[].image_url",
        "reasoning_budget": "thinking_token_budget",
        "reasoning_mode": "thinking",
        "template_args": "chat_template_kwargs",
        "template_args.documents": "documents",
        "tools[].strict": "tools[].function.strict",
    }

    def __init__(self, settings: Settings = Settings()) -> None:  # noqa: B008  (it is frozen)
        self._reasoning: ReasoningField = settings.reasoning_field

    def decode(self, request: HttpRequest) -> Call:
        return decode_call(request.body)

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        kind = StreamReply if call.output.stream else UnaryReply
        return kind(call, stamp, self._reasoning)

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return error_reply(error, request_id)

    def client(self) -> CodecClient:
        return ChatClient()
