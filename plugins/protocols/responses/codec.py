"""OpenAI Responses as a Codec: `/v1/responses` and `/v1/conversations`. No state but the keys.

What this wire cannot carry (the loss table): ids of logprobs' tokens, and logprobs of what is no
message; which stop string matched; why the context ended an answer; the fingerprint; token counts
before the end; more than one choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, final

import msgspec
from msgspec.structs import replace

from tokenwire.core.call import Call, Count, Query, QueryResult
from tokenwire.core.errors import CallError, ErrorKind, RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ports.codec import Codec, CodecClient, Reply
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import (
    Deleted,
    Page,
    StoredAnswer,
    StoredConversation,
    StoredItem,
    StoredQuery,
)
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_body, error_reply
from tokenwire.plugins.protocols.responses import schema
from tokenwire.plugins.protocols.responses.client import ResponsesClient
from tokenwire.plugins.protocols.responses.decode import decode_call, decode_count
from tokenwire.plugins.protocols.responses.encode import StreamReply, UnaryReply
from tokenwire.plugins.protocols.responses.fields import FIELDS
from tokenwire.plugins.protocols.responses.queries import (
    ConversationBody,
    ItemsBody,
    MetadataBody,
    answer_stored,
    decode_stored,
)

__all__ = ("Responses",)

BOTH: Final = ("application/json", "text/event-stream")
CREATE: Final = "/v1/responses"
COUNT: Final = "/v1/responses/input_tokens"
COMPACT: Final = "/v1/responses/compact"
ONE: Final = "/v1/responses/{response_id}"
PAGE: Final = ("order", "limit", "after")
TALKS: Final = "/v1/conversations"
TALK: Final = "/v1/conversations/{conversation_id}"
ITEM: Final = f"{TALK}/items/{{item_id}}"
CALL_LOSSES: Final = frozenset(
    {
        "allowed_ids",
        "annotations",
        "answer_cuts",
        "bad_words",
        "best_of",
        "cache_markers",
        "cache_salt",
        "continue_final",
        "continuous_usage",
        "deadline",
        "document_text",
        "document_title",
        "echo",
        "empty_answer",
        "empty_turn",
        "expected_tokens",
        "free_formats",
        "generation_prompt",
        "ids",
        "ignore_eos",
        "include_stop",
        "inline_reasoning",
        "last_tokens",
        "logit_bias",
        "min_p",
        "min_tokens",
        "n",
        "nameless_format",
        "no_usage",
        "penalties",
        "priority_size",
        "reasoning_budget",
        "reasoning_mode",
        "result_cuts",
        "result_error",
        "result_name",
        "seed",
        "signature",
        "stop_id_sequences",
        "stop_ids",
        "stop_strings",
        "template_args",
        "token_reports",
        "top_k",
        "turn_name",
    }
)


@final
class Responses(Codec):
    name: ClassVar[str] = "responses"
    routes: ClassVar[tuple[Route, ...]] = (
        Route(
            "POST", CREATE, "OpenAI Responses: create a response", body=schema.Request, media=BOTH
        ),
        Route("POST", COUNT, "Count the tokens of a prompt", body=schema.CountRequest),
        Route("POST", COMPACT, "Refused: conversations are not compacted here"),
        Route(
            "GET",
            ONE,
            "A stored response, or with stream=true its events",
            media=BOTH,
            query=("stream", "starting_after"),
        ),
        Route("DELETE", ONE, "Delete a stored response"),
        Route("POST", f"{ONE}/cancel", "Cancel a response of the background", bodiless=True),
        Route("GET", f"{ONE}/input_items", "The input of a stored response", query=PAGE),
        Route("POST", TALKS, "Create a conversation", body=ConversationBody, bodiless=True),
        Route("GET", TALK, "A conversation"),
        Route("POST", TALK, "Change a conversation's metadata", body=MetadataBody),
        Route("DELETE", TALK, "Delete a conversation"),
        Route("GET", f"{TALK}/items", "The items of a conversation", query=PAGE),
        Route("POST", f"{TALK}/items", "Add items to a conversation", body=ItemsBody),
        Route("GET", ITEM, "One item of a conversation"),
        Route("DELETE", ITEM, "Delete an item of a conversation"),
    )
    losses: ClassVar[frozenset[str]] = frozenset(
        (
            "choices",
            "context_length",
            "fingerprint",
            "logprob_ids",
            "logprobs_outside_text",
            "matched",
            "started_tokens",
        )
    )
    call_losses: ClassVar[frozenset[str]] = CALL_LOSSES
    error_body = ErrorBody
    fields: ClassVar[tuple[FieldRule, ...]] = FIELDS
    words: ClassVar[Mapping[str, str]] = {
        "messages[].content[].audio": "input[].content[].input_audio",
        "messages[].content[].document": "input[].content[].input_file",
        "messages[].content[].image": "input[].content[].input_image",
        "reasoning_effort": "reasoning.effort",
        "response_format": "text.format",
        "tools[].strict": "tools[].function.strict",
    }

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys

    def decode(self, request: HttpRequest) -> Call | Query:
        if request.method == "POST":
            match request.path:
                case "/v1/responses":
                    return decode_call(request.body)
                case "/v1/responses/input_tokens":
                    return Count(decode_count(request.body))
                case "/v1/responses/compact":
                    raise RequestError(
                        "conversations are not compacted here: send the items that matter, or"
                        " truncation: auto, which leaves out the oldest",
                        code="unsupported",
                    )
        return decode_stored(request)

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        kind = StreamReply if call.output.stream else UnaryReply
        return kind(call, stamp, self._keys)

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        reply = error_reply(error, request_id)
        if error.kind is not ErrorKind.CONTEXT_LENGTH:
            return reply
        return replace(reply, body=error_body(error.kind, error.message, param="input"))

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if isinstance(query, Count) and isinstance(result, int):
            body = {"object": "response.input_tokens", "input_tokens": result}
            return HttpReply(200, "application/json", msgspec.json.encode(body))
        if isinstance(query, StoredQuery) and isinstance(
            result, StoredAnswer | StoredConversation | StoredItem | Page | Deleted
        ):
            return answer_stored(query, result)
        raise TypeError(f"wanted a query of Responses and its result, got {query!r}")

    def client(self) -> CodecClient:
        return ResponsesClient()
