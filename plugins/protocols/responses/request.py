"""Calls to Responses bodies: decode.py turned round, unknown fields included. Pure.

What came by this protocol is written as it was; what came by another, in this one's words.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Final, cast

import msgspec
from msgspec import Raw

from tokenwire.core.call import Call
from tokenwire.core.dialogue import (
    Audio,
    ClientPart,
    Dialogue,
    Document,
    Image,
    Opaque,
    Reasoning,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.plugins.protocols.responses.call import ResponsesCall
from tokenwire.plugins.protocols.responses.decode import LOGPROBS
from tokenwire.plugins.protocols.responses.item_fields import plain_reasoning
from tokenwire.plugins.protocols.responses.items import ITEM
from tokenwire.plugins.protocols.responses.namespaces import own_name
from tokenwire.plugins.protocols.responses.parts import AUDIO_TYPES, data_url
from tokenwire.plugins.protocols.responses.schema import Json
from tokenwire.plugins.protocols.responses.tool_search import CALL, OUTPUT

__all__ = ("request_body",)

FORMATS: Final = {type_: name for name, type_ in AUDIO_TYPES.items()}

_json: Final = msgspec.json.Encoder().encode


def request_body(call: Call) -> bytes:
    """Fields that are not set are left out."""
    turns = list(call.dialogue.turns)
    body: dict[str, object] = {"model": call.model}
    if isinstance(call, ResponsesCall):
        if turns and call.instructions:
            turns.pop(0)
        body |= {name: Raw(text) for name, text in call.given.items()}
        is_text = call.input[:1] == b'"'
    else:
        if turns and _is_instructions(turns[0]):
            body["instructions"] = cast(Text, turns.pop(0).parts[0]).text
        body |= _fields(call) | dict(call.extra)
        is_text = False
    items = [item for turn in turns for item in _items(turn)]
    if is_text and len(items) == 1:
        body["input"] = items[0]["content"]
    elif items or not isinstance(call, ResponsesCall):
        body["input"] = items
    if call.output.stream:
        body["stream"] = True
    return _json(body)


def _is_instructions(turn: Turn) -> bool:
    if turn.role != "system" or turn.extra or len(turn.parts) != 1:
        return False
    part = turn.parts[0]
    return isinstance(part, Text) and not part.extra and bool(part.text)


def _fields(call: Call) -> Json:
    dialogue, sampling, output = call.dialogue, call.sampling, call.output
    settings = dialogue.reasoning
    effort = "none" if settings.mode == "off" else settings.effort
    include = [LOGPROBS] if output.logprobs is not None else []
    keeping = call.keeping
    fields: Json = {
        "max_output_tokens": call.stopping.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_logprobs": output.logprobs or None,
        "include": include or None,
        "tools": [_tool(tool) for tool in dialogue.tools] or None,
        "tool_choice": _choice(dialogue.tool_choice, dialogue),
        "parallel_tool_calls": None if dialogue.tool_choice.parallel else False,
        "text": _text(dialogue.response_format),
        "reasoning": None if effort is None else {"effort": effort},
        "safety_identifier": call.identity.user,
        "prompt_cache_key": call.identity.session,
        "store": None if keeping is None or keeping.store else False,
        "background": True if keeping is not None and keeping.background else None,
        "conversation": None if keeping is None else keeping.conversation,
        "service_tier": _tier(call.hints.priority),
        "truncation": "auto" if call.truncate else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tier(priority: int) -> str | None:
    return None if priority == 0 else "priority" if priority > 0 else "flex"


def _items(turn: Turn) -> Iterator[Json]:
    if turn.role == "tool" or any(isinstance(part, ToolResult) for part in turn.parts):
        for part in turn.parts:
            yield from _result_or_more(part, turn)
        return
    if turn.role == "assistant":
        yield from _assistant(turn)
        return
    content: list[ClientPart] = []
    before: list[Json] = []
    after: list[Json] = []
    for part in turn.parts:
        if isinstance(part, Opaque) and part.kind == ITEM:
            (after if content else before).append(dict(part.value))
        else:
            content.append(cast(ClientPart, part))
    yield from before
    if content:
        yield {"role": turn.role, "content": _content(tuple(content), "input_text"), **turn.extra}
    yield from after


def _result_or_more(part: object, turn: Turn) -> Iterator[Json]:
    match part:
        case ToolResult(call_id, parts, extra=extra):
            kind = extra.get("type", "function_call_output")
            has_none = "output" in extra or kind == OUTPUT
            output = {} if has_none else {"output": _content(parts, "input_text")}
            yield {"type": kind, "call_id": call_id, **output, **extra}
        case Opaque(kind, value) if kind == ITEM:
            yield dict(value)
        case _:
            # Why: other protocols put a user's words behind the results in one turn.
            yield {"role": "user", "content": _content((cast(ClientPart, part),), "input_text")}


def _assistant(turn: Turn) -> Iterator[Json]:
    said: list[ClientPart] = []
    for part in turn.parts:
        is_more = isinstance(part, Text | Image | Audio | Document) and ITEM not in part.extra
        if said and not is_more:
            yield _message(said)
            said = []
        match part:
            case Reasoning():
                yield _reasoning(part)
            case ToolCall() if part.extra.get("type") == CALL:
                yield {"call_id": part.id, **part.extra}
            case ToolCall():
                field = "input" if part.custom else "arguments"
                kind = "custom_tool_call" if part.custom else "function_call"
                name = own_name(part.extra.get("namespace"), part.name)
                head = {"type": kind, "call_id": part.id, "name": name}
                yield {**head, field: part.arguments, **part.extra}
            case Opaque(kind, value) if kind == ITEM:
                yield dict(value)
            case ToolResult():
                yield from _result_or_more(part, turn)
            case _:
                said.append(part)
    if said:
        yield _message(said)


def _message(parts: list[ClientPart]) -> Json:
    first = parts[0]
    item = first.extra.get(ITEM, {}) if not isinstance(first, Opaque) else {}
    content = _content(tuple(parts), "output_text")
    return {"role": "assistant", "content": content, **cast(Mapping[str, object], item)}


def _reasoning(part: Reasoning) -> Json:
    if part.extra:
        return {"type": "reasoning", **part.extra}
    if part.redacted is None:
        return {"type": "reasoning", **plain_reasoning(part.text)}
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", "summary": summary, "encrypted_content": part.redacted}


def _content(parts: tuple[ClientPart, ...], kind: str) -> object:
    if len(parts) == 1:
        part = parts[0]
        if isinstance(part, Text) and not part.extra.keys() - {ITEM}:
            return part.text
    return [_part(part, kind) for part in parts]


def _part(part: ClientPart, kind: str) -> Json:
    if isinstance(part, Opaque):
        return {"type": part.kind, **part.value}
    extra = {key: value for key, value in part.extra.items() if key != ITEM}
    match part:
        case Text(text):
            field = "refusal" if extra.get("type") == "refusal" else "text"
            return {"type": kind, field: text, **extra}
        case Image():
            url = part.url or data_url(part.media_type, part.data or b"")
            detail = {} if part.detail is None else {"detail": part.detail}
            return {"type": "input_image", "image_url": url, **detail, **extra}
        case Audio():
            type_ = part.media_type or "audio/wav"
            format_ = FORMATS.get(type_, type_.removeprefix("audio/"))
            audio = {"data": b64encode(part.data or b"").decode(), "format": format_}
            return {"type": "input_audio", "input_audio": audio, **extra}
        case Document():
            name = part.name or part.title
            named = {} if name is None else {"filename": name}
            return {"type": "input_file", **_file(part), **named, **extra}


def _file(part: Document) -> Json:
    if part.url is not None:
        return {"file_url": part.url}
    if part.text is not None:
        return {"file_data": data_url(part.media_type or "text/plain", part.text.encode())}
    if part.media_type is None:
        return {"file_data": b64encode(part.data or b"").decode()}
    return {"file_data": data_url(part.media_type, part.data or b"")}


def _tool(tool: ToolSpec) -> Json:
    body: Json = {"type": "custom" if tool.custom else "function", "name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    if tool.custom:
        if tool.grammar is not None:
            syntax, text = tool.grammar.syntax, tool.grammar.text
            body["format"] = {"type": "grammar", "syntax": syntax, "definition": text}
    else:
        given = tool.parameters
        body["parameters"] = None if given is None else Raw(given.encode())
        body["strict"] = tool.strict
    return body | dict(tool.extra)


def _choice(choice: ToolChoice, dialogue: Dialogue) -> object:
    customs = {tool.name for tool in dialogue.tools if tool.custom}
    named = [
        {"type": "custom" if name in customs else "function", "name": name} for name in choice.names
    ]
    match choice.mode:
        case "auto":
            return None
        case "none" | "required":
            return choice.mode
        case "named":
            return named[0]
        case "allowed":
            mode = "required" if choice.required else "auto"
            return {"type": "allowed_tools", "mode": mode, "tools": named}


def _text(wanted: ResponseFormat) -> Json | None:
    if wanted.kind == "json_object":
        return {"format": {"type": "json_object"}}
    if wanted.kind != "json_schema":
        return None
    format_: Json = {
        "type": "json_schema",
        "name": wanted.name or "answer",
        "schema": Raw((wanted.text or "{}").encode()),
    }
    if wanted.strict is not None:
        format_["strict"] = wanted.strict
    return {"format": format_}
