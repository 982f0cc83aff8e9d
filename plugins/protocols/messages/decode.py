"""Requests to Calls: what each field of a body means. Knows no HTTP beyond headers, no reply.

docs/protocols/messages.md has the table of fields. What nothing uses is listed in `Call.ignored`
and kept in an `extra` map.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from msgspec import Struct

from tokenwire.core.call import (
    Call,
    Hints,
    Identity,
    Output,
    Sampling,
    Stopping,
)
from tokenwire.core.dialogue import (
    Dialogue,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages import schema
from tokenwire.plugins.protocols.messages.blocks import BlockReader
from tokenwire.plugins.protocols.messages.call import MessagesCall, Shown
from tokenwire.plugins.protocols.messages.raw import RawFields
from tokenwire.plugins.protocols.messages.settings import Settings
from tokenwire.plugins.protocols.messages.tools import read_choice, read_tools
from tokenwire.plugins.protocols.messages.turns import PREAMBLE, SHAPE, TurnReader

T = TypeVar("T", bound=Struct)

__all__ = ("LEAST_TOP_P", "MIN_BUDGET", "USED", "decode_call")

MIN_BUDGET: Final = 1024
LEAST_TOP_P: Final = 1e-6
USED: Final = frozenset(schema.Body.__struct_fields__)
INTERLEAVED: Final = "interleaved-thinking"
REDACTED: Final = "redact-thinking"
FORMAT_FIELDS: Final = frozenset(schema.OutputFormat.__struct_fields__)
TURN_FIELDS: Final = frozenset(schema.Turn.__struct_fields__)
THINKING: Final = ("enabled", "adaptive", "disabled", "between_tools")


def decode_call(
    request: HttpRequest, keys: Keyring, settings: Settings, *, is_count: bool = False
) -> Call:
    """Raises RequestError, and nothing else, whatever the bytes."""
    value = read_object(request.body)
    body = to_struct(value, schema.Body)
    if body.max_tokens is None and not is_count:
        raise RequestError(
            "max_tokens is missing: say how many tokens the answer may have at most",
            param="max_tokens",
            code="missing_field",
        )
    return _Reader(request, keys, settings, value, body).call()


@final
class _Reader:
    """One request: what its parts are read into, and what is left of them."""

    def __init__(
        self,
        request: HttpRequest,
        keys: Keyring,
        settings: Settings,
        value: dict[str, object],
        body: schema.Body,
    ) -> None:
        self._settings = settings
        self._value = value
        self._body = body
        self._ignored = Ignored()
        self._flags = _betas(request, self._ignored)
        self._extra = self._ignored.unknown(value, USED, "")
        messages = value["messages"]
        assert isinstance(messages, list)
        self._messages: list[schema.Json] = messages
        self._raw = RawFields(request.body)
        self._blocks = BlockReader(keys, self._ignored, self._raw)
        self._turns = TurnReader(
            self._blocks, self._ignored, drops_preamble=settings.billing_header == "drop"
        )

    def call(self) -> Call:
        body = self._body
        dialogue = self._dialogue()
        user = self._part(body.metadata, schema.Metadata, "metadata")
        thinking = self._thinking_shown()
        more: dict[str, object] = {}
        kind: type[Call] = Call
        if self._blocks.needs or thinking != "whole":
            kind, more = MessagesCall, {"thinking": thinking}
        return kind(
            model=body.model,
            dialogue=dialogue,
            sampling=Sampling(
                temperature=body.temperature,
                # Why: 0 leaves the likeliest token; to engines an empty choice is an error.
                top_p=None if body.top_p is None else max(body.top_p, LEAST_TOP_P),
                top_k=body.top_k,
            ),
            stopping=Stopping(max_tokens=body.max_tokens, strings=tuple(body.stop_sequences or ())),
            output=Output(stream=bool(body.stream)),
            identity=Identity(user=user.user_id if user is not None else None),
            hints=Hints(cache_markers=tuple(self._turns.markers)),
            needs=tuple(self._blocks.needs),
            ignored=self._ignored.paths,
            unknown=self._ignored.unknown_paths,
            extra=self._extra,
            **more,  # type: ignore[arg-type]
        )

    def _thinking_shown(self) -> Shown:
        given = self._body.thinking or {}
        is_asked = any(flag.startswith(REDACTED) for flag in self._flags)
        wish = self._settings.redact_thinking
        if wish == "always" or (wish == "asked" and is_asked):
            return "redacted"
        return "omitted" if given.get("display") == "omitted" else "whole"

    def _dialogue(self) -> Dialogue:
        body = self._body
        config = self._part(body.output_config, schema.OutputConfig, "output_config")
        response_format = self._format(config)
        reasoning = self._reasoning(config.effort if config is not None else None)
        tools, markers, aside = read_tools(body.tools or [], self._ignored, self._raw)
        self._turns.markers.update(dict.fromkeys(markers))
        choice = self._part(body.tool_choice, schema.ToolChoiceParam, "tool_choice")
        self._read_turns()
        turns = self._turns.turns()
        extra: schema.Json = {"tools": aside} if aside else {}
        if (shape := self._turns.shape(body.system)) is not None:
            extra[SHAPE] = shape
        if self._turns.preamble:
            extra[PREAMBLE] = self._turns.preamble
        return Dialogue(
            turns,
            tools=tools,
            tool_choice=read_choice(choice, tools) if choice is not None else ToolChoice(),
            response_format=response_format,
            reasoning=reasoning,
            continue_final=_is_beginning(turns[-1]),
            extra=extra,
        )

    def _part(self, value: schema.Json | None, kind: type[T], name: str) -> T | None:
        """An object of the request; what it holds besides is listed and kept."""
        if value is None:
            return None
        rest = self._ignored.unknown(value, frozenset(kind.__struct_fields__), name)
        if rest:
            self._extra[name] = rest
        return to_struct(value, kind, at=name)

    def _read_turns(self) -> None:
        body = self._body
        if body.system is not None:
            self._turns.system(body.system)
        for index, (turn, given) in enumerate(zip(body.messages, self._messages, strict=True)):
            unknown: schema.Json = {}
            if len(given) > 2:
                unknown = self._ignored.unknown(given, TURN_FIELDS, "messages[]")
            self._turns.message(index, turn, unknown)
        if body.cache_control is not None:
            self._turns.mark_last(body.cache_control)
            self._extra["cache_control"] = self._value["cache_control"]

    def _shape_keys(self, spot: str) -> None:
        given: Any = self._value
        for name in spot.split("."):
            given = given[name]
        self._ignored.unknown(given, FORMAT_FIELDS, spot)

    def _format(self, config: schema.OutputConfig | None) -> ResponseFormat:
        wanted, spot = self._body.output_format, "output_format"
        if config is not None and config.format is not None:
            wanted, spot = config.format, "output_config.format"
        elif wanted is not None:
            self._extra[spot] = None  # Where its writer is to put it again.
        if wanted is None:
            return ResponseFormat()
        if wanted.type != "json_schema":
            param = f"{spot}.type"
            raise RequestError(
                f"{param} must be json_schema, not {wanted.type[:64]!r}", param=param
            )
        self._shape_keys(spot)
        return ResponseFormat("json_schema", text=self._raw.format_schema())

    def _reasoning(self, effort: str | None) -> ReasoningSettings:
        given = self._part(self._body.thinking, schema.ThinkingSettings, "thinking")
        if given is None:
            return ReasoningSettings(effort=effort)
        if given.display is not None:
            self._extra["thinking"] = {
                **self._extra.get("thinking", {}),  # type: ignore[dict-item]
                "display": given.display,
            }
        match given.type:
            case "enabled":
                budget = _budget(given.budget_tokens, self._body.max_tokens, self._flags)
                return ReasoningSettings("on", effort=effort, budget=budget)
            case "adaptive":
                return ReasoningSettings("adaptive", effort=effort)
            case "disabled":
                return ReasoningSettings("off", effort=effort)
            case "between_tools":
                # Why: the protocol's own fallback for models without it is `disabled`.
                self._ignored.add("thinking.type=between_tools")
                return ReasoningSettings("off", effort=effort)
        raise RequestError(
            f"thinking.type must be one of {', '.join(THINKING)}, not {given.type[:64]!r}",
            param="thinking.type",
        )


def _is_beginning(last: Turn) -> bool:
    """An assistant message at the end is a beginning of the answer, unless it waits for results."""
    return (
        last.role == "assistant"
        and bool(last.parts)
        and isinstance(last.parts[-1], Text)
        and not any(isinstance(part, ToolCall) for part in last.parts)
    )


def _budget(budget: int | None, max_tokens: int | None, flags: tuple[str, ...]) -> int:
    param = "thinking.budget_tokens"
    if budget is None or budget < MIN_BUDGET:
        got = "it is missing" if budget is None else f"not {budget}"
        raise RequestError(
            f"{param} must be at least {MIN_BUDGET} when thinking is enabled, {got}", param=param
        )
    # Why: with interleaved thinking the budget is for the whole turn, over several requests.
    is_bound = not any(flag.startswith(INTERLEAVED) for flag in flags)
    if is_bound and max_tokens is not None and budget >= max_tokens:
        raise RequestError(
            f"{param} must be less than max_tokens ({max_tokens}), not {budget}", param=param
        )
    return budget


def _betas(request: HttpRequest, ignored: Ignored) -> tuple[str, ...]:
    """Beta flags are tolerated; those that change something are used, the rest are listed."""
    header = request.headers.get("anthropic-beta")
    if not header:
        return ()
    flags = tuple(flag.strip() for flag in header.split(",") if flag.strip())
    for flag in flags:
        if not flag.startswith((INTERLEAVED, REDACTED)):
            ignored.add(f"anthropic-beta:{flag}")
    return flags
