"""A Chat Completions request to a Call: which wire field is which of ours. Knows no output.

What is refused, and why: values out of the ranges in `schema`; a chat template (it is code); fields
that contradict one another. What nothing uses is listed in `Call.ignored`, and its value is kept in
`extra` maps. `priority` is ours: a larger number is more urgent.
"""

from __future__ import annotations

from typing import Final

from tokenwire.core.call import Call, Hints, Identity, Output, Sampling, Stopping
from tokenwire.core.dialogue import Dialogue, ReasoningSettings, ResponseFormat, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.plugins.protocols._shared.answer_shape import SHAPES, read_format
from tokenwire.plugins.protocols.chat_completions.call import FetchingCall, needs_of
from tokenwire.plugins.protocols.chat_completions.schema import (
    REQUEST_FIELDS,
    Request,
    StreamOptions,
    Thinking,
)
from tokenwire.plugins.protocols.chat_completions.spelling import SPELLING, names_of, unusual
from tokenwire.plugins.protocols.chat_completions.tools import (
    RawText,
    read_choice,
    read_tools,
)
from tokenwire.plugins.protocols.chat_completions.turns import read_turns

__all__ = ("REASONING", "STREAMED", "decode_call")

REASONING: Final = "include_reasoning"
STREAMED: Final = "stream_reasoning"

STREAM_FIELDS: Final = frozenset(StreamOptions.__struct_fields__)
THINKING_FIELDS: Final = frozenset(Thinking.__struct_fields__)
RESERVED_ARGS: Final = (
    "messages",
    "tools",
    "chat_template",
    "tokenize",
    "add_generation_prompt",
    "continue_final_message",
)
"""Arguments of the template that chat_template_kwargs may not replace."""


def decode_call(body: bytes) -> Call:
    """Raises RequestError that names field and reason, and nothing else."""
    given = read_object(body)
    request = to_struct(given, Request)
    _refuse(request, given)
    ignored = Ignored()
    raw_messages = given["messages"]
    assert isinstance(raw_messages, list)
    dialogue = _dialogue(request, raw_messages, body, ignored)
    # Why asked: only a list of parts holds a picture, and most messages are text.
    may_need = any([type(message.content) is list for message in request.messages])
    needs = needs_of(dialogue.turns) if may_need else ()
    kind = FetchingCall if needs else Call
    return kind(
        model=request.model,
        dialogue=dialogue,
        sampling=_sampling(request),
        stopping=_stopping(request),
        output=_output(request, ignored),
        identity=Identity(
            user=request.user or request.safety_identifier,
            session=request.session_id or request.prompt_cache_key,
        ),
        hints=Hints(priority=request.priority or 0, cache_salt=request.cache_salt),
        last_tokens=_last_tokens(request.truncate_prompt_tokens),
        extra=ignored.unknown(given, REQUEST_FIELDS, "")
        | _own(request)
        | _more_options(request, ignored),
        needs=needs,
        ignored=ignored.paths,
        unknown=ignored.unknown_paths,
    )


def _own(request: Request) -> dict[str, object]:
    """What the reply needs to know, and what has no place elsewhere."""
    own: dict[str, object] = {
        REASONING: request.include_reasoning,
        STREAMED: request.stream_reasoning,
        "modalities": request.modalities,
        "add_generation_prompt": request.add_generation_prompt,
    }
    return {name: value for name, value in own.items() if value is not None}


def _more_options(request: Request, ignored: Ignored) -> dict[str, object]:
    given = request.stream_options or {}
    unknown = ignored.unknown(given, STREAM_FIELDS, "stream_options")
    return {"stream_options": unknown} if unknown else {}


def _refuse(request: Request, given: dict[str, object]) -> None:
    if request.chat_template is not None:
        raise RequestError(
            "chat_template is not accepted from clients: the model's own template is used",
            param="chat_template",
            code="unsupported_field",
        )
    for field in ("chat_template_kwargs", "chat_template_args"):
        for name in RESERVED_ARGS:
            if name in (getattr(request, field) or ()):
                raise RequestError(
                    f"{field} cannot set {name}",
                    param=f"{field}.{name}",
                    code="unsupported_field",
                )
    for name in ("functions", "function_call"):
        if given.get(name) is not None:
            raise RequestError(
                f"{name} was replaced by tools and tool_choice: send those",
                param=name,
                code="unsupported_field",
            )
    for modality in request.modalities or ():
        if modality != "text":
            raise RequestError(
                f"modalities may hold text only, not {modality[:64]!r}",
                param="modalities",
                code="unsupported_value",
            )


def _dialogue(
    request: Request, raw_messages: list[dict[str, object]], body: bytes, ignored: Ignored
) -> Dialogue:
    turns = read_turns(raw_messages, request.messages, ignored)
    is_shaped = any(getattr(request, name) is not None for name in SHAPES)
    raw = RawText(body) if request.tools or is_shaped else None
    aside: list[list[object]] = []
    tools: tuple[ToolSpec, ...] = ()
    if request.tools and raw is not None:
        tools = read_tools(request.tools, raw, ignored, aside)
    return Dialogue(
        turns,
        tools=tools,
        tool_choice=read_choice(request.tool_choice, request.parallel_tool_calls, tools, ignored),
        response_format=ResponseFormat()
        if raw is None
        else read_format(request, raw.shapes, ignored),
        reasoning=_reasoning(request, ignored),
        template_args=_template_args(request),
        continue_final=_continues(request),
        generation_prompt=request.add_generation_prompt is not False
        or bool(request.continue_final_message),
        extra=_spelling(request, aside),
    )


def _spelling(request: Request, aside: list[list[object]]) -> dict[str, object]:
    """What is needed to write the request again as it was."""
    messages = {
        str(k): said for k, message in enumerate(request.messages) if (said := unusual(message))
    }
    found = {
        "names": names_of(request),
        "messages": messages,
        "tools": aside,
    }
    kept = {key: value for key, value in found.items() if value}
    return {SPELLING: kept} if kept else {}


def _template_args(request: Request) -> dict[str, object]:
    """`documents` is a variable of the templates that read them."""
    given = {**(request.chat_template_args or {}), **(request.chat_template_kwargs or {})}
    if request.documents is not None:
        given["documents"] = request.documents
    return given


def _continues(request: Request) -> bool:
    if not request.continue_final_message:
        return False
    param = "continue_final_message"
    if request.add_generation_prompt:
        raise RequestError(f"{param} and add_generation_prompt exclude each other", param=param)
    if request.messages[-1].role != "assistant":
        raise RequestError(f"{param} needs an assistant message at the end", param=param)
    return True


def _reasoning(request: Request, ignored: Ignored) -> ReasoningSettings:
    """The first that is set of thinking, enable_thinking and reasoning_effort decides the mode."""
    budget = request.thinking_token_budget
    effort = request.reasoning_effort
    if isinstance(request.thinking, dict):
        ignored.unknown(request.thinking, THINKING_FIELDS, "thinking")
        thinking = to_struct(request.thinking, Thinking, at="thinking")
        budget = thinking.budget_tokens or budget
        mode = {"enabled": "on", "disabled": "off"}.get(thinking.type, "adaptive")
    elif request.thinking is not None:
        mode = "on" if request.thinking else "off"
    elif request.enable_thinking is not None:
        mode = "on" if request.enable_thinking else "off"
    else:
        mode = "off" if effort == "none" else ""
    return ReasoningSettings(
        mode=mode or None,  # type: ignore[arg-type]
        effort=None if effort == "none" else effort,
        budget=budget,
    )


def _sampling(request: Request) -> Sampling:
    top_k = request.top_k
    return Sampling(
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=0 if top_k == -1 else top_k,
        min_p=request.min_p,
        frequency_penalty=request.frequency_penalty,
        presence_penalty=request.presence_penalty,
        repetition_penalty=request.repetition_penalty,
        seed=request.seed,
        logit_bias=_logit_bias(request.logit_bias) if request.logit_bias else {},
        allowed_ids=tuple(request.allowed_token_ids or ()),
        bad_words=tuple(request.bad_words or ()),
    )


def _logit_bias(given: dict[str, float]) -> dict[int, float]:
    bias: dict[int, float] = {}
    for key, value in given.items():
        if not (key.isascii() and key.isdigit() and len(key) <= 10 and int(key) < 2**32):
            raise RequestError(
                f"logit_bias has the key {key[:64]!r}: keys are token ids in decimal digits",
                param="logit_bias",
            )
        bias[int(key)] = value
    return bias


def _last_tokens(given: int | None) -> int | None:
    if given == 0:
        raise RequestError(
            "truncate_prompt_tokens is 0: no prompt would be left; -1 keeps what fits",
            param="truncate_prompt_tokens",
        )
    return given


def _stopping(request: Request) -> Stopping:
    """max_completion_tokens wins over max_tokens, its older name."""
    stop = request.stop
    strings = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if "" in strings:
        raise RequestError("stop holds an empty string, which would stop at once", param="stop")
    max_tokens = request.max_completion_tokens or request.max_tokens
    min_tokens = request.min_tokens or 0
    if max_tokens is not None and min_tokens > max_tokens:
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
        include_stop=bool(request.include_stop_str_in_output or request.no_stop_trim),
    )


def _output(request: Request, ignored: Ignored) -> Output:
    if request.top_logprobs is not None and not request.logprobs:
        raise RequestError("top_logprobs needs logprobs: true", param="top_logprobs")
    if request.logprob_token_ids and not request.logprobs:
        raise RequestError("logprob_token_ids needs logprobs: true", param="logprob_token_ids")
    stream = bool(request.stream)
    if request.stream_options is not None and not stream:
        raise RequestError("stream_options needs stream: true", param="stream_options")
    given = request.stream_options or {}
    options = to_struct(given, StreamOptions, at="stream_options")
    return Output(
        n=request.n or 1,
        logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        logprob_ids=tuple(request.logprob_token_ids or ()),
        prompt_logprobs=request.prompt_logprobs,
        echo=bool(request.echo),
        token_ids=bool(request.return_token_ids),
        inline_reasoning=request.separate_reasoning is False,
        stream=stream,
        usage=not stream or bool(options.include_usage or options.continuous_usage_stats),
        continuous_usage=bool(options.continuous_usage_stats),
    )
