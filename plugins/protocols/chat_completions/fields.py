"""What becomes of each field of a Chat Completions request: the protocol's capability table."""

from __future__ import annotations

from typing import Final

from tokenwire.core.field_rule import FieldRule
from tokenwire.plugins.protocols._shared.answer_shape import SHAPE_FIELDS

__all__ = ("FIELDS",)

TAGS: Final = ("grammar:structural_tag", "dialect:call_grammar")

FIELDS: Final = (
    FieldRule("model", "used", "a model's name or alias"),
    FieldRule("messages", "used", "roles system, developer, user, assistant, tool, function"),
    FieldRule("messages[].name", "used", "for templates that write names"),
    FieldRule("messages[].tool_calls", "used", "functions and custom tools, arguments as written"),
    FieldRule("messages[].reasoning_content", "used", "thinking of an earlier answer"),
    FieldRule("messages[].reasoning", "used", "its other name, which gives way to it"),
    FieldRule("messages[].refusal", "used", "as text, where there is no other"),
    FieldRule("messages[].function_call", "emulated", "as a tool call; what tool_calls replaced"),
    FieldRule("messages[].content[].image_url", "refused", "unless the model takes pictures"),
    FieldRule("messages[].content[].input_audio", "refused", "unless the model takes recordings"),
    FieldRule("messages[].content[].file", "refused", "unless the model takes files"),
    # Sampling.
    FieldRule("temperature", "used", "0 to 2"),
    FieldRule("top_p", "used", "above 0, to 1"),
    FieldRule("top_k", "used", "-1 and 0: no limit"),
    FieldRule("min_p", "used", "0 to 1", ("min_p",)),
    FieldRule("frequency_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("presence_penalty", "used", "-2 to 2", ("penalties",)),
    FieldRule("repetition_penalty", "used", "above 0"),
    FieldRule("seed", "used", "64 bits", ("seed",)),
    FieldRule("logit_bias", "used", "token ids to -100 to 100", ("logit_bias",)),
    FieldRule("allowed_token_ids", "used", "no other is chosen", ("allowed_ids",)),
    FieldRule(
        "bad_words",
        "emulated",
        "their tokens are biased out; listed where a word of several tokens is left",
        ("logit_bias",),
    ),
    FieldRule("use_beam_search", "ignored", "answers are sampled"),
    FieldRule("length_penalty", "ignored", "answers are sampled"),
    # Stopping.
    FieldRule("max_completion_tokens", "used", "lowered to what the context leaves"),
    FieldRule("max_tokens", "used", "its older name, which gives way to it"),
    FieldRule("min_tokens", "used", "before them nothing stops"),
    FieldRule("stop", "used", "a string or at most 64; none may be empty"),
    FieldRule("stop_token_ids", "used", "ids that end an answer"),
    FieldRule("ignore_eos", "used", "go on where the model would end"),
    FieldRule("include_stop_str_in_output", "used", "leave the stop string in the answer"),
    FieldRule("no_stop_trim", "used", "another name of include_stop_str_in_output"),
    FieldRule("truncate_prompt_tokens", "used", "its last tokens are kept; -1: those that fit"),
    # Output.
    FieldRule("n", "used", "1 to 128"),
    FieldRule("logprobs", "used", "with bytes; of the visible answer", ("logprobs",), "refused"),
    FieldRule("top_logprobs", "used", "0 to 20; needs logprobs"),
    FieldRule(
        "prompt_logprobs",
        "used",
        "0 to 20; with the whole answer, or the first chunk",
        ("logprobs", "prompt_logprobs"),
        "refused",
    ),
    FieldRule("logprob_token_ids", "used", "among top_logprobs; needs logprobs"),
    FieldRule("return_token_ids", "used", "the prompt's, and all that were generated"),
    FieldRule("echo", "used", "the text of an assistant's message at the end comes first"),
    FieldRule("stream", "used", "server-sent events"),
    FieldRule("stream_options.include_usage", "used", "a last chunk with the usage"),
    FieldRule("stream_options.continuous_usage_stats", "used", "the usage so far in every chunk"),
    FieldRule("stream_options.include_obfuscation", "ignored", "no padding is sent"),
    FieldRule("modalities", "refused", "but for text, which answers are"),
    FieldRule("audio", "ignored", "answers are text"),
    FieldRule("skip_special_tokens", "ignored", "special tokens are never text of an answer"),
    FieldRule("spaces_between_special_tokens", "ignored", "there are none to put spaces between"),
    FieldRule("include_reasoning", "used", "false: thinking is counted, and not sent"),
    FieldRule("separate_reasoning", "used", "false: thinking is content, between its markers"),
    FieldRule("stream_reasoning", "used", "false: a stream has thinking in one piece"),
    # The answer's shape.
    *SHAPE_FIELDS,
    # Tools.
    FieldRule("tools", "used", "functions and custom tools", ("dialect:tools",)),
    FieldRule("tools[].custom.format", "emulated", "a grammar is told to the model in words"),
    FieldRule("tools[].function.strict", "used", "arguments keep to the schema", TAGS),
    FieldRule(
        "tool_choice",
        "used",
        "auto, none, required, one named, an allowed set; without a grammar only the tools that may"
        " be called are offered, and that one must be is listed",
        TAGS,
    ),
    FieldRule(
        "parallel_tool_calls",
        "emulated",
        "false: what follows the first call is left out",
        ("dialect:calls",),
    ),
    FieldRule("functions", "refused", "send tools"),
    FieldRule("function_call", "refused", "send tool_choice"),
    # Reasoning and the template.
    FieldRule(
        "reasoning_effort",
        "used",
        "none turns thinking off, whether or not the template reads it",
        ("dialect:reasoning_effort",),
    ),
    FieldRule(
        "thinking",
        "used",
        "true or false, or an object with type and budget_tokens",
        ("dialect:thinking",),
    ),
    FieldRule("enable_thinking", "used", "where thinking is not set", ("dialect:thinking",)),
    FieldRule(
        "thinking_token_budget",
        "used",
        "thinking is ended after so many tokens",
        ("reasoning_budget", "dialect:reasoning_block"),
    ),
    FieldRule("chat_template", "refused", "a template is code; the model's own is used"),
    FieldRule(
        "chat_template_kwargs",
        "used",
        "variables of the template, but its own; those that it does not read are listed",
        ("dialect:template_args",),
    ),
    FieldRule(
        "chat_template_args",
        "used",
        "another name of chat_template_kwargs",
        ("dialect:template_args",),
    ),
    FieldRule("documents", "used", "retrieved texts", ("dialect:documents",)),
    FieldRule(
        "add_generation_prompt",
        "used",
        "false: the prompt ends with the last message",
        ("dialect:open_end",),
        "refused",
    ),
    FieldRule("continue_final_message", "used", "the last message is a beginning of the answer"),
    # Who asks, and what may help.
    FieldRule("user", "used", "the user; it never decides the tenant"),
    FieldRule("safety_identifier", "used", "its newer name, which gives way to it"),
    FieldRule("session_id", "used", "the session"),
    FieldRule("prompt_cache_key", "used", "the session, where session_id is not set"),
    FieldRule("prompt_cache_retention", "ignored", "what is cached is kept as long as it fits"),
    FieldRule("cache_salt", "used", "keeps cached prefixes apart"),
    FieldRule("priority", "used", "a larger number is more urgent", ("priority",), "used"),
    FieldRule("service_tier", "ignored", "there is one"),
    FieldRule("store", "ignored", "nothing is stored"),
    FieldRule("metadata", "ignored", "nothing is stored"),
    FieldRule("prediction", "ignored", "answers are not compared with it"),
    FieldRule("verbosity", "ignored", "say it in words"),
    FieldRule("web_search_options", "ignored", "nothing is searched"),
)
