"""Finds out what a template can take, by rendering small conversations with a word to look for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tokenwire.plugins.dialects.jinja.messages import Habits, Message

__all__ = ("Try", "probe")

Try: TypeAlias = Callable[[list[Message], list[Message] | None], str | None]
"""Messages and tools to rendered text; None where the template refuses or fails."""

WORD: Final = "Quellwort"
OTHER: Final = "Nebenwort"
NO_MEDIA: Final[frozenset[str]] = frozenset()


def _user(content: Any) -> Message:
    return {"role": "user", "content": content}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _tool_turns(content: Callable[[str], Any], *, null: bool) -> list[Message]:
    function = {"name": OTHER, "arguments": {"a": "b"}}
    call = {"id": "abcDEF123", "type": "function", "function": function}
    calling = {"role": "assistant", "content": None if null else content(""), "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "abcDEF123", "name": OTHER, "content": content(WORD)}
    return [_user(content("u")), calling, result]


def _tools() -> list[Message]:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "description": "d"}}}
    tool = {"name": "other", "description": "d", "parameters": parameters}
    return [{"type": "function", "function": tool}]


def probe(attempt: Try, joiner: str) -> Habits:
    """The habits of the template behind `attempt`. A template that takes nothing at all gets the
    defaults: its own words then say why."""
    no_tools: tuple[Message, ...] | None = None
    if attempt([_user(WORD)], None) is None and attempt([_user(WORD)], []) is not None:
        # Why: templates for tool use loop over `tools` without asking whether there are any.
        no_tools = ()

    def show(messages: list[Message], tools: list[Message] | None = None) -> str:
        absent = None if no_tools is None else list(no_tools)
        return attempt(messages, tools if tools is not None else absent) or ""

    plain = show([_user(WORD)])
    listed = show([_user([_text(WORD)])])
    takes_parts = WORD in listed and "'type'" not in listed and '"type"' not in listed
    takes_strings = WORD in plain or not takes_parts
    if not plain and not listed:
        return Habits(joiner=joiner, media=NO_MEDIA)

    def content(text: str) -> Any:
        return text if takes_strings else [_text(text)]

    def turn(role: str, text: str) -> Message:
        return {"role": role, "content": content(text)}

    def media(kind: str) -> bool:
        shown = show([_user([{"type": kind}, _text(WORD)])])
        return takes_parts and WORD in shown and shown != listed and "'type'" not in shown

    with_tools = show(_tool_turns(content, null=False), _tools())
    with_null = (
        with_tools if OTHER in with_tools else show(_tool_turns(content, null=True), _tools())
    )
    several = show([turn("system", OTHER), turn("system", WORD), turn("user", "u")])
    late = show(
        [turn("user", "u"), turn("assistant", "a"), turn("system", WORD), turn("user", "v")]
    )
    knows_developer = WORD in show([turn("developer", WORD), turn("user", "u")])
    return Habits(
        joiner=joiner,
        takes_strings=takes_strings,
        media=frozenset(kind for kind in ("image", "audio", "document") if media(kind)),
        roles={} if knows_developer else {"developer": "system"},
        takes_system=WORD in show([turn("system", WORD), turn("user", "u")]),
        takes_several_systems=OTHER in several and WORD in several,
        takes_late_systems=WORD in late,
        takes_calls=OTHER in with_null,
        wants_null_content=OTHER not in with_tools and OTHER in with_null,
        takes_results=WORD in with_null or WORD in with_tools,
        no_tools=no_tools,
    )
