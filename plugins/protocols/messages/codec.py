"""The Messages codec: ties decoding, replies and errors together. No state but the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, final

import msgspec

from tokenwire.core.call import Call, Count, Query, QueryResult
from tokenwire.core.errors import CallError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols.messages import errors, schema
from tokenwire.plugins.protocols.messages.client import MessagesClient
from tokenwire.plugins.protocols.messages.decode import decode_call
from tokenwire.plugins.protocols.messages.encode import StreamReply
from tokenwire.plugins.protocols.messages.fields import FIELDS
from tokenwire.plugins.protocols.messages.reply_schema import ErrorBody, Message, TokenCount
from tokenwire.plugins.protocols.messages.settings import Settings
from tokenwire.plugins.protocols.messages.unary import UnaryReply

__all__ = ("COUNT_PATH", "MESSAGES_PATH", "MessagesCodec")

MESSAGES_PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
CALL_LOSSES: Final = frozenset(
    {
        "allowed_ids",
        "allowed_tools",
        "annotations",
        "audio",
        "bad_words",
        "best_of",
        "cache_salt",
        "continuous_usage",
        "custom",
        "deadline",
        "developer",
        "document_name",
        "echo",
        "expected_tokens",
        "format_name",
        "free_formats",
        "generation_prompt",
        "ids",
        "ignore_eos",
        "image_detail",
        "include_stop",
        "inline_reasoning",
        "json_object",
        "keeping",
        "last_tokens",
        "logit_bias",
        "logprobs",
        "min_p",
        "min_tokens",
        "n",
        "no_parameters",
        "no_usage",
        "open_final",
        "open_limit",
        "penalties",
        "priority",
        "result_name",
        "sealed_summary",
        "seed",
        "session",
        "small_budget",
        "stop_id_sequences",
        "stop_ids",
        "template_args",
        "token_reports",
        "truncate",
        "turn_cuts",
        "turn_name",
    }
)


@final
class MessagesCodec(Codec):
    name: ClassVar[str] = "messages"
    routes: ClassVar[tuple[Route, ...]] = (
        Route(
            "POST",
            MESSAGES_PATH,
            "Anthropic Messages: create a message",
            body=schema.Body,
            reply=Message,
            media=("application/json", "text/event-stream"),
        ),
        Route(
            "POST",
            COUNT_PATH,
            "Anthropic Messages: count the tokens of a prompt",
            body=schema.Body,
            reply=TokenCount,
        ),
    )
    losses: ClassVar[frozenset[str]] = frozenset(
        ("call_id", "choices", "custom", "cut_arguments", "fingerprint", "logprobs")
    )

    call_losses: ClassVar[frozenset[str]] = CALL_LOSSES
    error_body = ErrorBody
    fields: ClassVar[tuple[FieldRule, ...]] = FIELDS
    words: ClassVar[Mapping[str, str]] = {
        "cache_markers": "cache_control",
        "reasoning_budget": "thinking.budget_tokens",
        "reasoning_effort": "output_config.effort",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
        "reasoning_mode": "thinking",
        "response_format": "output_config.format",
    }

    def __init__(self, keys: Keyring, settings: Settings = Settings()) -> None:  # noqa: B008
        self._keys = keys
        self._settings = settings

    def decode(self, request: HttpRequest) -> Call | Query:
        if request.path.endswith("/count_tokens"):
            return Count(decode_call(request, self._keys, self._settings, is_count=True))
        return decode_call(request, self._keys, self._settings)

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        kind = StreamReply if call.output.stream else UnaryReply
        return kind(call, stamp, self._keys)

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return errors.encode_error(error, request_id)

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(query, Count) or not isinstance(result, int):
            raise TypeError(f"wanted a Count and its tokens, got {query!r} and {result!r}")
        body = msgspec.json.encode(TokenCount(result))
        return HttpReply(200, "application/json", body)

    def client(self) -> CodecClient:
        return MessagesClient()
