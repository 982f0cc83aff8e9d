"""Free-form tools: plain text in and out, by any cutting, and nothing of it repaired."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.custom_calls import FreeInput, FreeInputState, as_functions
from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolSpec, Turn

PATCH = '*** Begin "patch"\n\\ + a\tb\u2028 🌊 </tool_call>\n'


def read(pieces: list[str]) -> str:
    reader = FreeInput()
    return "".join([*map(reader.push, pieces), reader.flush()])


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.booleans(), st.data())
def test_the_text_inside_comes_out(text: str, is_ascii: bool, data: st.DataObject) -> None:
    written = json.dumps({"input": text}, ensure_ascii=is_ascii)
    at = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=5)))
    cut = [written[a:b] for a, b in zip([0, *at], [*at, len(written)], strict=True)]
    assert read(cut) == read(list(written)) == text


WRITTEN = [
    '{"input": "a\\n\\ud83c\\udf0a\\u00e9"}',
    ' \n{ "input" :  "x"\n}\n',
    '{"input": "cut \\ud83c',
    '{"input": "cut \\',
    '{"input": "lone \\ud83c and \\udf0a \\ud83cx \\u12x4 \\q"}',
    '{"input": "raw\nbreak"}',
    '{"input": "a", "more": 1}',
    '{"input": "a"}}',
    '{"input": 5}',
    '{"other": "a"}',
    "*** Begin Patch",
    "{}",
    "",
    '{"inp',
    json.dumps({"input": PATCH}),
]
READ = {
    WRITTEN[0]: "a\n🌊é",
    WRITTEN[1]: "x",
    WRITTEN[2]: "cut \\ud83c",
    WRITTEN[4]: "lone \\ud83c and \\udf0a \\ud83cx \\u12x4 \\q",
    WRITTEN[5]: "raw\nbreak",
    WRITTEN[8]: WRITTEN[8],
    WRITTEN[10]: WRITTEN[10],
    WRITTEN[11]: "{}",
    WRITTEN[13]: WRITTEN[13],
    WRITTEN[14]: PATCH,
}


@pytest.mark.parametrize("written", WRITTEN)
def test_any_cutting_and_any_restore_give_the_same(written: str) -> None:
    whole = read([written])
    assert READ.get(written, whole) == whole
    for at in range(len(written) + 1):
        first, second = FreeInput(), FreeInput()
        before = first.push(written[:at])
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(first.save()))
        second.restore(msgspec.convert(state, FreeInputState))
        assert before + second.push(written[at:]) + second.flush() == whole
    assert read(list(written)) == whole


def test_what_follows_the_string_is_passed_on_as_it_stands() -> None:
    assert read(['{"input": "a", "more": 1}']) == 'a, "more": 1}'
    assert read(['{"input": "a"} b']) == "a} b"


def test_what_is_held_back_is_bounded() -> None:
    reader = FreeInput()
    assert reader.push(" " * 300) == " " * 300
    reader = FreeInput()
    assert reader.push('{"input":"a"' + " " * 4000) == "a"
    assert len(reader.save().held) <= 256


def test_templates_see_functions() -> None:
    call = ToolCall("c", "patch", PATCH, custom=True)
    dialogue = Dialogue(
        (Turn("user", (Text("go"),)), Turn("assistant", (call,))),
        tools=(ToolSpec("patch", "Edits.", custom=True), ToolSpec("f")),
    )
    seen = as_functions(dialogue)
    assert not seen.tools[0].custom
    assert json.loads(seen.tools[0].parameters or "")["required"] == ["input"]
    made = seen.turns[1].parts[0]
    assert isinstance(made, ToolCall)
    assert json.loads(made.arguments) == {"input": PATCH}
    plain = Dialogue((Turn("user", (Text("go"),)),), tools=(ToolSpec("f"),))
    assert as_functions(plain) is plain
