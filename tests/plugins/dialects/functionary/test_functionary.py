"""What Functionary models write beside what their templates show."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import call, read, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.functionary.maker import MessagesMaker, tagged_maker

TAGGED, MESSAGES = tagged_maker(), MessagesMaker()
TOOLS = (ToolSpec("get_tide"), ToolSpec("python"))
FARO = call("get_tide", '{"port": "Faro"}')


def tagged(*pieces: str, **setup):
    return read(*pieces, maker=TAGGED, tools=setup.pop("tools", TOOLS), **setup)


def messages(*pieces: str, **setup):
    return read(*pieces, maker=MESSAGES, tools=setup.pop("tools", TOOLS), **setup)


def test_a_call_ends_with_its_json_whatever_its_strings_spell() -> None:
    body = '{"a": "</function> <function=x>"}'
    parts = tagged(f"Hi <function=get_tide>{body}</function><function=get_tide>{{}}</function>\n")
    assert parts == [text("Hi "), call("get_tide", body), call("get_tide", "{}")]


@pytest.mark.parametrize("body", ["", " ", "null"])
def test_no_arguments_are_an_empty_object(body: str) -> None:
    parts = tagged(f"<function=get_tide>{body}</function>ok")
    assert parts == [call("get_tide", "{}"), text("ok")]
    parts = messages(f"get_tide\n{body}>>>all\nok")
    assert parts == [call("get_tide", "{}"), text("ok")]


def test_a_call_that_is_broken_off_is_not_complete() -> None:
    part = call("get_tide", '{"a": 1', complete=False)
    assert tagged('<function=get_tide>{"a": 1') == [part]
    assert tagged('<function=get_tide>{"a": 1</function> ok') == [part, text(" ok")]
    assert messages('get_tide\n{"a": 1') == [part]


def test_what_is_no_name_is_no_call() -> None:
    said = '<function=get tide>{"a": 1}</function>'
    assert tagged(said) == [text(said)]
    assert tagged('<function=get_tide>{"a": 1}</function>', parse_tools=False) == [
        text('<function=get_tide>{"a": 1}</function>')
    ]


def test_code_is_a_call_of_the_tool_that_takes_it() -> None:
    part = call("python", "print(1 < 2)\n", complete=False)
    assert tagged("<|python_tag|>print(1 < 2)\n") == [part]
    assert tagged('<|python_tag|>{"code": "x"}') == [call("python", '{"code": "x"}')]
    said = "<|python_tag|>print(1)"
    assert tagged(said, tools=TOOLS[:1]) == [text(said)]


def test_messages_to_all_and_to_tools() -> None:
    said = ("all\nLet me look.>>>get_tide\n", '{"port": "Faro"}', ">>>python\nprint(1)\n")
    assert messages(*said, ">>>all\nDone.") == [
        text("Let me look."), FARO, call("python", "print(1)\n"), text("Done.")
    ]  # fmt: skip
    assert messages(">>>", 'get_tide\n{"port": "Faro"}') == [FARO]


def test_a_line_that_names_nobody_is_text() -> None:
    said = "In Python:\n>>> x = 1\n>>>x\n1\n>>>>foo\n>>"
    assert messages(f"all\n{said}") == [text(said)]
    assert messages("hello\nyou") == [text("hello\nyou")]
    assert messages('get_tide\n{"a": 1}', parse_tools=False) == [text('get_tide\n{"a": 1}')]


def test_a_recipient_in_an_argument_string_is_data() -> None:
    body = '{"a": "x\\n>>>all\\n"}'
    assert messages(f"get_tide\n{body}>>>all\nok") == [call("get_tide", body), text("ok")]


def test_without_tools_told_any_name_is_one() -> None:
    assert messages("other\n{}", tools=()) == [call("other", "{}")]
