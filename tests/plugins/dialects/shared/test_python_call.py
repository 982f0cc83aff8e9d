"""Calls written as Python are read as their arguments in JSON, and nothing else is read as one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.dialects.shared.reader_runs import read_call
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.python_call import PythonCall

TOOLS = (
    ToolSpec("tide", None, '{"type": "object", "properties": {"port": {}, "day": {}}}'),
    ToolSpec("lamp"),
)


def read(text: str, **options: bool | str):
    return read_call(lambda: PythonCall(TOOLS, **options), text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("[tide()]", "{}"),
        ("[tide(port='Faro', day=3)]", '{"port": "Faro", "day": 3}'),
        ('[tide(\n  port = "Faro",\n)]', '{"port": "Faro"}'),
        ('[tide("Faro", -1.5e3)]', '{"port": "Faro", "day": -1.5e3}'),
        ("[tide(port=None, day=True)]", '{"port": null, "day": true}'),
        ("[tide(None, day=False)]", '{"port": null, "day": false}'),
        ("[tide(day=[1, (2,), {'a': {}, 3: []}])]", '{"day": [1, [2], {"a": {}, "3": []}]}'),
        ("[tide(port={'a': [true, null,],})]", '{"port": {"a": [true, null]}}'),
        ("[tide(day=0x10, port=1_000)]", '{"day": 16, "port": 1000}'),
        ("[tide(day=.5, port=+1)]", '{"day": 0.5, "port": 1}'),
        ("[tide(day=1e999)]", '{"day": 1e999}'),
        ("[tide(port=Faro)]", '{"port": "Faro"}'),
        ("[tide(port='', day=\"\")]", '{"port": "", "day": ""}'),
        (
            r"""[tide(port="a\"b\'c\\d\n\x41\u00e9\101\0!")]""",
            r'{"port": "a\"b' + r"'c\\d\nA\u00e9A\u0000!" + '"}',
        ),
        (
            r"[tide(port='\q\N{x}\xZ\ud83d\ude00\U0001F600')]",
            r'{"port": "\\q\\N{x}\\xZ\ud83d\ude00😀"}',
        ),
        (r"[tide(port=r'a\d\'b')]", r'{"port": "a\\d\\' + "'b" + '"}'),
        ('[tide(port="""a"b\n""c""")]', r'{"port": "a\"b\n\"\"c"}'),
        ("[tide(port='é🌊\t\"')]", '{"port": "é🌊\\t\\""}'),
        ("[tide(Über key=1)]", '{"Über key": 1}'),
    ],
)  # fmt: skip
def test_arguments_are_given_as_json(text: str, arguments: str) -> None:
    assert read(text) == ([("tide", arguments, True)], "")
    json.loads(arguments)


def test_several_calls_stand_in_a_list_or_in_lines() -> None:
    calls = [("tide", '{"day": 1}', True), ("lamp", "{}", True)]
    assert read("[tide(day=1), lamp()] and so on") == (calls, " and so on")
    assert read("\ntide(day=1)\nlamp()\n</function_calls>") == (calls, "</function_calls>")
    assert read("[tide(day=1), lamp(), 7]") == (calls, "7]")


@pytest.mark.parametrize(
    "text",
    ["[]", "[1, 2]", "[tide]", "[tide](http://x)", "[tide(port)]", "tide (1)", "(1)", "[ ] tide()",
     "[lamp(1)]", "[tide(", "[tide(po", " " * 300 + "[tide()]", "[" + "x" * 300 + "()]"],
)  # fmt: skip
def test_what_is_no_call_is_text(text: str) -> None:
    assert read(text) == ([], text)


def test_only_the_names_of_tools_begin_a_call_that_nothing_marks() -> None:
    assert read("[storm(day=1)]", is_known=True) == ([], "[storm(day=1)]")
    assert read("[storm(day=1)]") == ([("storm", '{"day": 1}', True)], "")


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("[tide(port='Fa", '{"port": "Fa'),
        ("[tide(port='Fa\\", '{"port": "Fa'),
        ("[tide(port=['a', ", '{"port": ["a"'),
        ("[tide(day=12", '{"day": 12'),
        ("[tide(day=0", '{"day": '),
        ("[tide(day=Tru", '{"day": '),
        ("[tide(day=1, po", '{"day": 1'),
        ("[tide(day=", '{"day": '),
    ],
)
def test_a_call_that_is_cut_off_ends_where_the_model_ended(text: str, arguments: str) -> None:
    assert read(text) == ([("tide", arguments, False)], "")


@pytest.mark.parametrize("bad", ["[1, 2", "{'a'}", "{'a': 1, 2}", "f(2)", "1 + 2", "]", "a'b'"])
def test_what_python_cannot_say_breaks_the_call(bad: str) -> None:
    calls, _ = read(f"[tide(day={bad})]")
    assert [(name, complete) for name, _, complete in calls] == [("tide", False)]


def test_quotes_that_nobody_escaped_stay_in_lax_strings() -> None:
    text = "[tide(port='it's \"so\"', day=['a' , ''])]"
    arguments = '{"port": "it\'s \\"so\\"", "day": ["a", ""]}'
    assert read(text, is_lax=True) == ([("tide", arguments, True)], "")


def test_the_method_of_a_built_in_tool_is_no_part_of_its_name() -> None:
    calls = [("tide", '{"port": "x"}', True)]
    assert read('tide.call(port="x")', method=".call") == (calls, "")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=("Cs",)))
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(("port", "day", "x_1", "é")), values, max_size=3))
def test_what_python_writes_is_read(arguments: dict) -> None:
    text = f"[tide({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"
    [(name, said, complete)], rest = read(text)
    assert (name, complete, rest) == ("tide", True, "")
    assert json.loads(said) == arguments


@given(st.lists(st.sampled_from(
    ("[", "]", "(", ")", "{", "}", ",", ":", "=", "'", '"', "\\", "tide(", "day=", "1", "x", " ",
     "\n", "<", "'''", "\\u00", "r'", "True", ";", "é")), max_size=14).map("".join))  # fmt: skip
def test_nothing_raises(text: str) -> None:
    read(text)
    read(f"[tide(day={text}", is_lax=True)
