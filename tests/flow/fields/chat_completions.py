"""Chat Completions: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples
from tests.flow.fields.shapes import SHAPES

__all__ = ("EXAMPLES",)

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
STRICT = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}
CUSTOM = {"type": "custom", "custom": {"name": "f"}}
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
SHAPED = {"type": "custom", "custom": {"name": "f", "format": GRAMMAR}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BEGUN = [USER, {"role": "assistant", "content": "a"}]
STREAM = {"stream": True}
TEMPLATE = "tests/flow/test_template_fields.py::test_what_is_for_the_template_gets_there"
HIDDEN = "tests/flow/test_template_fields.py::test_thinking_that_is_not_to_be_sent"
INLINE = "tests/flow/test_token_reports.py::test_reasoning_in_the_content"
WHOLE = "tests/flow/test_token_reports.py::test_reasoning_in_one_piece"


def one(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, **more)


def said(**message: Any) -> Example:
    """An assistant message with something beside its text."""
    plain = {"role": "assistant", "content": "a"}
    turns = [[USER, {**plain, **each}, USER] for each in ({}, message)]
    return Example({"messages": turns[1]}, instead={"messages": turns[0]})


def part(kind: str, value: Any) -> Example:
    content = [{"type": kind, kind: value}]
    return Example({"messages": [{"role": "user", "content": content}]})


PNG = "data:image/png;base64,iVBORw0KGgo="

EXAMPLES = Examples(
    "/v1/chat/completions",
    {"model": "m", "messages": [USER], "max_tokens": 8},
    {
        "model": one("model", "other"),
        "messages": one("messages", [{"role": "user", "content": "ho"}]),
        "messages[].name": one("messages", [], elsewhere=TEMPLATE),
        "messages[].tool_calls": said(tool_calls=[CALL]),
        "messages[].reasoning_content": one("messages", [], elsewhere=TEMPLATE),
        "messages[].reasoning": one("messages", [], elsewhere=TEMPLATE),
        "messages[].refusal": said(content=None, refusal="no"),
        "messages[].function_call": said(function_call={"name": "f", "arguments": "{}"}),
        "messages[].content[].image_url": part("image_url", {"url": PNG}),
        "messages[].content[].input_audio": part("input_audio", {"data": "AAAA", "format": "wav"}),
        "messages[].content[].file": part("file", {"file_data": "AAAA", "filename": "a"}),
        "temperature": one("temperature", 0),
        "top_p": one("top_p", 0.5),
        "top_k": one("top_k", 5),
        "min_p": one("min_p", 0.1),
        "frequency_penalty": one("frequency_penalty", 0.5),
        "presence_penalty": one("presence_penalty", 0.5),
        "repetition_penalty": one("repetition_penalty", 1.5),
        "seed": one("seed", 2),
        "logit_bias": one("logit_bias", {"65": 3}),
        "allowed_token_ids": one("allowed_token_ids", [65, 66]),
        "bad_words": one("bad_words", ["x"]),
        "use_beam_search": one("use_beam_search", True),
        "length_penalty": one("length_penalty", 1.2),
        "max_completion_tokens": one("max_completion_tokens", 5),
        "max_tokens": one("max_tokens", 5),
        "min_tokens": one("min_tokens", 2),
        "stop": one("stop", "engine", beside={"max_tokens": 90}),
        "stop_token_ids": one("stop_token_ids", [65]),
        "ignore_eos": one("ignore_eos", True),
        "include_stop_str_in_output": one(
            "include_stop_str_in_output", True, beside={"stop": "engine", "max_tokens": 90}
        ),
        "no_stop_trim": one("no_stop_trim", True, beside={"stop": "engine", "max_tokens": 90}),
        "truncate_prompt_tokens": one("truncate_prompt_tokens", 5),
        "n": one("n", 2),
        "logprobs": one("logprobs", True),
        "top_logprobs": Example({"logprobs": True, "top_logprobs": 2}, instead={"logprobs": True}),
        "prompt_logprobs": one("prompt_logprobs", 1),
        "logprob_token_ids": one("logprob_token_ids", [65], beside={"logprobs": True}),
        "return_token_ids": one("return_token_ids", True),
        "echo": one("echo", True, beside={"messages": BEGUN, "continue_final_message": True}),
        "stream": one("stream", True),
        "stream_options.include_usage": Example(
            {"stream_options": {"include_usage": True}}, beside=STREAM
        ),
        "stream_options.continuous_usage_stats": Example(
            {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            beside=STREAM,
            instead={"stream_options": {"include_usage": True}},
        ),
        "stream_options.include_obfuscation": Example(
            {"stream_options": {"include_obfuscation": True}}, beside=STREAM
        ),
        "modalities": one("modalities", ["audio"]),
        "audio": one("audio", {"voice": "v", "format": "wav"}),
        "skip_special_tokens": one("skip_special_tokens", False),
        "spaces_between_special_tokens": one("spaces_between_special_tokens", False),
        "include_reasoning": one("include_reasoning", False, elsewhere=HIDDEN),
        "separate_reasoning": one("separate_reasoning", False, elsewhere=INLINE),
        "stream_reasoning": one("stream_reasoning", False, elsewhere=WHOLE),
        **SHAPES,
        "tools": one("tools", [TOOL]),
        "tools[].custom.format": Example({"tools": [SHAPED]}, instead={"tools": [CUSTOM]}),
        "tools[].function.strict": Example({"tools": [STRICT]}, instead={"tools": [TOOL]}),
        "tool_choice": one("tool_choice", "required", beside={"tools": [TOOL], "max_tokens": 90}),
        "parallel_tool_calls": one(
            "parallel_tool_calls", False, beside={"tools": [TOOL], "tool_choice": "required"}
        ),
        "functions": one("functions", [{"name": "f"}]),
        "function_call": one("function_call", "auto"),
        "reasoning_effort": one("reasoning_effort", "high", elsewhere=TEMPLATE),
        "thinking": one("thinking", {"type": "disabled"}),
        "enable_thinking": one("enable_thinking", False),
        "thinking_token_budget": one("thinking_token_budget", 9),
        "chat_template": one("chat_template", "{{ x }}"),
        "chat_template_kwargs": one("chat_template_kwargs", {"a": 1}, elsewhere=TEMPLATE),
        "chat_template_args": one("chat_template_args", {"a": 1}, elsewhere=TEMPLATE),
        "documents": one("documents", [{"text": "d"}], elsewhere=TEMPLATE),
        "add_generation_prompt": one("add_generation_prompt", False),
        "continue_final_message": one(
            "continue_final_message",
            True,
            beside={"messages": [USER, {"role": "assistant", "content": "a"}]},
        ),
        "user": one("user", "u"),
        "safety_identifier": one("safety_identifier", "u"),
        "session_id": one("session_id", "s"),
        "prompt_cache_key": one("prompt_cache_key", "s"),
        "prompt_cache_retention": one("prompt_cache_retention", "24h"),
        "cache_salt": one("cache_salt", "s"),
        "priority": one("priority", 3),
        "service_tier": one("service_tier", "auto"),
        "store": one("store", True),
        "metadata": one("metadata", {"a": "b"}),
        "prediction": one("prediction", {"type": "content", "content": "a"}),
        "verbosity": one("verbosity", "low"),
        "web_search_options": one("web_search_options", {}),
    },
    volatile=("id", "created", "cached_tokens"),
)
