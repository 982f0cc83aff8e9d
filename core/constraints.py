"""What an answer is held to: a response format and the choice of tools as one grammar for the ids.

Where an engine has no grammar, tools that may not be called are not offered to the model, and the
rest is listed. Knows how calls are spelled from the dialect alone (`ParserMaker.call_grammar`), and
writes structural tags in xgrammar's form (xgrammar.mlc.ai, "Structural Tag").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tokenwire.core.call_tags import allows_object, parameters, schema_of
from tokenwire.core.dialogue import Dialogue, ResponseFormat, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import CallGrammar, CallSpelling, ParserMaker
from tokenwire.core.tokens import Constraint, EngineCard

__all__ = ("Held", "held", "offered")

Format: TypeAlias = dict[str, object]

TAGS: Final = "grammar:structural_tag"
ANY_OBJECT: Final = Raw(b'{"type":"object"}')
FREE_INPUT: Final = Raw(
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],'
    b'"additionalProperties":false}'
)
"""A custom tool's call, where a family writes calls as JSON: its text under `input`."""

_json: Final = msgspec.json.Encoder()
_objects: Final = msgspec.json.Decoder(dict[str, Raw])


class Held(Struct, frozen=True):
    """The constraint of a job, and what of the request no engine's grammar holds."""

    constraint: Constraint | None = None
    ignored: tuple[str, ...] = ()


def offered(dialogue: Dialogue, parser: ParserMaker, card: EngineCard | None) -> Dialogue:
    """The dialogue as the template is given it: of `named` and `allowed` tools only those, where no
    grammar can keep the model from the others. (With one all stay, so that the prompt's beginning,
    and what is cached of it, is the same whatever the choice.)"""
    choice = dialogue.tool_choice
    if choice.mode not in ("named", "allowed") or card is None or _grammar(dialogue, parser, card):
        return dialogue
    tools = tuple(tool for tool in dialogue.tools if tool.name in choice.names)
    return replace(dialogue, tools=tools)


def held(
    dialogue: Dialogue, parser: ParserMaker, card: EngineCard, *, thinks: bool = False
) -> Held:
    """`thinks`: reasoning may come first, and is free. Raises RequestError for a format that cannot
    be meant."""
    start: Literal["now", "after_reasoning"] = "after_reasoning" if thinks else "now"
    choice, wanted = dialogue.tool_choice, dialogue.response_format
    has_tools = bool(dialogue.tools) and choice.mode != "none"
    is_forced = choice.mode in ("required", "named") or (
        choice.mode == "allowed" and choice.required
    )
    if not has_tools:
        if wanted.kind == "text":
            return Held(ignored=("tool_choice",) if is_forced else ())
        if not card.can(f"grammar:{wanted.kind}"):
            return Held(ignored=("response_format",))
        return Held(Constraint(wanted.kind, _text(wanted), start))
    _refuse_impossible(dialogue, is_forced=is_forced)
    is_strict = any(tool.strict for tool in dialogue.tools)
    is_shaped = wanted.kind != "text"
    if not (is_forced or is_strict or is_shaped or choice.mode == "allowed"):
        return Held()
    grammar = _grammar(dialogue, parser, card)
    if grammar is None:
        return Held(ignored=_asked(dialogue, is_forced=is_forced))
    if not (grammar.trigger or is_forced):
        return Held(ignored=_asked(dialogue, is_forced=is_forced))
    calls = _calls(dialogue, grammar, is_forced=is_forced)
    if is_forced:
        # A forced call leaves no room for a shaped answer.
        shape: Format = _wrapped(grammar, _several(grammar, calls, dialogue))
        ignored = ("response_format",) if is_shaped else ()
    elif is_shaped:
        answer = _format(wanted)
        called = _wrapped(grammar, _several(grammar, calls, dialogue))
        shape, ignored = {"type": "or", "elements": [answer, called]}, ()
    else:
        shape, ignored = _triggered(grammar, calls, dialogue), ()
    text = _json.encode({"type": "structural_tag", "format": shape}).decode()
    return Held(Constraint("structural_tag", text, start), ignored)


def _asked(dialogue: Dialogue, *, is_forced: bool) -> tuple[str, ...]:
    """All that a grammar would hold. (Why not the format alone: under it no tool could be
    called.)"""
    asked = (
        ("tool_choice", is_forced),
        ("tools[].strict", any(tool.strict for tool in dialogue.tools)),
        ("response_format", dialogue.response_format.kind != "text"),
    )
    return tuple(name for name, is_asked in asked if is_asked)


def _grammar(dialogue: Dialogue, parser: ParserMaker, card: EngineCard) -> CallGrammar | None:
    return parser.call_grammar(dialogue.tools) if card.can(TAGS) else None


def _calls(dialogue: Dialogue, grammar: CallGrammar, *, is_forced: bool) -> list[Format]:
    """A tag for each tool that may be called; its schema holds where it is strict or forced."""
    choice = dialogue.tool_choice
    by_name = {tool.name: tool for tool in dialogue.tools}
    return [
        _tag(call, by_name[call.tool], is_held=is_forced or bool(by_name[call.tool].strict))
        for call in grammar.calls
        if choice.mode not in ("named", "allowed") or call.tool in choice.names
    ]


def _tag(call: CallSpelling, tool: ToolSpec, *, is_held: bool) -> Format:
    content, begin = _arguments(call, tool, is_held=is_held), call.begin
    if content["type"] == "any_text":
        begin += call.gap
    if call.before or call.behind:
        parts = [_pattern(call.before), content, _pattern(call.behind)]
        content = {"type": "sequence", "elements": [part for part in parts if part]}
    return {"type": "tag", "begin": begin, "content": content, "end": call.end}


def _arguments(call: CallSpelling, tool: ToolSpec, *, is_held: bool) -> Format:
    if call.style == "free" or (call.style != "json" and not is_held):
        return {"type": "any_text"}
    schema = FREE_INPUT if tool.custom else ANY_OBJECT
    if is_held and tool.parameters is not None:
        schema = Raw(tool.parameters.encode())
    if call.param is not None:
        return parameters(schema_of(bytes(schema).decode()), call.param, call.excludes)
    content: Format = {"type": "json_schema", "json_schema": schema}
    if call.style != "json":
        content["style"] = call.style
    if call.excludes:
        content["excludes"] = [*call.excludes]
    return content


def _pattern(pattern: str) -> Format:
    return {"type": "regex", "pattern": pattern} if pattern else {}


def _refuse_impossible(dialogue: Dialogue, *, is_forced: bool) -> None:
    """Raises RequestError where a tool must be called by a schema that no call can fit."""
    choice = dialogue.tool_choice
    for tool in dialogue.tools:
        is_meant = is_forced and (choice.mode == "required" or tool.name in choice.names)
        if (is_meant or tool.strict) and not allows_object(schema_of(tool.parameters)):
            raise RequestError(
                f"the parameters of the tool {tool.name!r} must allow an object, for a call's "
                "arguments are one; their schema allows none",
                param="tools",
            )


def _several(grammar: CallGrammar, calls: Sequence[Format], dialogue: Dialogue) -> Format:
    separator = grammar.separator
    if grammar.can_join and separator:
        calls = [{**call, "end": [f"{call['end']}{separator}", call["end"]]} for call in calls]
        separator = ""
    return {
        "type": "tags_with_separator",
        "tags": calls,
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": not dialogue.tool_choice.parallel,
    }


def _wrapped(grammar: CallGrammar, calls: Format) -> Format:
    if not grammar.begin and not grammar.end:
        return calls
    ends = (_constant(grammar.begin), _constant(grammar.end))
    return {"type": "sequence", "elements": [ends[0], calls, ends[1]]}


def _triggered(grammar: CallGrammar, calls: list[Format], dialogue: Dialogue) -> Format:
    """Free text in which calls may come."""
    tags, trigger = calls, grammar.trigger
    if grammar.begin:
        inner = _several(grammar, calls, dialogue)
        tags = [{"type": "tag", "begin": grammar.begin, "content": inner, "end": grammar.end}]
        trigger = trigger if grammar.begin.startswith(trigger) else grammar.begin
    return {
        "type": "triggered_tags",
        "triggers": [trigger],
        "tags": tags,
        "at_least_one": False,
        "stop_after_first": not dialogue.tool_choice.parallel,
    }


def _constant(text: str) -> Format:
    return {"type": "const_string", "value": text}


def _text(wanted: ResponseFormat) -> str:
    """Of a constraint of the format's own kind."""
    match wanted.kind:
        case "choice":
            return _json.encode(wanted.choices).decode()
        case "structural_tag":
            return _json.encode({"type": "structural_tag", "format": _structure(wanted)}).decode()
        case _:
            return wanted.text or ""


def _format(wanted: ResponseFormat) -> Format:
    """The same inside a structural tag."""
    text = wanted.text or ""
    match wanted.kind:
        case "json_schema":
            return {"type": "json_schema", "json_schema": Raw(text.encode())}
        case "json_object":
            return {"type": "json_schema", "json_schema": ANY_OBJECT}
        case "regex":
            return {"type": "regex", "pattern": text}
        case "grammar":
            return {"type": "grammar", "grammar": text}
        case "choice":
            return {"type": "or", "elements": [_constant(each) for each in wanted.choices]}
        case _:
            return {"type": "sequence", "elements": [_structure(wanted)]}


def _structure(wanted: ResponseFormat) -> Raw:
    """The `format` of a structural tag; the older form (structures, triggers) becomes one."""
    try:
        tag = _objects.decode(wanted.text or "")
        if "format" in tag:
            return tag["format"]
        structures = msgspec.json.decode(tag["structures"], type=list[dict[str, Raw]])
        tags = [_old_tag(structure) for structure in structures]
        triggers = msgspec.json.decode(tag["triggers"], type=list[str])
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError):
        raise RequestError(
            "a structural tag must have a format, or structures (begin, schema, end) and triggers",
            param="response_format",
        ) from None
    shape = {"type": "triggered_tags", "triggers": triggers, "tags": tags}
    return Raw(_json.encode(shape))


def _old_tag(structure: dict[str, Raw]) -> Format:
    content = {"type": "json_schema", "json_schema": structure["schema"]}
    return {"type": "tag", **_only(structure, ("begin", "end")), "content": content}


def _only(given: dict[str, Raw], names: Iterable[str]) -> dict[str, Raw]:
    return {name: given[name] for name in names}
