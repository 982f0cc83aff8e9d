"""Calls to request bodies: decode.py turned round, unknown fields included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.custom_calls import as_functions
from tokenwire.core.dialogue import (
    Dialogue,
    ToolChoice,
    ToolSpec,
)
from tokenwire.plugins.protocols.messages.client_messages import written
from tokenwire.plugins.protocols.messages.decode import LEAST_TOP_P, MIN_BUDGET

__all__ = ("DEFAULT_MAX_TOKENS", "request_body")

Json = dict[str, object]

OLD_FORMAT: Final = "output_format"
DEFAULT_MAX_TOKENS: Final = 4096
"""For calls that leave the limit open, which this wire cannot say."""
ANY_OBJECT: Final = Raw(b'{"type":"object"}')
TTLS: Final = {300: "5m", 3600: "1h"}
ROLES: Final = {"tool": "user", "developer": "system"}
MODES: Final = {"required": "any", "named": "tool"}

_json: Final = msgspec.json.Encoder()
_untyped: Final = msgspec.json.Decoder()


def request_body(call: Call, *, is_count: bool = False) -> bytes:
    dialogue = as_functions(call.dialogue)
    controls = {
        (marker.turn, marker.part): _control(marker.ttl_s) for marker in call.hints.cache_markers
    }
    if "cache_control" in call.extra:
        # Why: the request's own marker stands for one on the last block.
        controls.pop((len(dialogue.turns) - 1, len(dialogue.turns[-1].parts) - 1), None)
    body: Json = {"model": call.model, **written(dialogue, controls)}
    if not is_count:
        body["max_tokens"] = call.stopping.max_tokens or DEFAULT_MAX_TOKENS
    tools = [_tool(tool, controls.get((-1, k))) for k, tool in enumerate(dialogue.tools)]
    aside = dialogue.extra.get("tools")
    body["tools"] = [*tools, *aside] if isinstance(aside, list) else tools
    body["tool_choice"] = _choice(dialogue)
    body["thinking"] = _thinking(dialogue)
    config = _output_config(dialogue)
    if config is not None and OLD_FORMAT in call.extra:
        body[OLD_FORMAT] = config.pop("format", None)
    body["output_config"] = config or None
    body["metadata"] = {"user_id": call.identity.user} if call.identity.user is not None else None
    body["stop_sequences"] = list(call.stopping.strings)
    body["stream"] = call.output.stream or None
    body["temperature"] = call.sampling.temperature
    body["top_p"] = 0 if call.sampling.top_p == LEAST_TOP_P else call.sampling.top_p
    body["top_k"] = call.sampling.top_k
    given = {key: value for key, value in body.items() if value not in (None, [])}
    for key, value in call.extra.items():
        ours = given.get(key)
        if isinstance(ours, dict) and isinstance(value, Mapping):
            given[key] = {**value, **ours}
        elif key not in given and key != OLD_FORMAT:
            given[key] = value
    return _json.encode(given)


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
    if choice.mode == "allowed":
        # Why: here tools that must not be called could only be left out of the prompt, too.
        choice = replace(choice, mode="required" if choice.required else "auto")
        if choice == ToolChoice(names=choice.names):
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
        case "on" if settings.budget is not None and settings.budget >= MIN_BUDGET:
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
