"""What each field of a request means."""

from __future__ import annotations

import base64

import msgspec
import pytest

from tokenwire.core.call import CacheMarker, Count, Need
from tokenwire.core.dialogue import (
    Document,
    Image,
    Opaque,
    Reasoning,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols.messages.codec import COUNT_PATH

TOOL = {"name": "tide", "description": "tides", "input_schema": {"type": "object"}}
PIXEL = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def user(*blocks: object) -> dict[str, object]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: object) -> dict[str, object]:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str) -> dict[str, object]:
    return {"type": "text", "text": value}


def use(id_: str, name: str = "a") -> dict[str, object]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {}}


def test_smallest(decode):
    call = decode()
    assert call.model == "m"
    assert call.dialogue.turns == (Turn("user", (Text("hi"),)),)
    assert call.stopping.max_tokens == 256
    assert not call.output.stream
    assert call.ignored == ()
    assert call.output.n == 1
    assert not call.dialogue.continue_final


def test_settings(decode):
    call = decode(
        stream=True,
        temperature=0,
        top_p=0.5,
        top_k=4,
        stop_sequences=["###", "@@"],
        metadata={"user_id": "u-1"},
    )
    assert call.output.stream
    sampling = call.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0, 0.5, 4)
    assert sampling.seed is None
    assert call.stopping.strings == ("###", "@@")
    assert call.identity.user == "u-1"
    assert call.identity.tenant == "default"
    assert call.ignored == ()


def test_a_large_max_tokens_is_left_to_the_pipeline(decode):
    assert decode(max_tokens=32_000_000).stopping.max_tokens == 32_000_000


def test_system_as_text_and_as_blocks(decode):
    assert decode(system="one").dialogue.turns[0] == Turn("system", (Text("one"),))
    blocks = decode(system=[text("one"), text("two")])
    assert blocks.dialogue.turns[0] == Turn("system", (Text("one"), Text("two")))
    assert decode(system="").dialogue.turns == decode().dialogue.turns


def test_system_in_the_middle_keeps_its_place(decode):
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "system", "content": "from now on answer in French"},
        {"role": "user", "content": "c"},
    ]
    turns = decode(system="first", messages=messages).dialogue.turns
    assert [turn.role for turn in turns] == ["system", "user", "assistant", "system", "user"]
    assert turns[3].parts == (Text("from now on answer in French"),)


def test_a_system_message_does_not_join_the_system_prompt(decode):
    turns = decode(system="a", messages=[{"role": "system", "content": "b"}, user(text("c"))])
    assert [turn.role for turn in turns.dialogue.turns] == ["system", "system", "user"]


def test_neighbours_of_one_role_are_combined(decode):
    messages = [user(text("a")), user(text("b")), assistant(text("c")), assistant(text("d"))]
    assert decode(messages=messages).dialogue.turns == (
        Turn("user", (Text("a"), Text("b"))),
        Turn("assistant", (Text("c"), Text("d"))),
    )


def test_empty_content_is_an_empty_turn(decode):
    turns = decode(messages=[user(text("a")), assistant(), user()]).dialogue.turns
    assert [len(turn.parts) for turn in turns] == [1, 0, 0]


def test_tools_and_results(decode):
    messages = [
        user(text("tide?")),
        assistant(text("I look."), use("t1", "tide"), use("t2"), use("t3")),
        user(
            {"type": "tool_result", "tool_use_id": "t1", "content": "low", "is_error": True},
            {"type": "tool_result", "tool_use_id": "t2", "content": [text("x"), text("y")]},
            {"type": "tool_result", "tool_use_id": "t3"},
            text("so?"),
        ),
    ]
    turns = decode(messages=messages, tools=[TOOL]).dialogue.turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "user"]
    assert turns[1].parts[1] == ToolCall("t1", "tide", "{}")
    assert turns[2].parts == (
        ToolResult("t1", (Text("low"),), is_error=True, name="tide"),
        ToolResult("t2", (Text("x"), Text("y")), name="a"),
        ToolResult("t3", (), name="a"),
    )
    assert turns[3].parts == (Text("so?"),)


def test_a_result_answers_an_earlier_call(decode):
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    for messages in ([user(result)], [assistant(use("T")), user(result)]):
        with pytest.raises(RequestError, match="'t' answers no earlier call") as caught:
            decode(messages=messages)
        assert caught.value.param == f"messages[{len(messages) - 1}].content[0].tool_use_id"
    with pytest.raises(RequestError, match="answers no earlier call"):
        decode(messages=[user(result), assistant(use("t"))])
    later = [assistant(use("t")), user(text("wait")), assistant(text("?")), user(result, result)]
    assert [part.name for part in decode(messages=later).dialogue.turns[-1].parts] == ["a", "a"]


def test_calls_without_results_are_tolerated(decode):
    asked = use("toolu_1")
    turns = decode(messages=[user(text("a")), assistant(asked), user(text("skip it"))])
    assert turns.dialogue.turns[2].parts == (Text("skip it"),)
    assert not decode(messages=[user(text("a")), assistant(asked)]).dialogue.continue_final


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_results_of_calls_that_others_ran_are_not_checked(decode, kind):
    hosted = {"type": kind, "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []}
    plain = {"type": "tool_result", "tool_use_id": "srvtoolu_1", "content": "x"}
    turns = decode(messages=[assistant(hosted, found), user(found, plain)]).dialogue.turns
    assert [part.kind for part in turns[0].parts] == [kind, "web_search_tool_result"]
    assert turns[1].parts == (Opaque("web_search_tool_result", found),)
    assert turns[2].parts == (ToolResult("srvtoolu_1", (Text("x"),), name="web_search"),)
    nameless = {"type": kind, "id": "srvtoolu_1"}
    turns = decode(messages=[assistant(nameless), user(plain)]).dialogue.turns
    assert turns[1].parts[0].name is None
    with pytest.raises(RequestError, match="answers no earlier call"):
        decode(messages=[user(hosted), user(plain)])


def test_json_is_kept_as_it_was_written(decode):
    schema = '{ "type":"object", "b": 1.0, "a": 12345678901234567890123 }'
    given = '{"x": 1.50,  "z": "\\u00e9"}'
    body = (
        '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},'
        '{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"a",'
        f'"input":{given}}}]}}],'
        f'"output_config":{{"format":{{"type":"json_schema","schema":{schema}}}}},'
        f'"tools":[{{"name":"a","input_schema":{schema}}}]}}'
    )
    for prefix in (b"", b"\xef\xbb\xbf"):
        call = decode(prefix + body.encode())
        assert call.dialogue.tools[0].parameters == schema
        assert call.dialogue.response_format == ResponseFormat("json_schema", text=schema)
        assert call.dialogue.turns[1].parts[0].arguments == given


@pytest.mark.parametrize(
    ("given", "arguments"),
    [(None, "{}"), ('{"a": 1}', '{"a": 1}'), ("oops", "oops"), ([1], "[1]"), (3, "3")],
)
def test_malformed_history_arguments_are_listed(decode, given, arguments):
    block = {"type": "tool_use", "id": "t", "name": "a", "input": given}
    call = decode(messages=[user(text("a")), assistant(block)])
    assert call.dialogue.turns[1].parts[0].arguments == arguments
    assert call.ignored == ("messages[].content[].input",)


def test_images(decode):
    url = "https://example.com/a.png"
    shot = {"type": "tool_result", "tool_use_id": "t", "content": [text("done"), image(PIXEL)]}
    shown = user(image(PIXEL), image({"type": "url", "url": url}), shot)
    call = decode(messages=[assistant(use("t")), shown])
    data = base64.b64decode("iVBORw0KGgo=")
    first, second = call.dialogue.turns[1].parts
    assert first == Image(data=data, media_type="image/png")
    assert second == Image(url=url)
    assert call.dialogue.turns[2].parts[0].parts == (
        Text("done"),
        Image(data=data, media_type="image/png"),
    )
    assert call.needs == (Need("url", url),)
    met = call.resolve({Need("url", url): b"png"})
    assert met.needs == ()
    assert met.dialogue.turns[1].parts[1] == Image(data=b"png")
    assert met.dialogue.turns[1].parts[0] == first
    with pytest.raises(LookupError, match="needs not met"):
        call.resolve({})
    with pytest.raises(LookupError, match="wanted bytes"):
        call.resolve({Need("url", url): "text"})


def image(source: object) -> dict[str, object]:
    return {"type": "image", "source": source}


def test_documents(decode):
    plain = {"type": "text", "media_type": "text/plain", "data": "a, b"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    blocks = {"type": "content", "content": [text("p"), image(PIXEL), text("q")]}
    call = decode(
        messages=[
            user(
                {"type": "document", "source": plain, "title": "T"},
                {"type": "document", "source": pdf, "citations": {"enabled": True}},
                {"type": "document", "source": {"type": "url", "url": "http://h/x.pdf"}},
                {"type": "document", "source": blocks, "context": "c"},
                {"type": "document", "source": {"type": "content", "content": "whole"}},
            )
        ]
    )
    first, second, third, fourth, fifth = call.dialogue.turns[0].parts
    assert first == Document(text="a, b", media_type="text/plain", title="T")
    assert isinstance(second, Document)
    assert second.data == b"%PDF"
    assert third == Document(url="http://h/x.pdf")
    assert isinstance(fourth, Document)
    assert fourth.text == "p\nq"
    assert isinstance(fifth, Document)
    assert fifth.text == "whole"
    assert call.ignored == (
        "messages[].content[].citations",
        "messages[].content[].context",
        "messages[].content[].source.content[][type=image]",
    )


def test_search_results_reach_the_model_as_documents(decode):
    found = {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [text("x"), text("y")],
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": [found]}
    asked = assistant(use("t"))
    call = decode(messages=[asked, user({**found, "citations": {"enabled": True}}, result)])
    document = call.dialogue.turns[2].parts[0].parts[0]
    assert document == Document(text="x\ny", title="t", name="s", extra={"search_result": found})
    assert call.dialogue.turns[1].parts[0].text == "x\ny"
    assert call.ignored == ("messages[].content[].citations",)


def test_a_tool_that_was_found_is_shown_by_its_name(decode):
    references = [{"type": "tool_reference", "tool_name": name} for name in ("a", "b")]
    result = {"type": "tool_result", "tool_use_id": "t", "content": references}
    call = decode(messages=[assistant(use("t")), user(result)])
    parts = call.dialogue.turns[1].parts[0].parts
    assert [part.text for part in parts] == ["[tool found: a]", "[tool found: b]"]
    assert call.ignored == ()


def test_top_p_of_nothing_leaves_one_token(decode):
    assert 0 < decode(top_p=0).sampling.top_p < 0.001


def test_blocks_that_we_do_not_run_are_kept_and_listed(decode):
    upload = {"type": "container_upload", "file_id": "f"}
    hosted = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    turns = [user(upload, text("x")), assistant(hosted)]
    call = decode(messages=turns)
    assert call.dialogue.turns[0].parts[0] == Opaque("container_upload", upload)
    assert call.dialogue.turns[1].parts == (Opaque("server_tool_use", hosted),)
    assert call.ignored == (
        "messages[].content[][type=container_upload]",
        "messages[].content[][type=server_tool_use]",
    )


def test_foreign_thinking_is_tolerated_and_listed(decode):
    call = decode(
        messages=[
            user(text("a")),
            assistant(
                {"type": "thinking", "thinking": "t", "signature": "c2lnLW90aGVy"},
                {"type": "thinking", "thinking": "u"},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                text("b"),
            ),
            user(text("c")),
        ]
    )
    assert call.dialogue.turns[1].parts == (
        Reasoning("t", signature="c2lnLW90aGVy"),
        Reasoning("u"),
        Reasoning("", redacted="b3BhcXVl"),
        Text("b"),
    )
    assert call.ignored == ("messages[].content[].signature",)
    sealed = Need("sealed", "b3BhcXVl")
    assert call.needs == (sealed,)
    foreign = call.resolve({sealed: None})
    assert foreign.dialogue == call.dialogue
    assert foreign.ignored == (
        "messages[].content[].signature",
        "messages[].content[][type=redacted_thinking]",
    )
    ours = call.resolve({sealed: b"seen"})
    assert ours.dialogue.turns[1].parts[2] == Reasoning("seen")
    assert ours.ignored == call.ignored


@pytest.mark.parametrize(
    ("thinking", "config", "settings", "ignored"),
    [
        (
            {"type": "enabled", "budget_tokens": 1024},
            None,
            ReasoningSettings("on", budget=1024),
            (),
        ),
        (
            {"type": "adaptive"},
            {"effort": "high"},
            ReasoningSettings("adaptive", effort="high"),
            (),
        ),
        ({"type": "disabled"}, None, ReasoningSettings("off"), ()),
        (None, {"effort": "low"}, ReasoningSettings(effort="low"), ()),
        (
            {"type": "adaptive", "display": "omitted"},
            None,
            ReasoningSettings("adaptive"),
            (),
        ),
        (
            {"type": "between_tools"},
            None,
            ReasoningSettings("off"),
            ("thinking.type=between_tools",),
        ),
    ],
)
def test_thinking(decode, thinking, config, settings, ignored):
    call = decode(max_tokens=2048, thinking=thinking, output_config=config)
    assert call.dialogue.reasoning == settings
    assert call.ignored == ignored


def test_the_budget_may_pass_max_tokens_when_thinking_is_interleaved(decode):
    headers = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    thinking = {"type": "enabled", "budget_tokens": 4096}
    call = decode(thinking=thinking, headers=headers)
    assert call.dialogue.reasoning.budget == 4096
    assert call.ignored == ()


def test_tools(decode):
    strict = {**TOOL, "name": "b", "strict": True, "type": "custom", "input_examples": [{}]}
    hosted = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    call = decode(tools=[hosted, TOOL, strict])
    first, second = call.dialogue.tools
    assert first == ToolSpec("tide", description="tides", parameters='{"type":"object"}')
    assert second.strict is True
    assert second.extra == {"input_examples": [{}], "type": "custom"}
    assert call.ignored == ("tools[][type=web_search_20250305]", "tools[].input_examples")
    assert call.dialogue.extra == {"tools": [hosted]}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ({"type": "auto"}, ToolChoice()),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(parallel=False)),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "none"}, ToolChoice("none")),
        ({"type": "tool", "name": "tide"}, ToolChoice("named", ("tide",))),
    ],
)
def test_tool_choice(decode, choice, expected):
    assert decode(tools=[TOOL], tool_choice=choice).dialogue.tool_choice == expected


def test_cache_markers(decode):
    control = {"type": "ephemeral"}
    hour = {"type": "ephemeral", "ttl": "1h"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "r", "cache_control": hour}
    call = decode(
        system=[text("a"), {**text("b"), "cache_control": control}],
        messages=[
            assistant(use("t")),
            user(text("c"), result, {**text("d"), "cache_control": {"type": "x", "ttl": "9"}}),
        ],
        tools=[{**TOOL, "cache_control": {"type": "ephemeral", "ttl": "5m"}}],
    )
    assert set(call.hints.cache_markers) == {
        CacheMarker(-1, 0, 300),
        CacheMarker(0, 1),
        CacheMarker(3, 0, 3600),
        CacheMarker(4, 0),
    }
    assert call.ignored == (
        "messages[].content[].cache_control.type",
        "messages[].content[].cache_control.ttl",
    )


def test_cache_control_of_the_request_marks_its_last_block(decode):
    call = decode(cache_control={"type": "ephemeral"})
    assert call.hints.cache_markers == (CacheMarker(0, 0),)
    both = decode(
        cache_control={"type": "ephemeral"},
        messages=[user({**text("a"), "cache_control": {"type": "ephemeral"}})],
    )
    assert both.hints.cache_markers == (CacheMarker(0, 0),)


@pytest.mark.parametrize("last", ["The answer is (", ""])
def test_an_assistant_message_at_the_end_is_a_beginning(decode, last):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": last}]
    assert decode(messages=messages).dialogue.continue_final


def test_unknown_fields_are_kept_and_listed(decode):
    call = decode(
        service_tier="auto",
        container=None,
        metadata={"user_id": None, "team": "a"},
        output_config={"task_budget": {}},
        messages=[{"role": "user", "content": [{**text("a"), "note": 1}], "id": "m1"}],
    )
    assert call.extra == {
        "service_tier": "auto",
        "container": None,
        "metadata": {"team": "a"},
        "output_config": {"task_budget": {}},
    }
    assert call.dialogue.turns[0].extra == {"id": "m1"}
    assert call.dialogue.turns[0].parts[0].extra == {"note": 1}
    assert set(call.ignored) == {
        "service_tier",
        "metadata.team",
        "output_config.task_budget",
        "messages[].id",
        "messages[].content[].note",
    }
    assert call.unknown == call.ignored


def test_what_is_known_and_has_no_use_is_not_unknown(decode):
    call = decode(headers={"anthropic-beta": "new-1"}, x=1, thinking={"type": "between_tools"})
    assert call.ignored == ("anthropic-beta:new-1", "x", "thinking.type=between_tools")
    assert call.unknown == ("x",)


def test_beta_flags_are_listed(decode):
    call = decode(headers={"anthropic-beta": "claude-code-20250219, context-1m-2025-08-07"})
    assert call.ignored == (
        "anthropic-beta:claude-code-20250219",
        "anthropic-beta:context-1m-2025-08-07",
    )


def test_the_list_is_bounded(decode):
    call = decode(**{f"x{k}\r\nset-cookie: é" + "y" * 200: 1 for k in range(500)})
    assert len(call.ignored) == 64
    assert len(call.extra) == 500


def test_counting_needs_no_max_tokens(codec):
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    asked = codec.decode(HttpRequest("POST", COUNT_PATH, body=body))
    assert isinstance(asked, Count)
    assert asked.call.stopping.max_tokens is None
    reply = codec.answer(asked, 17)
    assert (reply.status, msgspec.json.decode(reply.body)) == (200, {"input_tokens": 17})
