"""What becomes of each field of a Responses request: the capability table. No code."""

from __future__ import annotations

from typing import Final

from tokenwire.core.field_rule import FieldRule, How

__all__ = ("FIELDS",)

TAGS: Final = ("grammar:structural_tag", "dialect:call_grammar")
TOOLS: Final = ("dialect:tools",)

ROWS: Final[tuple[tuple[str, How, str], ...]] = (
    ("model", "used", "a model's name or alias"),
    ("input", "used", "a string, or items"),
    ("input[].message", "used", "roles user, system, developer and assistant"),
    ("input[].content[].input_text", "used", ""),
    ("input[].content[].output_text", "used", "of an earlier answer"),
    ("input[].content[].output_text.annotations", "used", "taken back, without effect"),
    ("input[].content[].refusal", "used", "as text"),
    ("input[].content[].input_image", "refused", "unless the model takes pictures"),
    ("input[].content[].input_file", "refused", "unless it is text, or the model takes files"),
    ("input[].content[].input_audio", "refused", "unless the model takes recordings"),
    ("input[].content[].file_id", "refused", "there are no uploaded files: send the data"),
    ("input[].function_call", "used", "arguments as written"),
    ("input[].function_call_output", "used", "a string or a list of parts"),
    ("input[].custom_tool_call", "emulated", "shown to the model as a call with one string"),
    ("input[].custom_tool_call_output", "used", "a string or a list of parts"),
    ("input[].reasoning", "used", "its content, else what we sealed, else its summary"),
    ("input[].reasoning.encrypted_content", "used", "opens for its own tenant and model alone"),
    ("input[].item_reference", "used", "to an item of a stored response"),
    ("input[].additional_tools", "used", "as tools, from there on"),
    ("input[].tool_search_call", "used", "of execution client; else ignored, and kept"),
    (
        "input[].tool_search_output",
        "used",
        "of execution client: the names found are shown, and the tools offered from there on; else"
        " ignored, and kept",
    ),
    ("input[].web_search_call", "ignored", "as are all items of hosted tools: they are kept"),
    ("instructions", "used", "a system turn before all; those of earlier responses do not stay"),
    ("previous_response_id", "used", "a stored response of the same tenant"),
    ("conversation", "used", "its items come first; input and answer are added to it"),
    ("store", "used", "true where it is not given"),
    ("background", "used", "made whether or not the client stays; needs store"),
    ("stream", "used", ""),
    ("stream_options.include_obfuscation", "ignored", "nothing is padded"),
    ("include.reasoning.encrypted_content", "used", "reasoning items are sent sealed, too"),
    ("include.file_search_call.results", "ignored", "of a hosted tool"),
    ("include.web_search_call.results", "ignored", "of a hosted tool"),
    ("include.web_search_call.action.sources", "ignored", "of a hosted tool"),
    ("include.code_interpreter_call.outputs", "ignored", "of a hosted tool"),
    ("include.computer_call_output.output.image_url", "ignored", "of a hosted tool"),
    ("include.message.input_image.image_url", "ignored", "items are kept as they came"),
    ("max_output_tokens", "used", "reasoning counts; bounded by the context"),
    ("max_tool_calls", "used", "counts calls of hosted tools, and none are run: never reached"),
    ("temperature", "used", "0 to 2"),
    ("top_p", "used", "above 0, to 1"),
    ("tools[].custom.format", "emulated", "a grammar is told to the model in words"),
    ("tools[].namespace.description", "ignored", "its tools say what they do"),
    (
        "tools[].tool_search",
        "used",
        "of execution client: a function to the model, answered with tool_search_call; else ignored"
        " as are all hosted tools",
    ),
    (
        "tools[].defer_loading",
        "used",
        "beside tool_search of execution client: told once it is found; else ignored, and told",
    ),
    ("tools[].web_search", "ignored", "as are all hosted tools: left out of the prompt"),
    ("tool_choice.web_search_preview", "refused", "as are all hosted tools: none are run"),
    ("reasoning.summary", "emulated", "the reasoning itself is sent as its summary"),
    ("reasoning.generate_summary", "emulated", "the older name of summary"),
    ("reasoning.context", "ignored", "which reasoning is shown again is the template's habit"),
    ("reasoning.mode", "ignored", ""),
    ("text.format.description", "ignored", "the schema itself is what the model is held to"),
    ("text.verbosity", "ignored", "models have no such switch"),
    ("truncation", "used", "auto leaves out the oldest items where they do not fit"),
    ("metadata", "used", "16 pairs, keys to 64, values to 512 characters"),
    ("service_tier", "emulated", "priority is more urgent in the queue, flex is less"),
    ("prompt_cache_key", "used", "which requests are of one session"),
    ("prompt_cache_retention", "ignored", ""),
    ("prompt_cache_options", "ignored", ""),
    ("safety_identifier", "used", "told to observers as the user"),
    ("user", "used", "its older name, which gives way to it"),
    ("prompt", "refused", "templates of prompts are kept by OpenAI: send the text"),
    ("access_programs", "ignored", ""),
    ("background_options", "ignored", ""),
    ("context_management", "ignored", "nothing is compacted"),
    ("image", "ignored", ""),
    ("moderation", "ignored", ""),
    ("personality", "ignored", ""),
)

FIELDS: Final = (
    *(FieldRule(name, how, what) for name, how, what in ROWS),
    FieldRule(
        "include.message.output_text.logprobs", "used", needs=("logprobs",), otherwise="refused"
    ),
    FieldRule("top_logprobs", "used", "0 to 20", needs=("logprobs",), otherwise="refused"),
    FieldRule("text.format.json_object", "used", needs=("grammar:structural_tag",)),
    FieldRule("text.format.json_schema", "used", needs=("grammar:structural_tag",)),
    FieldRule(
        "tool_choice",
        "used",
        "none, required, a function or custom tool, allowed_tools; without a grammar only the tools"
        " that may be called are offered, and that one must be is listed",
        needs=TAGS,
    ),
    FieldRule("tools[].function.strict", "used", needs=TAGS),
    FieldRule("tools[].function", "used", needs=TOOLS),
    FieldRule(
        "tools[].custom", "emulated", "a function with one string; its calls are plain text", TOOLS
    ),
    FieldRule("tools[].namespace", "used", "its tools, named NAMESPACE__NAME to the model", TOOLS),
    FieldRule(
        "parallel_tool_calls",
        "used",
        "false: the answer ends with its first call",
        ("dialect:calls",),
    ),
    FieldRule(
        "reasoning.effort",
        "used",
        "none turns reasoning off, whether or not the template reads it",
        ("dialect:reasoning_effort",),
    ),
)
