"""`POST /v1/generate`: ids to ids, unary and streaming. No text on either way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, TypeVar, final

from tokenwire.core.call import Call, Hints, Identity, Output, RawPrompt
from tokenwire.core.call import Sampling as CallSampling
from tokenwire.core.call import Stopping as CallStopping
from tokenwire.core.dialogue import Dialogue, ReasoningSettings
from tokenwire.core.errors import CallError, RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp
from tokenwire.plugins.protocols._shared.logit_bias import read_logit_bias
from tokenwire.plugins.protocols._shared.openai_errors import ErrorBody, error_reply
from tokenwire.plugins.protocols.tokens.generate_reply import StreamReply, UnaryReply
from tokenwire.plugins.protocols.tokens.generate_schema import (
    FIELDS_OF,
    Request,
    Sampling,
    Stopping,
)

__all__ = ("GenerateCodec",)

Inner = TypeVar("Inner", Sampling, Stopping)

NO_DIALOGUE: Final = Dialogue((), reasoning=ReasoningSettings(mode="off"))

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias; not needed where only one is served"),
    FieldRule("prompt", "used", "token ids; nothing is put before them"),
    FieldRule("n", "used", "1 to 128"),
    FieldRule("sampling.temperature", "used", "0: greedy"),
    FieldRule("sampling.top_p", "used", "above 0, to 1"),
    FieldRule("sampling.top_k", "used", "0: no limit"),
    FieldRule("sampling.min_p", "used", "0 to 1", ("min_p",)),
    FieldRule("sampling.frequency_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("sampling.presence_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("sampling.repetition_penalty", "used", "above 0"),
    FieldRule("sampling.seed", "used", "64 bits", ("seed",)),
    FieldRule("sampling.logit_bias", "used", "token ids to -100 to 100", ("logit_bias",)),
    FieldRule("sampling.allowed_ids", "used", "no other is chosen", ("allowed_ids",)),
    FieldRule("stopping.max_tokens", "used", "lowered to what the context leaves"),
    FieldRule("stopping.min_tokens", "used", "before them nothing stops"),
    FieldRule("stopping.stop_ids", "used", "beside the model's own"),
    FieldRule(
        "stopping.sequences", "used", "of ids, that end an answer", ("stop_sequences",), "refused"
    ),
    FieldRule("stopping.ignore_eos", "used", "go on where the model would end"),
    FieldRule("logprobs", "used", "0 to 20 alternatives", ("logprobs",), "refused"),
    FieldRule("stream", "used", "server-sent events"),
    FieldRule("priority", "used", "a larger number is more urgent"),
    FieldRule("deadline_ms", "used", "how long the answer may take"),
    FieldRule("expected_tokens", "used", "a hint of the answer's length"),
    FieldRule("cache_salt", "used", "keeps cached prefixes apart"),
    FieldRule("user", "used", "the user; it never decides the tenant"),
    FieldRule("session", "used", "the session"),
)

SAMPLING: Final = (
    *("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "seed", "logit_bias", "allowed_ids"),
)
WORDS: Final = {
    **{name: f"sampling.{name}" for name in SAMPLING},
    "allowed_token_ids": "sampling.allowed_ids",
    "messages": "prompt",
    "stop_token_ids": "stopping.stop_ids",
}


@final
class GenerateCodec(Codec):
    name = "generate"
    routes = (
        Route(
            "POST",
            "/v1/generate",
            "Token ids to token ids",
            body=Request,
            media=("application/json", "text/event-stream"),
        ),
    )
    error_body = ErrorBody
    losses = frozenset({"reasoning", "tool_call"})
    fields = FIELDS
    words: ClassVar[Mapping[str, str]] = WORDS

    def decode(self, request: HttpRequest) -> Call:
        given = read_object(request.body)
        body = to_struct(given, Request)
        ignored = Ignored()
        sampling = _inner(body.sampling, Sampling, "sampling", ignored)
        stopping = _inner(body.stopping, Stopping, "stopping", ignored)
        return Call(
            model=body.model or "",
            dialogue=NO_DIALOGUE,
            sampling=_sampling(sampling),
            stopping=_stopping(stopping),
            output=Output(
                n=body.n or 1, ids=True, logprobs=body.logprobs, stream=bool(body.stream)
            ),
            identity=Identity(user=body.user, session=body.session),
            hints=Hints(
                priority=body.priority or 0,
                deadline_ms=body.deadline_ms,
                expected_tokens=body.expected_tokens,
                cache_salt=body.cache_salt,
            ),
            prompts=(RawPrompt(ids=tuple(body.prompt)),),
            extra=ignored.unknown(given, FIELDS_OF[Request], ""),
            ignored=ignored.paths,
            unknown=ignored.unknown_paths,
        )

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        return StreamReply(call, stamp) if call.output.stream else UnaryReply(call, stamp)

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        return error_reply(error, request_id)


def _inner(given: dict[str, object] | None, kind: type[Inner], at: str, ignored: Ignored) -> Inner:
    found = given or {}
    ignored.unknown(found, FIELDS_OF[kind], at)
    return to_struct(found, kind, at=at)


def _sampling(body: Sampling) -> CallSampling:
    return CallSampling(
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        min_p=body.min_p,
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        repetition_penalty=body.repetition_penalty,
        seed=body.seed,
        logit_bias=read_logit_bias(body.logit_bias, "sampling.logit_bias"),
        allowed_ids=tuple(body.allowed_ids or ()),
    )


def _stopping(body: Stopping) -> CallStopping:
    if body.max_tokens is not None and (body.min_tokens or 0) > body.max_tokens:
        raise RequestError(
            f"stopping.min_tokens {body.min_tokens} is larger than the maximum of"
            f" {body.max_tokens} tokens",
            param="stopping.min_tokens",
        )
    return CallStopping(
        max_tokens=body.max_tokens,
        min_tokens=body.min_tokens or 0,
        ids=tuple(body.stop_ids or ()),
        sequences=tuple(tuple(each) for each in body.sequences or ()),
        ignore_eos=bool(body.ignore_eos),
    )
