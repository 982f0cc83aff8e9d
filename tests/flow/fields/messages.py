"""Messages: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = {"name": "f", "input_schema": SCHEMA}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}}
FORMAT = {"type": "json_schema", "schema": SCHEMA}
LINE = "x-anthropic-billing-header: v=1;\n"
LONG = "word " * 20
MARK = {"type": "ephemeral"}
HIDDEN = "tests/flow/test_hidden_thinking.py::test_sealed_thinking_survives_a_round_trip"
TEMPLATE = "tests/flow/test_template_fields.py::test_what_messages_says_to_the_template"
BETAS = (
    "tests/plugins/protocols/messages/test_decode.py"
    "::test_the_budget_may_pass_max_tokens_when_thinking_is_interleaved"
)


def one(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, **more)


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def text(words: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def block(kind: str, *, named: str = "", **fields: Any) -> Example:
    """A user message with such a block beside its text."""
    return Example(user(text(), {"type": kind, **fields}), instead=user(text()), named=named)


def tool(**more: Any) -> Example:
    return Example({"tools": [TOOL | more]}, instead={"tools": [TOOL]})


def history(*said: Any, result: Any = "r", **more: Any) -> dict[str, Any]:
    answer = {"type": "tool_result", "tool_use_id": "t", "content": result, **more}
    return {
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [*said, USE]},
            {"role": "user", "content": [answer]},
        ]
    }


def source(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


THOUGHT = {"type": "thinking", "thinking": "so", "signature": "c2ln"}
SEALED = {"type": "redacted_thinking", "data": "c2ln"}
SIGNED = "messages[].content[].signature"

EXAMPLES = Examples(
    "/v1/messages",
    {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8},
    {
        "model": one("model", "other"),
        "messages": one("messages", [{"role": "user", "content": "ho"}]),
        "max_tokens": one("max_tokens", 5),
        "system": one("system", "Be brief."),
        "system.x-anthropic-billing-header": one("system", f"{LINE}Be brief."),
        "messages[].content[].text": Example(user(text("b"))),
        "messages[].content[].text.citations": Example(
            user(text(citations=[{"type": "x"}])), named="messages[].content[].citations"
        ),
        "messages[].content[].image": block(
            "image", source=source("base64", media_type="image/png", data="AAAA")
        ),
        "messages[].content[].document": block("document", source=source("text", data="d")),
        "messages[].content[].document.base64": block(
            "document", source=source("base64", media_type="application/pdf", data="AAAA")
        ),
        "messages[].content[].document.url": block(
            "document", source=source("url", url="http://localhost/a.pdf")
        ),
        "messages[].content[].document.file": block("document", source=source("file", file_id="f")),
        "messages[].content[].document.citations": block(
            "document",
            source=source("text", data="d"),
            citations={"enabled": True},
            named="messages[].content[].citations",
        ),
        "messages[].content[].search_result": block(
            "search_result", source="s", title="t", content=[text("found")]
        ),
        "messages[].content[].tool_use": Example(history(), beside={"tools": [TOOL]}),
        "messages[].content[].tool_result": Example(
            history(result="other"), instead=history(), beside={"tools": [TOOL]}
        ),
        "messages[].content[].tool_result.tool_reference": Example(
            history(result=[{"type": "tool_reference", "tool_name": "f"}]),
            instead=history(result=[]),
            beside={"tools": [TOOL]},
        ),
        "messages[].content[].tool_result.is_error": Example(
            history(is_error=True),
            instead=history(),
            beside={"tools": [TOOL]},
            named="messages[].content[].is_error",
        ),
        "messages[].content[].thinking": Example(
            history(THOUGHT), instead=history(), beside={"tools": [TOOL]}
        ),
        "messages[].content[].thinking.signature": one(
            "messages",
            [],
            elsewhere="tests/plugins/protocols/messages/test_decode.py"
            "::test_foreign_thinking_is_tolerated_and_listed",
        ),
        "messages[].content[].redacted_thinking": one("messages", [], elsewhere=HIDDEN),
        "messages[].content[].cache_control": Example(
            user(text(LONG, cache_control=MARK)), instead=user(text(LONG))
        ),
        "messages[].content[][type=server_tool_use]": block(
            "server_tool_use", id="s", name="w", input={}
        ),
        "temperature": one("temperature", 0),
        "top_p": one("top_p", 0.5),
        "top_k": one("top_k", 5),
        "stop_sequences": one("stop_sequences", ["engine"], beside={"max_tokens": 90}),
        "stream": one("stream", True),
        "thinking": one("thinking", {"type": "disabled"}),
        "thinking.budget_tokens": one(
            "thinking", {"type": "enabled", "budget_tokens": 1024}, beside={"max_tokens": 2000}
        ),
        "thinking.display": one("thinking", {}, elsewhere=HIDDEN),
        "thinking.type=between_tools": one(
            "thinking",
            {},
            elsewhere="tests/plugins/protocols/messages/test_decode.py::test_thinking",
        ),
        "tools": one("tools", [TOOL]),
        "tools[].strict": tool(strict=True),
        "tools[].cache_control": tool(cache_control=MARK),
        "tools[].eager_input_streaming": one(
            "tools",
            [],
            elsewhere="tests/plugins/protocols/messages/test_decode.py::test_tools",
        ),
        "tools[].defer_loading": tool(defer_loading=True),
        "tools[].input_examples": tool(input_examples=[{"a": "b"}]),
        "tools[].allowed_callers": tool(allowed_callers=["direct"]),
        "tools[][type=web_search_20250305]": one(
            "tools", [TOOL, {"type": "web_search_20250305", "name": "w"}]
        ),
        "tool_choice": one(
            "tool_choice", {"type": "any"}, beside={"tools": [TOOL], "max_tokens": 90}
        ),
        "tool_choice.disable_parallel_tool_use": Example(
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            instead={"tool_choice": {"type": "any"}},
            beside={"tools": [TOOL], "max_tokens": 90},
        ),
        "output_config.effort": one("output_config", {"effort": "high"}, elsewhere=TEMPLATE),
        "output_config.format": one("output_config", {"format": FORMAT}),
        "output_config.task_budget": one("output_config", {"task_budget": {"total": 9}}),
        "output_format": one("output_format", FORMAT, lacking="output_config.format"),
        "metadata.user_id": one("metadata", {"user_id": "u"}),
        "cache_control": Example(
            {**user(text(LONG)), "cache_control": MARK}, instead=user(text(LONG))
        ),
        "anthropic-beta": one("model", "m", elsewhere=BETAS),
        "service_tier": one("service_tier", "auto"),
        "container": one("container", "c"),
        "mcp_servers": one("mcp_servers", [{"type": "url", "url": "http://h", "name": "n"}]),
        "context_management": one("context_management", {"edits": []}),
        "inference_geo": one("inference_geo", "eu"),
        "speed": one("speed", "fast"),
    },
    volatile=("id", "cache_read_input_tokens", "input_tokens"),
)
