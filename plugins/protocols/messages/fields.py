"""What becomes of each field of a Messages request: the protocol's capability table."""

from __future__ import annotations

from typing import Final

from tokenwire.core.field_rule import FieldRule

__all__ = ("FIELDS",)

TAGS: Final = ("grammar:structural_tag", "dialect:call_grammar")
BLOCK: Final = "messages[].content[]"

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias"),
    FieldRule(
        "messages",
        "used",
        "roles user, assistant, system; neighbours of one role are one turn; an assistant message"
        " at the end is a beginning of the answer",
    ),
    FieldRule("max_tokens", "used", "needed, but not to count; lowered to what the context leaves"),
    FieldRule("system", "used", "text or text blocks; the first turn"),
    FieldRule(
        "system.x-anthropic-billing-header",
        "ignored",
        "a line at the start of a system block, other in every request: it is dropped, so that"
        " prefixes are found in the cache; plugins.messages.billing_header: keep leaves it",
    ),
    # Blocks.
    FieldRule(f"{BLOCK}.text", "used"),
    FieldRule(f"{BLOCK}.text.citations", "ignored", "of an earlier answer; not for the model"),
    FieldRule(f"{BLOCK}.image", "refused", "unless the model takes pictures; base64 or url"),
    FieldRule(f"{BLOCK}.document", "used", "text and content, under its title"),
    FieldRule(f"{BLOCK}.document.base64", "refused", "unless the model takes files"),
    FieldRule(f"{BLOCK}.document.url", "refused", "unless the model takes files"),
    FieldRule(f"{BLOCK}.document.file", "refused", "no files are kept: send the bytes"),
    FieldRule(f"{BLOCK}.document.citations", "ignored", "answers cite nothing"),
    FieldRule(f"{BLOCK}.search_result", "emulated", "as a document: its title and text"),
    FieldRule(f"{BLOCK}.tool_use", "used", "in assistant messages; its input as written"),
    FieldRule(f"{BLOCK}.tool_result", "used", "text and blocks; the tool's name by its id"),
    FieldRule(f"{BLOCK}.tool_result.tool_reference", "emulated", "as text: the tool's name"),
    FieldRule(f"{BLOCK}.tool_result.is_error", "ignored", "kept; no template has a place for it"),
    FieldRule(f"{BLOCK}.thinking", "used", "goes to the template's reasoning"),
    FieldRule(f"{BLOCK}.thinking.signature", "used", "one that is not ours is listed"),
    FieldRule(f"{BLOCK}.redacted_thinking", "used", "opened where we sealed it; else listed"),
    FieldRule(f"{BLOCK}.cache_control", "used", "the prefix up to there is to be kept"),
    FieldRule(f"{BLOCK}[type=server_tool_use]", "ignored", "as every block of a kind not here"),
    # Sampling and stopping.
    FieldRule("temperature", "used", "0 to 2 (the protocol's own servers stop at 1)"),
    FieldRule("top_p", "used", "0 to 1; 0 leaves one token"),
    FieldRule("top_k", "used", "0: no limit"),
    FieldRule("stop_sequences", "used", "none may be empty; the one that matched is echoed"),
    FieldRule("stream", "used", "server-sent events"),
    # Thinking.
    FieldRule("thinking", "used", "enabled, adaptive, disabled", ("dialect:thinking",)),
    FieldRule(
        "thinking.budget_tokens",
        "used",
        "1024 or more, and under max_tokens; thinking is ended after so many tokens",
        ("reasoning_budget", "dialect:reasoning_block"),
    ),
    FieldRule("thinking.display", "used", "omitted: thinking is sealed in its signature"),
    FieldRule("thinking.type=between_tools", "emulated", "by disabled, and listed"),
    # Tools.
    FieldRule(
        "tools",
        "used",
        "those with an input_schema; names must be unique",
        ("dialect:tools",),
    ),
    FieldRule("tools[].strict", "used", "arguments keep to the schema", TAGS),
    FieldRule("tools[].cache_control", "used", "the prefix up to the tool is to be kept"),
    FieldRule("tools[].eager_input_streaming", "emulated", "arguments always stream as written"),
    FieldRule("tools[].defer_loading", "ignored", "tools are always offered"),
    FieldRule("tools[].input_examples", "ignored", "say it in the description"),
    FieldRule("tools[].allowed_callers", "ignored", "there is one caller"),
    FieldRule("tools[][type=web_search_20250305]", "ignored", "as every tool without a schema"),
    FieldRule(
        "tool_choice",
        "used",
        "auto, any, tool, none; without a grammar only a named tool is offered, and that one must"
        " be called is listed",
        TAGS,
    ),
    FieldRule(
        "tool_choice.disable_parallel_tool_use",
        "emulated",
        "what follows the first call is left out",
        ("dialect:calls",),
    ),
    # The answer's shape.
    FieldRule("output_config.effort", "used", needs=("dialect:reasoning_effort",)),
    FieldRule("output_config.format", "used", "a json_schema", ("grammar:json_schema",)),
    FieldRule("output_config.task_budget", "ignored"),
    FieldRule("output_format", "used", "its older place", ("grammar:json_schema",)),
    # Who asks, and what may help.
    FieldRule("metadata.user_id", "used", "the user; it never decides the tenant"),
    FieldRule("cache_control", "used", "stands for one on the last block"),
    FieldRule(
        "anthropic-beta",
        "used",
        "a header: interleaved-thinking-... lets a budget pass max_tokens, redact-thinking-..."
        " seals thinking; other flags are listed, each by name",
    ),
    FieldRule("service_tier", "ignored", "there is one"),
    FieldRule("container", "ignored", "nothing is run"),
    FieldRule("mcp_servers", "ignored", "nothing is called"),
    FieldRule("context_management", "ignored", "nothing is cleared"),
    FieldRule("inference_geo", "ignored", "there is one place"),
    FieldRule("speed", "ignored", "there is one"),
)
