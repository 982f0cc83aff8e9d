"""A Completions request to a Call: which wire field is which of ours. Knows no output.

What is refused, and why: values out of the ranges in `schema`; prompts that are neither text nor
ids; fields that contradict one another. What nothing uses is listed in `Call.ignored`, and its
value is kept in `extra`. `priority` is ours: a larger number is more urgent.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tokenwire.core.call import Call, Hints, Identity, Output, RawPrompt, Sampling, Stopping
from tokenwire.core.dialogue import Dialogue, ReasoningSettings
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.plugins.protocols._shared.answer_shape import SHAPES, RawShapes, read_format
from tokenwire.plugins.protocols._shared.logit_bias import read_logit_bias
from tokenwire.plugins.protocols.completions.schema import (
    MOST_CHOICES,
    REQUEST_FIELDS,
    STREAM_FIELDS,
    Request,
    StreamOptions,
)

__all__ = ("DEFAULT_MAX_TOKENS", "NO_DIALOGUE", "decode_call")

DEFAULT_MAX_TOKENS: Final = 16
"""What this protocol has always meant where a client does not say."""

NO_DIALOGUE: Final = Dialogue((), reasoning=ReasoningSettings(mode="off"))
MOST_ID: Final = 2**32 - 1

_raw: Final = msgspec.json.Decoder(RawShapes)


def decode_call(body: bytes) -> Call:
    """Raises RequestError that names field and reason, and nothing else."""
    given = read_object(body)
    request = to_struct(given, Request)
    ignored = Ignored()
    prompts = _prompts(request)
    output = _output(request, ignored)
    if len(prompts) * output.candidates > MOST_CHOICES:
        raise RequestError(
            f"{len(prompts)} prompts with {output.candidates} answers each are more than the"
            f" {MOST_CHOICES} answers that one request may ask for",
            param="prompt",
        )
    return Call(
        model=request.model,
        dialogue=_dialogue(request, body, ignored),
        sampling=_sampling(request),
        stopping=_stopping(request),
        output=output,
        identity=Identity(
            user=request.user or request.safety_identifier,
            session=request.session_id or request.prompt_cache_key,
        ),
        hints=Hints(priority=request.priority or 0, cache_salt=request.cache_salt),
        prompts=prompts,
        extra=ignored.unknown(given, REQUEST_FIELDS, ""),
        ignored=ignored.paths,
        unknown=ignored.unknown_paths,
    )


def _dialogue(request: Request, body: bytes, ignored: Ignored) -> Dialogue:
    """No turns: what the answer is held to, where that was asked for."""
    if all(getattr(request, name) is None for name in SHAPES):
        return NO_DIALOGUE
    raw = _raw.decode(body.removeprefix(b"\xef\xbb\xbf"))
    return replace(NO_DIALOGUE, response_format=read_format(request, raw, ignored))


def _prompts(request: Request) -> tuple[RawPrompt, ...]:
    """Text, texts, ids or lists of ids. One list of ids is one prompt."""
    given = request.prompt
    begin = request.add_special_tokens is not False
    suffix = request.suffix
    if isinstance(given, str):
        return (RawPrompt(given, suffix=suffix, begin=begin),)
    if not given:
        raise _wrong("an empty list")
    if type(given[0]) is int:
        return (RawPrompt(ids=_ids(given), suffix=suffix, begin=begin),)
    prompts: list[RawPrompt] = []
    for item in given:
        if type(item) is not type(given[0]):
            raise _wrong("texts and ids mixed")
        if isinstance(item, str):
            prompts.append(RawPrompt(item, suffix=suffix, begin=begin))
        elif isinstance(item, list) and item:
            prompts.append(RawPrompt(ids=_ids(item), suffix=suffix, begin=begin))
        else:
            raise _wrong("an empty list" if item == [] else "neither text nor ids")
    return tuple(prompts)


def _ids(given: list[object]) -> tuple[int, ...]:
    for id_ in given:
        if type(id_) is not int:
            raise _wrong("neither text nor ids")
        if not 0 <= id_ <= MOST_ID:
            raise RequestError(f"prompt holds {id_}, which is no token id", param="prompt")
    return tuple(given)  # type: ignore[arg-type]


def _wrong(got: str) -> RequestError:
    return RequestError(
        f"prompt: wanted text, a list of texts, a list of token ids (whole numbers from 0), or a"
        f" list of such lists, got {got}",
        param="prompt",
        code="invalid_type",
    )


def _sampling(request: Request) -> Sampling:
    return Sampling(
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=0 if request.top_k == -1 else request.top_k,
        min_p=request.min_p,
        frequency_penalty=request.frequency_penalty,
        presence_penalty=request.presence_penalty,
        repetition_penalty=request.repetition_penalty,
        seed=request.seed,
        logit_bias=read_logit_bias(request.logit_bias),
        allowed_ids=tuple(request.allowed_token_ids or ()),
    )


def _stopping(request: Request) -> Stopping:
    stop = request.stop
    strings = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if "" in strings:
        raise RequestError("stop holds an empty string, which would stop at once", param="stop")
    max_tokens = DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens
    min_tokens = request.min_tokens or 0
    if max_tokens == 0 and not request.echo:
        raise RequestError("max_tokens 0 asks for nothing without echo", param="max_tokens")
    if min_tokens > max_tokens:
        raise RequestError(
            f"min_tokens {min_tokens} is larger than the maximum of {max_tokens} tokens",
            param="min_tokens",
        )
    return Stopping(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        strings=strings,
        ids=tuple(request.stop_token_ids or ()),
        ignore_eos=bool(request.ignore_eos),
        include_stop=bool(request.include_stop_str_in_output),
    )


def _output(request: Request, ignored: Ignored) -> Output:
    stream, n, best_of = bool(request.stream), request.n or 1, request.best_of
    if request.stream_options is not None and not stream:
        raise RequestError("stream_options needs stream: true", param="stream_options")
    if best_of is not None and best_of < n:
        raise RequestError(f"best_of {best_of} is less than n {n}", param="best_of")
    if best_of is not None and best_of > 1 and stream:
        raise RequestError(
            "best_of cannot be streamed: which answers are best is known at their end",
            param="best_of",
        )
    if request.echo and request.suffix is not None:
        raise RequestError("echo and suffix exclude each other", param="suffix")
    given = request.stream_options or {}
    options = to_struct(given, StreamOptions, at="stream_options")
    ignored.unknown(given, STREAM_FIELDS, "stream_options")
    return Output(
        n=n,
        best_of=best_of,
        logprobs=request.logprobs,
        prompt_logprobs=request.logprobs if request.echo else None,
        echo=bool(request.echo),
        stream=stream,
        usage=not stream or bool(options.include_usage),
        continuous_usage=bool(options.continuous_usage_stats),
    )
