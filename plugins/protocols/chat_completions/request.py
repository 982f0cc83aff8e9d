"""A Call back to the request it was read from. Knows no reply."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.dialogue import (
    Audio,
    ClientPart,
    Dialogue,
    Document,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.plugins.protocols._shared.answer_shape import write_format
from tokenwire.plugins.protocols.chat_completions.respell import respell, respell_message
from tokenwire.plugins.protocols.chat_completions.spelling import spelling_of
from tokenwire.plugins.protocols.chat_completions.tools import BESIDE

__all__ = ("encode_call",)

AUDIO_FORMATS: Final = {"audio/mpeg": "mp3", "audio/wav": "wav"}

_encode: Final = msgspec.json.Encoder().encode


def encode_call(call: Call) -> bytes:
    """Fields that are not set are left out; `extra` maps are written back."""
    output, stopping, sampling = call.output, call.stopping, call.sampling
    body: dict[str, object] = {
        "model": call.model,
        "messages": _messages(call.dialogue),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": sampling.seed,
        "logit_bias": {str(id_): bias for id_, bias in sampling.logit_bias.items()} or None,
        "allowed_token_ids": sampling.allowed_ids or None,
        "bad_words": sampling.bad_words or None,
        "max_completion_tokens": stopping.max_tokens,
        "min_tokens": stopping.min_tokens or None,
        "stop": stopping.strings or None,
        "stop_token_ids": stopping.ids or None,
        "ignore_eos": stopping.ignore_eos or None,
        "include_stop_str_in_output": stopping.include_stop or None,
        "truncate_prompt_tokens": call.last_tokens,
        "n": output.n if output.n > 1 else None,
        "logprobs": True if output.logprobs is not None else None,
        "top_logprobs": output.logprobs or None,
        "logprob_token_ids": output.logprob_ids or None,
        "prompt_logprobs": output.prompt_logprobs,
        "return_token_ids": output.token_ids or None,
        "echo": output.echo or None,
        "separate_reasoning": False if output.inline_reasoning else None,
        "stream": output.stream or None,
        "user": call.identity.user,
        "session_id": call.identity.session,
        "priority": call.hints.priority or None,
        "cache_salt": call.hints.cache_salt,
        **_stream_options(call),
        **_dialogue(call.dialogue),
    }
    given = {name: value for name, value in body.items() if value is not None}
    respell(given, call.dialogue)
    for name, value in call.extra.items():
        ours = given.get(name)
        both = isinstance(ours, dict) and isinstance(value, Mapping)
        given[name] = {**value, **ours} if both else value  # type: ignore[dict-item]
    return _encode(given)


def _stream_options(call: Call) -> dict[str, object]:
    if not call.output.stream:
        return {}
    options = {}
    if call.output.usage:
        options["include_usage"] = True
    if call.output.continuous_usage:
        options["continuous_usage_stats"] = True
    return {"stream_options": options or None}


def _dialogue(dialogue: Dialogue) -> dict[str, object]:
    reasoning = dialogue.reasoning
    fields: dict[str, object] = {
        "tools": _tools(dialogue) or None,
        "tool_choice": _choice(dialogue.tool_choice, dialogue.tools),
        "parallel_tool_calls": None if dialogue.tool_choice.parallel else False,
        "response_format": write_format(dialogue.response_format),
        "reasoning_effort": reasoning.effort,
        "chat_template_kwargs": dict(dialogue.template_args) or None,
        "continue_final_message": dialogue.continue_final or None,
        "add_generation_prompt": None if dialogue.generation_prompt else False,
        "thinking_token_budget": reasoning.budget,
    }
    if reasoning.mode is not None:
        word = {"on": "enabled", "off": "disabled", "adaptive": "adaptive"}[reasoning.mode]
        fields["thinking"] = {"type": word}
    return fields


def _tools(dialogue: Dialogue) -> list[object]:
    tools: list[object] = [_tool(tool) for tool in dialogue.tools]
    aside = spelling_of(dialogue).get("tools")
    for k, tool in aside if isinstance(aside, list) else ():
        tools.insert(k, tool)
    return tools


def _messages(dialogue: Dialogue) -> list[dict[str, object]]:
    said = spelling_of(dialogue).get("messages")
    called: dict[str, str] = {}
    messages = []
    for k, turn in enumerate(dialogue.turns):
        if turn.role == "tool":
            written = [_message(replace(turn, parts=(part,)), called) for part in turn.parts]
        else:
            # Why: what says nothing is refused here, where an assistant may have said nothing.
            is_said = turn.role == "assistant" or not all(map(_is_linked, turn.parts))
            written = [_message(turn, called)] if is_said else []
        for message in written:
            if isinstance(said, dict) and isinstance(how := said.get(str(k)), dict):
                respell_message(message, how)
        messages += written
    return messages


def _message(turn: Turn, called: dict[str, str]) -> dict[str, object]:
    """`called`: the names of calls so far, by id; a result need not repeat its own."""
    message: dict[str, object] = {"role": turn.role, **turn.extra}
    if turn.name is not None:
        message["name"] = turn.name
    content: list[ClientPart] = []
    calls: list[object] = []
    for part in turn.parts:
        match part:
            case Reasoning(text):
                message["reasoning_content"] = f"{message.get('reasoning_content', '')}{text}"
            case ToolCall():
                called[part.id] = part.name
                calls.append(_call(part))
            case ToolResult():
                message |= {"tool_call_id": part.call_id, "content": _content(part.parts)}
                if part.name is not None and part.name != called.get(part.call_id):
                    message["name"] = part.name
            case _:
                content.append(part)
    if calls:
        message["tool_calls"] = calls
    return {"content": _content(tuple(content))} | message


def _content(given: tuple[ClientPart, ...]) -> object:
    parts = tuple(part for part in given if not _is_linked(part))
    match parts:
        case ():
            return None
        case (Text(text, extra),) if not extra:
            return text
        case _:
            return [_part(part) for part in parts]


def _is_linked(part: Part) -> bool:
    """A document by URL, which this protocol cannot name."""
    return isinstance(part, Document) and part.url is not None


def _part(part: ClientPart) -> dict[str, object]:
    match part:
        case Text(text, extra):
            return {"type": "text", "text": text, **extra}
        case Image():
            image: dict[str, object] = {"url": part.url or _data_url(part)}
            if part.detail is not None:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image, **part.extra}
        case Audio():
            type_ = part.media_type or "audio/wav"
            format_ = AUDIO_FORMATS.get(type_, type_.removeprefix("audio/"))
            audio = {"data": b64encode(part.data or b"").decode(), "format": format_}
            return {"type": "input_audio", "input_audio": audio, **part.extra}
        case Document():
            file = {"file_data": _data_url(part)}
            name = part.title if part.name is None else part.name
            if name is not None:
                file["filename"] = name
            return {"type": "file", "file": file, **part.extra}
        case Opaque(kind, value):
            return {"type": kind, **value}


def _data_url(part: Image | Document) -> str:
    media_type = part.media_type
    if isinstance(part, Document) and part.text is not None:
        data, media_type = b64encode(part.text.encode()).decode(), media_type or "text/plain"
    else:
        data = b64encode(part.data or b"").decode()
    if media_type is None and isinstance(part, Document):
        return data
    return f"data:{media_type or ''};base64,{data}"


def _call(call: ToolCall) -> dict[str, object]:
    if call.custom:
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom, **call.extra}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function, **call.extra}


def _tool(tool: ToolSpec) -> dict[str, object]:
    extra = dict(tool.extra)
    beside = extra.pop(BESIDE, None)
    outer = dict(beside) if isinstance(beside, Mapping) else {}
    inner: dict[str, object] = {"name": tool.name, **extra}
    if tool.description is not None:
        inner["description"] = tool.description
    if tool.custom:
        if tool.grammar is not None:
            grammar = {"syntax": tool.grammar.syntax, "definition": tool.grammar.text}
            inner["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": inner, **outer}
    if tool.parameters is not None:
        inner["parameters"] = msgspec.Raw(tool.parameters.encode())
    if tool.strict is not None:
        inner["strict"] = tool.strict
    return {"type": "function", "function": inner, **outer}


def _choice(choice: ToolChoice, tools: tuple[ToolSpec, ...]) -> object:
    match choice.mode:
        case "auto":
            return None
        case "none" | "required":
            return choice.mode
        case "named":
            return _named(choice.names[0], tools)
        case "allowed":
            allowed = {
                "mode": "required" if choice.required else "auto",
                "tools": [_named(name, tools) for name in choice.names],
            }
            return {"type": "allowed_tools", "allowed_tools": allowed}


def _named(name: str, tools: tuple[ToolSpec, ...]) -> dict[str, object]:
    custom = any(tool.custom for tool in tools if tool.name == name)
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": name}}
