"""Dialogues as templates read them: shapes, roles, foreign history, templates that refuse."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tests.plugins.dialects.reading import template_source
from tokenwire.core.dialogue import (
    Dialogue,
    Document,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects.jinja.habits import Habits
from tokenwire.plugins.dialects.jinja.messages import to_messages, to_tools
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

SHOW = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
STRICT = (
    "{% if messages[0].role == 'system' %}{% set start = 1 %}S:{{ messages[0].content }}"
    "{% else %}{% set start = 0 %}{% endif %}"
    "{% for m in messages[start:] %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}"
    "[{{ m.role }}:{{ m.content }}]{% endfor %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
)
PARTS = (
    "{% for m in messages %}[{{ m.role }}:{% for p in m.content %}{{ p.text }}{% endfor %}]"
    "{% endfor %}"
)
CALLING = (
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}{% for c in m.tool_calls %}"
    "({{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}){% endfor %}"
    "{% if m.role == 'tool' %}{{ m.tool_call_id }} {{ m.name }}{% endif %}]{% endfor %}"
)


def say(role: str, *texts: str) -> Turn:
    return Turn(role, tuple(map(Text, texts)))


def calling(arguments: str, *, id: str = "c1", name: str = "get_tide") -> Turn:
    return Turn("assistant", (ToolCall(id, name, arguments),))


def result(*texts: str, id: str = "c1") -> Turn:
    return Turn("tool", (ToolResult(id, tuple(map(Text, texts))),))


def render(source: str, *turns: Turn, settings: Settings | None = None, **extra: object) -> str:
    template = JinjaTemplate(source, settings or Settings())
    return template.render(Dialogue(turns=turns, **extra), 0.0).text


def test_text_parts_become_one_string_with_the_joiner() -> None:
    assert render(SHOW, say("user", "alpha", "beta")) == "[user:alpha\nbeta]"
    settings = Settings(joiner=" ")
    assert render(SHOW, say("user", "alpha", "beta"), settings=settings) == "[user:alpha beta]"
    assert render(SHOW, say("user", "alpha")) == "[user:alpha]"


def test_a_template_that_wants_parts_gets_parts() -> None:
    assert render(PARTS, say("user", "alpha", "beta")) == "[user:alphabeta]"


def test_media_are_refused_and_unknown_blocks_left_out() -> None:
    with pytest.raises(RequestError, match="takes no image parts"):
        render(SHOW, Turn("user", (Text("see"), Image(data=b"x"))))
    with pytest.raises(RequestError, match="takes no document parts"):
        render(PARTS, Turn("user", (Document(data=b"x"),)))
    assert render(SHOW, Turn("user", (Text("words"), Opaque("other", {})))) == "[user:words]"


def test_content_that_is_absent_is_never_written_out() -> None:
    for parts in ((), (Text(""),)):
        turn = Turn("assistant", (*parts, ToolCall("c1", "get_tide", '{"port": "Faro"}')))
        text = render(CALLING, say("user", "Tide?"), turn, result("3.1", " m"))
        assert '(c1 get_tide {"port": "Faro"})' in text
        assert "None" not in text
        assert text.endswith("[tool:3.1\n mc1 get_tide]")


def test_developer_is_system_where_the_template_does_not_know_it() -> None:
    knows = SHOW.replace(
        "{{ m.role }}", "{{ {'developer': 'dev', 'user': 'u'}[m.role] or m.role }}"
    )
    assert render(knows, say("developer", "be brief"), say("user", "hi")).startswith("[dev:")
    drops = SHOW.replace("in messages", "in messages if m.role in ('system', 'user')")
    turns = (say("system", "one"), say("developer", "be brief"), say("user", "hi"))
    assert render(drops, *turns[1:]) == "[system:be brief][user:hi]"
    assert render(drops, *turns) == "[system:one][system:be brief][user:hi]"
    once = STRICT
    assert render(once, *turns) == "S:one\n\nbe brief[user:hi]"


def test_roles_can_be_renamed_by_the_settings() -> None:
    settings = Settings(roles={"user": "human"})
    assert render(SHOW, say("user", "hi"), settings=settings) == "[human:hi]"


LATE = (say("user", "a"), say("assistant", "b"), say("system", "in French"), say("user", "c"))


def test_a_system_turn_in_the_middle_stays_or_goes_to_the_front() -> None:
    assert render(SHOW, *LATE) == "[user:a][assistant:b][system:in French][user:c]"
    assert render(STRICT, *LATE) == "S:in French[user:a][assistant:b][user:c]"
    front = Settings(merge_system="front")
    assert render(SHOW, *LATE, settings=front) == "[system:in French][user:a][assistant:b][user:c]"
    with pytest.raises(RequestError, match="roles must alternate"):
        render(STRICT, *LATE, settings=Settings(merge_system="never"))


def test_system_text_goes_into_the_first_question_where_there_is_no_system_role() -> None:
    assert render(NO_SYSTEM, say("system", "S"), say("user", "hi")) == "[user:S\n\nhi]"
    assert render(NO_SYSTEM, say("system", "S")) == "[user:S]"


def test_neighbours_of_one_role_are_merged_where_the_template_demands_it() -> None:
    turns = (say("system", "s"), say("user", "a"), say("user", "b"))
    assert render(STRICT, *turns) == "S:s[user:a\nb]"
    assert render(SHOW, *turns) == "[system:s][user:a][user:b]"


def test_a_refusal_keeps_the_templates_own_words() -> None:
    with pytest.raises(RequestError, match="refuses this conversation: roles must alternate"):
        render(STRICT, say("assistant", "I begin"))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        ("null", "{}"),
        ('{"room": "hall", "lev', '"{\\"room\\": \\"hall\\", \\"lev"'),
        ("[]", '"[]"'),
        ("3", '"3"'),
        ('{"a": NaN}', '"{\\"a\\": NaN}"'),
        ('{"a": 1e400}', '"{\\"a\\": 1e400}"'),
        ('{"a": "\\ud800"}', '"{\\"a\\": \\"\\\\ud800\\"}"'),
        ("[" * 100_000, json.dumps("[" * 100_000)),
        ('{"id": 9007199254740993}', '{"id": 9007199254740993}'),
    ],
)
def test_arguments_of_the_history_never_fail(arguments: str, shown: str) -> None:
    text = render(
        CALLING, say("user", "x"), calling(arguments), result("bad"), say("user", "again")
    )
    assert f"(c1 get_tide {shown})" in text


def test_broken_arguments_are_wrapped_for_a_template_that_needs_a_mapping() -> None:
    source = CALLING.replace("c.function.arguments | tojson", "c.function.arguments | items | list")
    text = render(source, say("user", "x"), calling('{"room'), result("bad"))
    assert "('raw', '{\"room')" in text


def test_foreign_call_ids_are_shortened_for_a_template_that_demands_it() -> None:
    source = CALLING.replace(
        "({{ c.id }}",
        "{% if c.id | length != 9 %}{{ raise_exception('9 characters') }}{% endif %}({{ c.id }}",
    )
    ids = ("call_0123456789abcdef", "functions.get_tide:1")
    calls = Turn("assistant", tuple(ToolCall(id, "get_tide", "{}") for id in ids))
    results = Turn("tool", tuple(ToolResult(id, (Text("3"),)) for id in ids))
    text = render(source, say("user", "x"), calls, results)
    found = [text.split("(")[1].split()[0], text.split("(")[2].split()[0]]
    assert all(len(id) == 9 and id.isalnum() for id in found)
    assert found[0] != found[1]
    assert [part.split("3")[-1].split()[0] for part in text.split("[tool:")[1:]]
    for id in found:
        assert text.count(id) == 2
    assert render(CALLING, say("user", "x"), calls, results).count(ids[0]) == 2


def test_calls_that_a_template_would_drop_are_written_out() -> None:
    text = render(SHOW, say("user", "x"), calling('{"port": "Faro"}'), result("3.1 m"))
    assert '{"name": "get_tide", "arguments": {"port": "Faro"}}' in text
    drops = "{% for m in messages if m.role != 'tool' %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
    text = render(drops, say("user", "x"), calling("{}"), result("3.1 m"))
    assert text.endswith("[user:3.1 m]")


def test_tools_are_schemas_and_none_of_them_is_none() -> None:
    habits = Habits()
    assert to_tools((), habits) is None
    assert to_tools((), Habits(no_tools=())) == []
    schema = '{"type":"object","properties":{"scope":{"$ref":"#/$defs/S"}},"$defs":{"S":{}}}'
    tools = (ToolSpec("f", "d", schema, strict=True), ToolSpec("g", custom=True), ToolSpec("h"))
    made = to_tools(tools, habits)
    assert made is not None
    assert made[0]["function"]["parameters"] == json.loads(schema)
    assert made[0]["function"]["strict"] is True
    assert made[1]["function"]["parameters"]["required"] == ["input"]
    assert made[2]["function"]["parameters"] == {"type": "object", "properties": {}}
    with pytest.raises(RequestError, match=r"'f'.*not JSON"):
        to_tools((ToolSpec("f", None, "{"),), habits)


def test_a_template_for_tools_renders_without_any() -> None:
    source = template_source("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use")
    assert "hi" in render(source, say("user", "hi"))


def test_reasoning_names_and_custom_calls_have_their_fields() -> None:
    turn = Turn(
        "assistant",
        (
            Reasoning("why ", signature="c2ln"),
            Reasoning("", redacted="b3Bh"),
            Reasoning("so"),
            Text("b"),
            ToolCall("c1", "run", "print(1)", custom=True),
        ),
        name="bot",
    )
    (message,) = to_messages(Dialogue(turns=(turn,)), Habits())
    assert message["reasoning_content"] == message["thinking"] == "why so"
    assert (message["content"], message["name"]) == ("b", "bot")
    assert message["tool_calls"][0]["function"]["arguments"] == {"input": "print(1)"}
    assert "c2ln" not in str(message)
    assert "b3Bh" not in str(message)


def test_results_beside_text_in_one_turn_come_first() -> None:
    turn = Turn("user", (ToolResult("c1", (Text("3"),)), Text("and now?")))
    messages = to_messages(Dialogue(turns=(calling("{}"), turn)), Habits())
    assert [m["role"] for m in messages] == ["assistant", "tool", "user"]
    assert messages[1] == {"role": "tool", "tool_call_id": "c1", "content": "3", "name": "get_tide"}


def test_a_template_with_null_content_gets_its_text_apart() -> None:
    habits = replace(Habits(), wants_null_content=True)
    turn = Turn("assistant", (Text("let me"), ToolCall("c1", "f", "{}")))
    first, second = to_messages(Dialogue(turns=(turn,)), habits)
    assert first == {"role": "assistant", "content": "let me"}
    assert second["content"] is None
    assert second["tool_calls"][0]["function"]["name"] == "f"
