"""The fields of a Chat Completions request that are read, with their ranges. No meaning, no output.

Every optional field takes null for "not set". Ranges are those of the OpenAI API reference, and of
vLLM's for the fields it added (top_k, min_p, repetition_penalty, min_tokens, stop_token_ids, ...).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Raw, Struct

from tokenwire.plugins.protocols._shared.answer_shape import RawShapes

__all__ = (
    "MESSAGE_FIELDS",
    "REQUEST_FIELDS",
    "AllowedTools",
    "CalledCustom",
    "CalledFunction",
    "CustomFormat",
    "CustomTool",
    "FileRef",
    "Function",
    "GrammarField",
    "ImageUrl",
    "InputAudio",
    "Message",
    "RawRequest",
    "Request",
    "StreamOptions",
    "Thinking",
    "Tool",
    "ToolCallField",
)

Json: TypeAlias = dict[str, object]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
TokenId: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class CalledFunction(Struct, frozen=True):
    name: Word
    arguments: str | Json | None = None


class CalledCustom(Struct, frozen=True):
    name: Word
    input: str = ""


class ToolCallField(Struct, frozen=True):
    """A call in an assistant message. `index` is what some clients copy from stream deltas."""

    id: Word
    type: Literal["function", "custom"] | None = None
    function: CalledFunction | None = None
    custom: CalledCustom | None = None
    index: int | None = None


class Message(Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Json] | None = None
    name: str | None = None
    tool_calls: list[ToolCallField] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    function_call: CalledFunction | None = None


class ImageUrl(Struct, frozen=True):
    url: Word
    detail: str | None = None


class InputAudio(Struct, frozen=True):
    data: Word
    format: Word


class FileRef(Struct, frozen=True):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class Function(Struct, frozen=True):
    name: Word
    description: str | None = None
    parameters: Json | bool | None = None
    strict: bool | None = None


class GrammarField(Struct, frozen=True):
    syntax: Literal["lark", "regex"]
    definition: str


class CustomFormat(Struct, frozen=True):
    """Of a custom tool's input; `grammar` where the type is so."""

    type: Literal["text", "grammar"]
    grammar: GrammarField | None = None


class CustomTool(Struct, frozen=True):
    name: Word
    description: str | None = None
    format: CustomFormat | None = None


class Tool(Struct, frozen=True):
    """Of a tool, what is known of every kind; a missing `type` means a function."""

    type: Word = "function"
    function: Function | None = None
    custom: CustomTool | None = None


class AllowedTools(Struct, frozen=True):
    mode: Literal["auto", "required"]
    tools: list[Tool]


class StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Thinking(Struct, frozen=True):
    """The object that DeepSeek, GLM and Kimi take."""

    type: Literal["enabled", "disabled", "adaptive", "auto"]
    budget_tokens: Count | None = None


class Request(Struct, frozen=True):
    model: Word
    messages: Annotated[list[Message], Meta(min_length=1)]
    # Sampling.
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=1000)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    allowed_token_ids: list[TokenId] | None = None
    bad_words: Annotated[list[Word], Meta(max_length=256)] | None = None
    # Stopping.
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    stop: str | Annotated[list[str], Meta(max_length=64)] | None = None
    stop_token_ids: list[TokenId] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    no_stop_trim: bool | None = None
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    # Output.
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    logprob_token_ids: Annotated[list[TokenId], Meta(max_length=128)] | None = None
    prompt_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    return_token_ids: bool | None = None
    echo: bool | None = None
    stream: bool | None = None
    stream_options: Json | None = None
    modalities: list[str] | None = None
    response_format: Json | None = None
    structured_outputs: Json | None = None
    guided_json: Json | str | None = None
    guided_regex: Word | None = None
    guided_choice: Annotated[list[str], Meta(min_length=1)] | None = None
    guided_grammar: Word | None = None
    regex: Word | None = None
    ebnf: Word | None = None
    include_reasoning: bool | None = None
    separate_reasoning: bool | None = None
    stream_reasoning: bool | None = None
    # Tools.
    tools: list[Json] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    functions: object = None
    function_call: object = None
    # Reasoning and the template.
    reasoning_effort: Effort | None = None
    thinking: bool | Json | None = None
    enable_thinking: bool | None = None
    thinking_token_budget: Count | None = None
    chat_template: object = None
    chat_template_kwargs: Json | None = None
    chat_template_args: Json | None = None
    documents: list[Json] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    # Who asks, and what may help.
    user: str | None = None
    safety_identifier: str | None = None
    session_id: str | None = None
    prompt_cache_key: str | None = None
    cache_salt: Word | None = None
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None


REQUEST_FIELDS: Final = frozenset(Request.__struct_fields__)
MESSAGE_FIELDS: Final = frozenset(Message.__struct_fields__)


class RawRequest(RawShapes, frozen=True):
    """The tools, too, as they were sent."""

    tools: list[dict[str, Raw]] | None = None
