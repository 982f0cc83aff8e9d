"""What becomes of each field of a Responses request: the capability table. No code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tokenwire.core.field_rule import FieldRule, How

__all__ = ("FIELDS",)

# name, how, what, capabilities that an engine must declare, what becomes of it otherwise
ROWS: Final[tuple[tuple[str, How, str], ...]] = (
    ("model", "used", "Which model answers."),
    ("input", "used", "A string, or items."),
    ("input[].message", "used", "Roles user, system, developer and assistant."),
    ("input[].content[].input_text", "used", ""),
    ("input[].content[].output_text", "used", "Of an earlier answer; annotations have no effect."),
    ("input[].content[].refusal", "used", "Read as text."),
    (
        "input[].content[].input_image",
        "used",
        "By URL or data URL, where the model takes pictures.",
    ),
    ("input[].content[].input_file", "used", "file_data or file_url; text files become text."),
    ("input[].content[].input_audio", "used", "Where the model takes recordings."),
    ("input[].content[].file_id", "refused", "There are no uploaded files: send the data."),
    ("input[].function_call", "used", "Arguments stay as they were written."),
    ("input[].function_call_output", "used", "A string or a list of parts."),
    ("input[].custom_tool_call", "used", "Shown to the model as a call with one string."),
    ("input[].custom_tool_call_output", "used", "A string or a list of parts."),
    ("input[].reasoning", "used", "Its content, else what we sealed, else its summary."),
    (
        "input[].reasoning.encrypted_content",
        "used",
        "Opens for the tenant and model it was made for; foreign ones are listed as ignored.",
    ),
    ("input[].item_reference", "used", "To an item of a stored response."),
    ("input[] of hosted tools", "ignored", "Kept in the history, not shown to the model."),
    ("instructions", "used", "A system turn before all; those of earlier responses do not stay."),
    ("previous_response_id", "used", "A stored response of the same tenant."),
    ("conversation", "used", "Its items come first; input and answer are added to it."),
    ("store", "used", "True where it is not given."),
    ("background", "used", "Made whether or not the client stays; needs store."),
    ("stream", "used", ""),
    (
        "stream_options.include_obfuscation",
        "ignored",
        "Events are not padded; false is what it is anyway.",
    ),
    ("include.reasoning.encrypted_content", "used", "Reasoning items are sent sealed, too."),
    ("include.*", "ignored", "All others are of hosted tools, or of pictures as they came."),
    ("max_output_tokens", "used", "Reasoning counts; the context bounds it."),
    ("max_tool_calls", "used", "Counts calls of hosted tools, and none are run: never reached."),
    ("temperature", "used", ""),
    ("top_p", "used", ""),
    ("tools[].function", "used", ""),
    ("tools[].function.strict", "used", "Held to its schema where the engine has grammars."),
    ("tools[].custom", "emulated", "A function with one string; read back as plain text."),
    ("tools[].custom.format", "emulated", "A grammar is told to the model in words."),
    ("tools[] of hosted kinds", "ignored", "Not run: left out of the prompt."),
    ("tool_choice", "used", "auto, none, required, a function or custom tool, allowed_tools."),
    ("tool_choice of hosted kinds", "refused", "They are not run."),
    ("parallel_tool_calls", "used", "False: the answer ends with its first call."),
    ("reasoning.effort", "used", "`none` turns reasoning off; else as the model knows it."),
    (
        "reasoning.summary",
        "emulated",
        "The reasoning itself is sent as its summary; without it, as reasoning_text.",
    ),
    ("reasoning.generate_summary", "emulated", "The older name of summary."),
    ("reasoning.context", "ignored", "Which reasoning is shown again is the template's habit."),
    ("reasoning.mode", "ignored", ""),
    ("text.verbosity", "ignored", "Models have no such switch."),
    ("truncation", "used", "auto leaves out the oldest items; disabled is 400 instead."),
    ("metadata", "used", "Kept and said back: 16 pairs, keys to 64, values to 512 characters."),
    ("service_tier", "emulated", "priority and flex are more and less urgent in the queue."),
    ("prompt_cache_key", "used", "Which requests are of one session, for routing."),
    ("prompt_cache_retention", "ignored", ""),
    ("prompt_cache_options", "ignored", ""),
    ("safety_identifier", "used", "Told to observers as the user."),
    ("user", "used", "The older name of safety_identifier."),
    ("prompt", "refused", "Templates of prompts are kept by OpenAI: send the text."),
    ("access_programs", "ignored", ""),
    ("background_options", "ignored", ""),
    ("context_management", "ignored", "Nothing is compacted."),
    ("image", "ignored", ""),
    ("moderation", "ignored", ""),
    ("personality", "ignored", ""),
)
ENGINES: Final = (
    FieldRule(
        "include.message.output_text.logprobs", "used", "", needs=("logprobs",), otherwise="refused"
    ),
    FieldRule("top_logprobs", "used", "0 to 20.", needs=("logprobs",), otherwise="refused"),
    FieldRule("text.format.json_object", "used", "", needs=("grammar:json_object",)),
    FieldRule("text.format.json_schema", "used", "", needs=("grammar:json_schema",)),
)


def _rules() -> Iterator[FieldRule]:
    for name, how, what in ROWS:
        yield FieldRule(name, how, what)
    yield from ENGINES


FIELDS: Final = tuple(_rules())
