"""Finds out what a template can take, by rendering small conversations with a word to look for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tokenwire.plugins.dialects.jinja.habits import Habits, Message

__all__ = ("Try", "probe")

Try: TypeAlias = Callable[[list[Message], list[Message] | None], str | None]
"""Messages and tools to rendered text; None where the template refuses or fails."""

Show: TypeAlias = Callable[[list[Message], list[Message] | None], str]

WORD: Final = "Quellwort"
OTHER: Final = "Nebenwort"


def _user(content: Any) -> Message:
    return {"role": "user", "content": content}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _tool_turns(content: Callable[[str], Any], *, null: bool, string: bool) -> list[Message]:
    function = {"name": OTHER, "arguments": '{"a": "b"}' if string else {"a": "b"}}
    call = {"id": "abcDEF123", "type": "function", "function": function}
    calling = {"role": "assistant", "content": None if null else content(""), "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "abcDEF123", "name": OTHER, "content": content(WORD)}
    return [_user(content("u")), calling, result]


def _tools() -> list[Message]:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "description": "d"}}}
    tool = {"name": "other", "description": "d", "parameters": parameters}
    return [{"type": "function", "function": tool}]


def _way_of_calls(show: Show, content: Callable[[str], Any]) -> tuple[bool, bool, str]:
    """The first way in which a call and its result are seen: null content, string arguments; and
    the text. None: the plain way, and what it gives."""
    plain = show(_tool_turns(content, null=False, string=False), _tools())
    if OTHER in plain and WORD in plain:
        return False, False, plain
    for null, string in ((True, False), (False, True), (True, True)):
        text = show(_tool_turns(content, null=null, string=string), _tools())
        if OTHER in text and WORD in text:
            return null, string, text
    return False, False, plain


def probe(attempt: Try, joiner: str) -> Habits:
    """The habits of the template behind `attempt`. A template that takes nothing at all gets the
    defaults: its own words then say why."""
    no_tools: tuple[Message, ...] | None = None
    if attempt([_user(WORD)], None) is None and attempt([_user(WORD)], []) is not None:
        # Why: templates for tool use loop over `tools` without asking whether there are any.
        no_tools = ()

    def show(messages: list[Message], tools: list[Message] | None = None) -> str:
        absent: list[Message] | None = None if no_tools is None else [*no_tools]
        return attempt(messages, tools if tools is not None else absent) or ""

    plain = show([_user(WORD)])
    listed = show([_user([_text(WORD)])])
    takes_parts = WORD in listed and "'type'" not in listed and '"type"' not in listed
    takes_strings = WORD in plain or not takes_parts
    if not plain and not listed:
        return Habits(joiner=joiner, roles={"developer": "system"})

    def content(text: str) -> Any:
        return text if takes_strings else [_text(text)]

    def turn(role: str, text: str) -> Message:
        return {"role": role, "content": content(text)}

    null, string, with_tools = _way_of_calls(show, content)
    several = show([turn("system", OTHER), turn("system", WORD), turn("user", "u")])
    late = show(
        [turn("user", "u"), turn("assistant", "a"), turn("system", WORD), turn("user", "v")]
    )
    knows_developer = WORD in show([turn("developer", WORD), turn("user", "u")])
    return Habits(
        joiner=joiner,
        takes_strings=takes_strings,
        roles={} if knows_developer else {"developer": "system"},
        takes_system=WORD in show([turn("system", WORD), turn("user", "u")]),
        takes_several_systems=OTHER in several and WORD in several,
        takes_late_systems=WORD in late,
        takes_calls=OTHER in with_tools,
        wants_null_content=null,
        wants_string_arguments=string,
        takes_results=WORD in with_tools,
        no_tools=no_tools,
    )
