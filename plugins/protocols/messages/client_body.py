"""Calls to request bodies: decode.py turned round, unknown fields included. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, cast

import msgspec
from msgspec import Raw

from tokenwire.core.call import Call
from tokenwire.core.dialogue import (
    Audio,
    Dialogue,
    Document,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.plugins.protocols.messages.blocks import SEARCH_RESULT
from tokenwire.plugins.protocols.messages.turns import PREAMBLE

__all__ = ("DEFAULT_MAX_TOKENS", "request_body")

Json = dict[str, object]

DEFAULT_MAX_TOKENS: Final = 4096
"""For calls that leave the limit open, which this wire cannot say."""
ANY_OBJECT: Final = Raw(b'{"type":"object"}')
TTLS: Final = {300: "5m", 3600: "1h"}
ROLES: Final = {"tool": "user", "developer": "system"}
MODES: Final = {"required": "any", "named": "tool", "allowed": "any"}

_json: Final = msgspec.json.Encoder()
_untyped: Final = msgspec.json.Decoder()


def request_body(call: Call, *, is_count: bool = False) -> bytes:
    dialogue = call.dialogue
    controls = {
        (marker.turn, marker.part): _control(marker.ttl_s) for marker in call.hints.cache_markers
    }
    body: Json = {"model": call.model}
    turns = list(enumerate(dialogue.turns))
    system: list[Json] = []
    if turns and _is_system_prompt(turns[0][1]):
        k, turn = turns.pop(0)
        system = _blocks(turn, k, controls)
    body["system"] = _with_preamble(system, dialogue.extra.get(PREAMBLE))
    body["messages"] = [_message(turn, k, controls) for k, turn in turns]
    if not is_count:
        body["max_tokens"] = call.stopping.max_tokens or DEFAULT_MAX_TOKENS
    tools = [_tool(tool, controls.get((-1, k))) for k, tool in enumerate(dialogue.tools)]
    aside = dialogue.extra.get("tools")
    body["tools"] = [*tools, *aside] if isinstance(aside, list) else tools
    body["tool_choice"] = _choice(dialogue)
    body["thinking"] = _thinking(dialogue)
    body["output_config"] = _output_config(dialogue)
    body["metadata"] = {"user_id": call.identity.user} if call.identity.user is not None else None
    body["stop_sequences"] = list(call.stopping.strings)
    body["stream"] = call.output.stream or None
    body["temperature"] = call.sampling.temperature
    body["top_p"] = call.sampling.top_p
    body["top_k"] = call.sampling.top_k
    for key, value in call.extra.items():
        ours = body.get(key)
        both = isinstance(ours, dict) and isinstance(value, Mapping)
        body[key] = {**value, **ours} if both else value  # type: ignore[dict-item]
    return _json.encode({key: value for key, value in body.items() if value not in (None, [])})


def _with_preamble(system: list[Json], preamble: object) -> list[Json]:
    """What was taken off the front put back: whole blocks, and beginnings of blocks."""
    for k, taken in preamble if isinstance(preamble, list | tuple) else ():
        if isinstance(taken, Mapping):
            system.insert(k, dict(taken))
        elif k < len(system):
            system[k] = {**system[k], "text": f"{taken}{system[k]['text']}"}
        else:
            system.append({"type": "text", "text": taken})
    return system


def _is_system_prompt(turn: Turn) -> bool:
    return turn.role in ("system", "developer") and bool(turn.parts) and not turn.extra


def _message(turn: Turn, k: int, controls: Mapping[tuple[int, int], Json]) -> Json:
    role = ROLES.get(turn.role, turn.role)
    parts = turn.parts
    content: str | list[Json]
    if len(parts) == 1 and _is_bare(parts[0]) and (k, 0) not in controls:
        assert isinstance(parts[0], Text)
        content = parts[0].text
    else:
        content = _blocks(turn, k, controls)
    return {"role": role, "content": content, **turn.extra}


def _blocks(turn: Turn, k: int, controls: Mapping[tuple[int, int], Json]) -> list[Json]:
    blocks = []
    for p, part in enumerate(turn.parts):
        block = _block(part)
        if (k, p) in controls and not isinstance(part, Opaque):
            block["cache_control"] = controls[k, p]
        blocks.append(block)
    return blocks


def _is_bare(part: Part) -> bool:
    return isinstance(part, Text) and not part.extra


def _block(part: Part) -> Json:
    match part:
        case Text(text):
            return {"type": "text", "text": text, **part.extra}
        case Image():
            return {"type": "image", "source": _source(part), **part.extra}
        case Document() if isinstance(part.extra.get(SEARCH_RESULT), Mapping):
            return dict(cast(Mapping[str, object], part.extra[SEARCH_RESULT]))
        case Document():
            source = _source(part)
            title = {"title": part.title} if part.title is not None else {}
            return {"type": "document", "source": source, **title, **part.extra}
        case Reasoning() if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted, **part.extra}
        case Reasoning(text, signature):
            signed = {"signature": signature} if signature is not None else {}
            return {"type": "thinking", "thinking": text, **signed, **part.extra}
        case ToolCall(call_id, name):
            given = _input(part.arguments)
            return {"type": "tool_use", "id": call_id, "name": name, "input": given, **part.extra}
        case ToolResult(call_id, parts):
            failed = {"is_error": True} if part.is_error else {}
            content: object = [_block(inner) for inner in parts]
            if len(parts) == 1 and _is_bare(parts[0]):
                assert isinstance(parts[0], Text)
                content = parts[0].text
            head = {"type": "tool_result", "tool_use_id": call_id, "content": content}
            return {**head, **failed, **part.extra}
        case Opaque(_, value):
            return dict(value)
        case Audio():
            raise ValueError("Messages carries no audio: leave it out of the dialogue")


def _source(part: Image | Document) -> Json:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    media = {"media_type": part.media_type} if part.media_type is not None else {}
    if isinstance(part, Document) and part.text is not None:
        return {"type": "text", "data": part.text, **media}
    return {"type": "base64", "data": b64encode(part.data or b"").decode(), **media}


def _input(arguments: str) -> object:
    """As it stands where it is an object; else as a string, which is how a server takes it."""
    try:
        is_object = isinstance(_untyped.decode(arguments), dict)
    except msgspec.MsgspecError:
        is_object = False
    return Raw(arguments.encode()) if is_object else arguments


def _control(ttl_s: int | None) -> Json:
    control: Json = {"type": "ephemeral"}
    if ttl_s in TTLS:
        control["ttl"] = TTLS[ttl_s]
    return control


def _tool(tool: ToolSpec, control: Json | None) -> Json:
    schema = ANY_OBJECT if tool.parameters is None else Raw(tool.parameters.encode())
    optional: Json = {
        "description": tool.description,
        "strict": tool.strict,
        "cache_control": control,
    }
    given = {key: value for key, value in optional.items() if value is not None}
    return {"name": tool.name, "input_schema": schema, **given, **tool.extra}


def _choice(dialogue: Dialogue) -> Json | None:
    choice = dialogue.tool_choice
    if choice.mode == "auto" and choice.parallel:
        return None
    body: Json = {"type": MODES.get(choice.mode, choice.mode)}
    if choice.mode == "named":
        body["name"] = choice.names[0]
    if not choice.parallel:
        body["disable_parallel_tool_use"] = True
    return body


def _thinking(dialogue: Dialogue) -> Json | None:
    settings = dialogue.reasoning
    match settings.mode:
        case None:
            return None
        case "off":
            return {"type": "disabled"}
        case "on" if settings.budget is not None:
            return {"type": "enabled", "budget_tokens": settings.budget}
        case _:
            return {"type": "adaptive"}


def _output_config(dialogue: Dialogue) -> Json | None:
    config: Json = {}
    if dialogue.reasoning.effort is not None:
        config["effort"] = dialogue.reasoning.effort
    shape = dialogue.response_format
    if shape.kind == "json_schema" and shape.text is not None:
        config["format"] = {"type": "json_schema", "schema": Raw(shape.text.encode())}
    return config or None
