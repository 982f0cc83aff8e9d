"""What a model or its engine refuses is said with the reason, and by the protocol's own names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flow.wired import PATHS, model, serving
from tokenwire.core.dialogue import Dialogue, ResponseFormat, ToolChoice, ToolSpec
from tokenwire.core.failures import constrained_field, constraint_error
from tokenwire.core.tokens import Constraint, Finish, FinishCause, FinishKind

SECRET = "the harbour is closed on Sundays"
LOST: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#/nowhere"}},
    "required": ["a"],
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": LOST}}
HI = [{"role": "user", "content": SECRET}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"} | LOST}}

SHAPES: list[tuple[str, dict[str, Any], str, str]] = [
    (PATHS["chat_completions"], {"messages": HI, "response_format": SCHEMA}, "response_format", ""),
    (
        PATHS["chat_completions"],
        {"messages": HI, "response_format": SCHEMA, "stream": True},
        "response_format",
        "",
    ),
    (
        PATHS["chat_completions"],
        {"messages": HI, "tools": [TOOL], "tool_choice": "required"},
        "tools",
        "structural_tag",
    ),
    (
        PATHS["messages"],
        {"messages": HI, "output_config": {"format": {"type": "json_schema", "schema": LOST}}},
        "output_config.format",
        "",
    ),
    (
        "/v1/responses",
        {"input": SECRET, "text": {"format": {"type": "json_schema", "name": "s", "schema": LOST}}},
        "text.format",
        "",
    ),
    ("/v1/completions", {"prompt": SECRET, "response_format": SCHEMA}, "response_format", ""),
]


@pytest.mark.parametrize(("path", "fields", "param", "kind"), SHAPES)
def test_a_shape_that_the_engine_cannot_keep_to(
    path: str, fields: dict[str, Any], param: str, kind: str
) -> None:
    limit = {"max_output_tokens": 99} if path == "/v1/responses" else {"max_tokens": 99}
    with serving(model(dialect="hermes")) as (client, _):
        response = client.post(path, {"model": "m", **limit, **fields})
    assert response.status == 400, response.body
    error = json.loads(response.body)["error"]
    assert (kind or "json_schema") in error["message"]
    assert param in error["message"]
    assert "'#/nowhere' leads nowhere" in error["message"]
    assert SECRET not in error["message"]
    if path != PATHS["messages"]:
        assert error["param"] == param
        assert error["code"] == "unsupported_constraint"


def finish(message: str, **more: Any) -> Finish:
    return Finish(FinishKind.ERROR, FinishCause.REFUSED, message=message, **more)


HELD = Constraint("regex", "(closed on Sundays)+")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a group is never closed", ": a group is never closed"),
        ("at 'the harbour is closed'", ""),
        ("at '(closed on Sundays)+'", ": at '(closed on Sundays)+'"),
        ("", ""),
        ("line\nbreak\x00\u00e9 end", ": line break end"),
        ("x" * 999, ": " + "x" * 200),
    ],
)
def test_a_reason_is_short_and_quotes_no_prompt(said: str, shown: str) -> None:
    error = constraint_error(finish(said), HELD, f"So {SECRET}.", "regex")
    assert error is not None
    assert error.message == (
        f"the model's engine refused the regex that regex holds the answer to{shown}"
    )


def test_what_is_for_the_moment_is_no_fault_of_the_constraint() -> None:
    assert constraint_error(finish("draining", retryable=True), HELD, "", "regex") is None
    lost = Finish(FinishKind.ERROR, FinishCause.LOST)
    assert constraint_error(lost, HELD, "", "regex") is None


def test_which_field_a_constraint_was_made_from() -> None:
    tools, shaped = (ToolSpec("f"),), ResponseFormat("json_object")
    for choice, wanted, field in (
        (ToolChoice(), shaped, "response_format"),
        (ToolChoice("required"), shaped, "tools"),
        (ToolChoice("allowed", ("f",), required=True), shaped, "tools"),
        (ToolChoice("none"), shaped, "response_format"),
        (ToolChoice(), ResponseFormat(), "tools"),
    ):
        dialogue = Dialogue((), tools=tools, tool_choice=choice, response_format=wanted)
        assert constrained_field(dialogue) == field
    assert constrained_field(Dialogue((), response_format=shaped)) == "response_format"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"sampling": {"logit_bias": {"9999": 1}}}, "sampling.logit_bias"),
        ({"sampling": {"allowed_ids": [9999]}}, "sampling.allowed_ids"),
        ({"stopping": {"stop_ids": [9999]}}, "stopping.stop_ids"),
        ({"stopping": {"sequences": [[9999]]}}, "stopping.sequences"),
        ({"prompt": [65] * 9000}, "prompt"),
    ],
)
def test_generate_names_its_own_fields(fields: dict[str, Any], param: str) -> None:
    with serving(model()) as (client, _):
        response = client.post("/v1/generate", {"prompt": [65], **fields})
    assert response.status == 400, response.body
    error = json.loads(response.body)["error"]
    assert error["param"] == param
    if "." in param:
        assert error["message"].startswith(f"{param}: ")


def test_generate_lists_its_own_fields() -> None:
    with serving(model(settings={"without": ["min_p", "seed"]})) as (client, _):
        asked = {"prompt": [65], "sampling": {"min_p": 0.5, "seed": 1}}
        listed = client.post("/v1/generate", asked).headers["x-tokenwire-ignored"]
    assert listed == "sampling.min_p, sampling.seed"
