"""Responses: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "f", "parameters": SCHEMA}
CUSTOM = {"type": "custom", "name": "patch"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"'}
SHAPE = {"type": "json_schema", "name": "s", "schema": SCHEMA}
SEARCH = {"type": "tool_search", "execution": "client", "parameters": SCHEMA}
SEARCHED = {"call_id": "c", "execution": "client"}
NAMESPACE = {"type": "namespace", "name": "port", "description": "", "tools": [TOOL]}
IN_PROMPTS = "tests/flow/responses/test_prompts.py::"
IN_STORED = "tests/flow/responses/test_stored.py::"
IN_TALKS = "tests/flow/responses/test_conversations.py::"
IN_BACKGROUND = "tests/flow/responses/test_background.py::"
LACKING = {"lacking": "text.format"}


def one(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, **more)


def inside(outer: str, inner: str, value: Any, **more: Any) -> Example:
    return Example({outer: {inner: value}}, **more)


def item(**fields: Any) -> Example:
    """Such an item behind a question."""
    return Example({"input": [ASKED, fields]}, instead={"input": [ASKED]})


def part(**fields: Any) -> Example:
    return Example({"input": [{"role": "user", "content": [SAID, fields]}]}, instead=SAYING)


def called(kind: str, field: str, **more: Any) -> list[dict[str, Any]]:
    return [
        ASKED,
        {"type": kind, "call_id": "c", "name": "f", field: "{}"},
        {"type": f"{kind}_output", "call_id": "c", "output": "r", **more},
    ]


def results(kind: str, field: str) -> Example:
    first, second = called(kind, field), called(kind, field, output="s")
    return Example({"input": second}, instead={"input": first})


def include(name: str, **more: Any) -> Example:
    return one("include", [name], named=f"include.{name}", **more)


def said(**fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "a", **fields}]
    return {"role": "assistant", "content": content}


ASKED = {"role": "user", "content": "hi"}
SEARCHING = [ASKED, {"type": "tool_search_call", "arguments": {"a": "b"}, **SEARCHED}]
SAID = {"type": "input_text", "text": "a"}
SAYING = {"input": [{"role": "user", "content": [SAID]}]}
TOOLS = {"tools": [TOOL], "max_output_tokens": 90}

EXAMPLES = Examples(
    "/v1/responses",
    {"model": "m", "input": "hi", "max_output_tokens": 8},
    {
        "model": one("model", "other"),
        "input": one("input", "ho"),
        "input[].message": item(role="developer", content="Be brief."),
        "input[].content[].input_text": part(type="input_text", text="b"),
        "input[].content[].output_text": Example(
            {"input": [ASKED, said(), ASKED]}, instead={"input": [ASKED, said(text="b"), ASKED]}
        ),
        "input[].content[].output_text.annotations": Example(
            {}, elsewhere="tests/cases/requests.py::responses"
        ),
        "input[].content[].refusal": part(type="refusal", refusal="no"),
        "input[].content[].input_image": part(
            type="input_image", image_url="data:image/png;base64,AAAA"
        ),
        "input[].content[].input_file": part(
            type="input_file", file_data="data:application/pdf;base64,AAAA"
        ),
        "input[].content[].input_audio": part(
            type="input_audio", input_audio={"data": "AAAA", "format": "wav"}
        ),
        "input[].content[].file_id": part(type="input_file", file_id="file-1"),
        "input[].function_call": item(type="function_call", call_id="c", name="f", arguments="{}"),
        "input[].function_call_output": results("function_call", "arguments"),
        "input[].custom_tool_call": item(type="custom_tool_call", call_id="c", name="f", input="a"),
        "input[].custom_tool_call_output": results("custom_tool_call", "input"),
        "input[].reasoning": item(
            type="reasoning", summary=[], content=[{"type": "reasoning_text", "text": "so"}]
        ),
        "input[].reasoning.encrypted_content": Example(
            {},
            elsewhere=f"{IN_PROMPTS}test_sealed_reasoning_comes_back_into_the_prompt",
        ),
        "input[].item_reference": Example(
            {}, elsewhere=f"{IN_STORED}test_an_item_stands_for_one_of_a_stored_response"
        ),
        "input[].additional_tools": item(
            type="additional_tools", role="developer", tools=[NAMESPACE]
        ),
        "input[].tool_search_call": item(type="tool_search_call", arguments={"a": "b"}, **SEARCHED),
        "input[].tool_search_output": Example(
            {"input": [*SEARCHING, {"type": "tool_search_output", "tools": [TOOL], **SEARCHED}]},
            instead={"input": SEARCHING},
        ),
        "input[].web_search_call": item(type="web_search_call", id="ws_1", status="completed"),
        "instructions": one("instructions", "Be brief."),
        "previous_response_id": Example(
            {},
            elsewhere=f"{IN_STORED}test_the_next_request_goes_on_and_instructions_do_not_stay",
        ),
        "conversation": Example(
            {},
            elsewhere=f"{IN_TALKS}test_a_conversation_grows_by_question_and_answer",
        ),
        "store": Example({}, elsewhere=f"{IN_STORED}test_what_is_not_to_be_stored_is_not"),
        "background": Example(
            {},
            elsewhere=f"{IN_BACKGROUND}test_an_answer_in_the_background_is_made_without_anybody",
        ),
        "stream": one("stream", True),
        "stream_options.include_obfuscation": inside(
            "stream_options", "include_obfuscation", True, beside={"stream": True}
        ),
        "include.reasoning.encrypted_content": Example(
            {},
            elsewhere=f"{IN_PROMPTS}test_sealed_reasoning_comes_back_into_the_prompt",
        ),
        **{
            f"include.{name}": include(name)
            for name in (
                "file_search_call.results",
                "web_search_call.results",
                "web_search_call.action.sources",
                "code_interpreter_call.outputs",
                "computer_call_output.output.image_url",
                "message.input_image.image_url",
            )
        },
        "include.message.output_text.logprobs": include(
            "message.output_text.logprobs", lacking="logprobs"
        ),
        "top_logprobs": one("top_logprobs", 2, lacking="logprobs"),
        "max_output_tokens": one("max_output_tokens", 5),
        "max_tool_calls": one("max_tool_calls", 3),
        "temperature": one("temperature", 0.5),
        "top_p": one("top_p", 0.5),
        "tools[].function": one("tools", [TOOL]),
        "tools[].function.strict": Example(
            {"tools": [TOOL | {"strict": True}]},
            instead={"tools": [TOOL]},
        ),
        "tools[].custom": one("tools", [CUSTOM]),
        "tools[].custom.format": Example(
            {"tools": [CUSTOM | {"format": GRAMMAR}]}, instead={"tools": [CUSTOM]}
        ),
        "tools[].namespace": one("tools", [NAMESPACE]),
        "tools[].namespace.description": Example(
            {"tools": [NAMESPACE | {"description": "Of the harbour"}]},
            instead={"tools": [NAMESPACE]},
        ),
        "tools[].tool_search": one("tools", [SEARCH]),
        "tools[].defer_loading": Example(
            {"tools": [SEARCH, TOOL | {"defer_loading": True}]}, instead={"tools": [SEARCH, TOOL]}
        ),
        "tools[].web_search": one("tools", [{"type": "web_search"}]),
        "tool_choice": one("tool_choice", "required", beside=TOOLS),
        "tool_choice.web_search_preview": inside("tool_choice", "type", "web_search_preview"),
        "parallel_tool_calls": one(
            "parallel_tool_calls", False, beside={**TOOLS, "tool_choice": "required"}
        ),
        "reasoning.effort": inside("reasoning", "effort", "none"),
        "reasoning.summary": inside("reasoning", "summary", "auto"),
        "reasoning.generate_summary": inside("reasoning", "generate_summary", "auto"),
        "reasoning.context": inside("reasoning", "context", "all_turns"),
        "reasoning.mode": inside("reasoning", "mode", "pro"),
        "text.format.json_object": inside("text", "format", {"type": "json_object"}, **LACKING),
        "text.format.json_schema": inside("text", "format", SHAPE, **LACKING),
        "text.format.description": inside("text", "format", {"type": "text", "description": "d"}),
        "text.verbosity": inside("text", "verbosity", "low"),
        "truncation": Example(
            {},
            elsewhere=f"{IN_PROMPTS}test_the_oldest_items_are_left_out_where_that_is_asked_for",
        ),
        "metadata": one("metadata", {"a": "b"}),
        "service_tier": one("service_tier", "priority"),
        "prompt_cache_key": one("prompt_cache_key", "k"),
        "safety_identifier": one("safety_identifier", "u"),
        "user": one("user", "u"),
        "prompt": one("prompt", {"id": "pmpt_1"}),
        "prompt_cache_retention": one("prompt_cache_retention", "24h"),
        "prompt_cache_options": one("prompt_cache_options", {"mode": "implicit"}),
        "access_programs": one("access_programs", {"cyber": "standard"}),
        "background_options": one("background_options", {"completion_window": "soonest"}),
        "context_management": one("context_management", [{"type": "compaction"}]),
        "image": one("image", {"context_compression": "auto"}),
        "moderation": one("moderation", {"model": "m"}),
        "personality": one("personality", "friendly"),
    },
    volatile=("id", "created_at", "item_id", "call_id", "input_tokens_details"),
)
