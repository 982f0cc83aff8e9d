"""What a capability table says of fields that need a dialect is what a reply's header says: on
models with and without tools in their template, a parser of calls, and a grammar of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.flow.wired import PATHS, factory, model, serving
from tokenwire.core.config import PluginUse
from tokenwire.core.dialect_powers import DIALECT
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.wire import HttpRequest

HEADER = "x-tokenwire-ignored"
SILENT = "{% for m in messages %}{{ m.content }}{% endfor %}"
READS = (
    "{{ reasoning_effort }}{{ documents }}{{ colour }}{{ enable_thinking }}"
    "{% for t in tools or [] %}{{ t }}{% endfor %}" + SILENT
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
STRICT = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}
CLAUDE = {"name": "f", "input_schema": SCHEMA}
FLAT = {"type": "function", "name": "f", "parameters": SCHEMA}

HI = [{"role": "user", "content": "hi"}]
LEAST: dict[str, tuple[str, dict[str, Any]]] = {
    "chat_completions": (PATHS["chat_completions"], {"messages": HI, "max_tokens": 90}),
    "messages": (PATHS["messages"], {"messages": HI, "max_tokens": 2000}),
    "responses": ("/v1/responses", {"input": "hi", "max_output_tokens": 90}),
}
ASKED: dict[str, dict[str, tuple[dict[str, Any], str]]] = {
    "chat_completions": {
        "tools": ({"tools": [TOOL]}, "tools"),
        "tools[].function.strict": ({"tools": [STRICT]}, "tools[].function.strict"),
        "tool_choice": ({"tools": [TOOL], "tool_choice": "required"}, "tool_choice"),
        "parallel_tool_calls": (
            {"tools": [TOOL], "parallel_tool_calls": False},
            "parallel_tool_calls",
        ),
        "reasoning_effort": ({"reasoning_effort": "high"}, "reasoning_effort"),
        "thinking": ({"thinking": {"type": "enabled"}}, "thinking"),
        "enable_thinking": ({"enable_thinking": True}, "thinking"),
        "thinking_token_budget": ({"thinking_token_budget": 9}, "thinking_token_budget"),
        "chat_template_kwargs": (
            {"chat_template_kwargs": {"colour": "red"}},
            "chat_template_kwargs.colour",
        ),
        "chat_template_args": (
            {"chat_template_args": {"colour": "red"}},
            "chat_template_kwargs.colour",
        ),
        "documents": ({"documents": [{"text": "d"}]}, "documents"),
        "add_generation_prompt": ({"add_generation_prompt": False}, "add_generation_prompt"),
    },
    "messages": {
        "tools": ({"tools": [CLAUDE]}, "tools"),
        "tools[].strict": ({"tools": [CLAUDE | {"strict": True}]}, "tools[].strict"),
        "tool_choice": ({"tools": [CLAUDE], "tool_choice": {"type": "any"}}, "tool_choice"),
        "tool_choice.disable_parallel_tool_use": (
            {
                "tools": [CLAUDE],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            },
            "tool_choice.disable_parallel_tool_use",
        ),
        "thinking": ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        "thinking.budget_tokens": (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "thinking.budget_tokens",
        ),
        "output_config.effort": ({"output_config": {"effort": "high"}}, "output_config.effort"),
    },
    "responses": {
        "tools[].function": ({"tools": [FLAT]}, "tools"),
        "tools[].function.strict": (
            {"tools": [FLAT | {"strict": True}]},
            "tools[].function.strict",
        ),
        "tools[].custom": ({"tools": [{"type": "custom", "name": "f"}]}, "tools"),
        "tools[].namespace": (
            {"tools": [{"type": "namespace", "name": "n", "description": "", "tools": [FLAT]}]},
            "tools",
        ),
        "tool_choice": ({"tools": [FLAT], "tool_choice": "required"}, "tool_choice"),
        "parallel_tool_calls": (
            {"tools": [FLAT], "parallel_tool_calls": False},
            "parallel_tool_calls",
        ),
        "reasoning.effort": ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
    },
}
"""Protocol -> row -> what asks for it, and how the header names it."""
MODELS = ("hermes", "reads", "silent", "gramless", "textual", "closed")


class Gramless(ParserMaker):
    """Hermes, without a grammar for its calls."""

    def __init__(self, inner: ParserMaker) -> None:
        self.inner = inner
        self.reasoning_start, self.reasoning_end = inner.reasoning_start, inner.reasoning_end

    def parser(self, setup: ParserSetup) -> Parser:
        return self.inner.parser(setup)


def gramless() -> ParserMaker:
    return Gramless(Host().parsers.build("hermes", {}, lone_services(), "test"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalClient]:
    """hermes: a family whole. reads: a template that reads all. silent: one that reads nothing,
    and no calls are read. gramless: calls, but no grammar for them. textual: tools are shown, and
    calls are text. closed: the answer's beginning cannot be left out."""
    folder = tmp_path_factory.mktemp("templates")
    used = {}
    for name, source in (("silent", SILENT), ("reads", READS)):
        (folder / name).write_text(source)
        used[name] = PluginUse("jinja", {"path": str(folder / name)})
    with serving(
        model("hermes", dialect="hermes"),
        model("reads", dialect="hermes", chat_template=used["reads"]),
        model("silent", dialect="plain", chat_template=used["silent"]),
        model(
            "gramless",
            dialect="hermes",
            parser=PluginUse("gramless"),
            chat_template=used["reads"],
        ),
        model("textual", dialect="plain", chat_template=used["reads"]),
        model("closed", dialect="harmony"),
        plugins=[factory("gramless", lambda settings, services: gramless())],
        kind="parsers",
    ) as (client, _):
        yield client


def test_every_row_that_needs_a_dialect_is_asked_for() -> None:
    codecs = Host().codecs
    for protocol in codecs:
        fields = codecs.build(protocol, {}, lone_services()).fields
        rows = {rule.name for rule in fields if any(n.startswith(DIALECT) for n in rule.needs)}
        assert rows == set(ASKED.get(protocol, {}))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("protocol", "row"), [(protocol, row) for protocol in ASKED for row in ASKED[protocol]]
)
def test_table_and_header_agree(client: LocalClient, name: str, protocol: str, row: str) -> None:
    table: Any = client.send(HttpRequest("GET", f"/v1/capabilities/{name}")).json()
    said = table["protocols"][protocol][row]
    path, least = LEAST[protocol]
    given, listed = ASKED[protocol][row]
    if name == "closed" and "colour" in listed:  # Its template is code, with a name of its own.
        given, listed = {row: {"model_identity": "x"}}, "chat_template_kwargs.model_identity"
    response = client.post(path, {"model": name, **least, **given})
    if said["how"] == "refused":
        assert response.status == 400
        assert row.encode() in response.body
        return
    assert response.status == 200, response.body
    is_listed = listed in response.headers.get(HEADER, "").split(", ")
    assert is_listed is (said["how"] == "ignored"), said


def test_what_each_model_lacks(client: LocalClient) -> None:
    tables: Any = client.send(HttpRequest("GET", "/v1/capabilities")).json()
    lacks = {
        each["id"]: {
            need.removeprefix(DIALECT)
            for fields in each["protocols"].values()
            for field in fields.values()
            for need in field.get("lacks", ())
            if need.startswith(DIALECT)
        }
        for each in tables["data"]
    }
    args = {"documents", "template_args", "reasoning_effort"}
    assert lacks["hermes"] == args
    assert lacks["reads"] == set()
    assert lacks["gramless"] == {"call_grammar"}
    assert lacks["textual"] == {"tools", "calls", "call_grammar", "reasoning_block"}
    assert lacks["silent"] == lacks["textual"] | args | {"thinking"}
    assert lacks["closed"] == {"documents", "open_end"}


def test_a_rendered_request_lists_them_too(client: LocalClient) -> None:
    body = {"model": "silent", "messages": HI, "tools": [TOOL], "documents": [{"text": "d"}]}
    for name, listed in (("silent", ["documents", "tools"]), ("reads", [])):
        rendered: Any = client.post("/render", body | {"model": name}).json()
        assert rendered["ignored"] == listed
