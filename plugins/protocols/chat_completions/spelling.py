"""How a request was spelled where several spellings mean one thing, so that it can be written again
as it was. Knows no values: what a call says is written with these names, whatever it is by then."""

from __future__ import annotations

from typing import Final

from tokenwire.core.dialogue import Dialogue
from tokenwire.plugins.protocols.chat_completions.schema import Message, Request

__all__ = ("SPELLING", "names_of", "spelling_of", "unusual")

SPELLING: Final = "chat_completions"
"""Under this key a dialogue keeps it: {"names": {ours: theirs}, "messages": {index: {...}},
"tools": [[index, tool]]}, each only where there is something to say."""

ALIASES: Final = (
    ("max_completion_tokens", "max_tokens"),
    ("user", "safety_identifier"),
    ("session_id", "prompt_cache_key"),
    ("include_stop_str_in_output", "no_stop_trim"),
    ("chat_template_kwargs", "chat_template_args"),
    ("response_format", "structured_outputs"),
    ("response_format", "guided_json"),
    ("response_format", "guided_choice"),
    ("response_format", "guided_regex"),
    ("response_format", "regex"),
    ("response_format", "guided_grammar"),
    ("response_format", "ebnf"),
    ("thinking", "enable_thinking"),
)


def names_of(request: Request) -> dict[str, str]:
    """The fields that were given by another name than the one we write."""
    names: dict[str, str] = {}
    for ours, theirs in ALIASES:
        is_given = getattr(request, ours) is not None
        if not is_given and ours not in names and getattr(request, theirs) is not None:
            names[ours] = theirs
    if isinstance(request.thinking, bool):
        names["thinking"] = "switch"
    elif "thinking" not in names and request.reasoning_effort == "none":
        names["thinking"] = "effort"
    if isinstance(request.thinking, dict) and request.thinking.get("budget_tokens") is not None:
        names["budget"] = "thinking"
    if isinstance(request.stop, str):
        names["stop"] = "text"
    if request.documents is not None:
        names["documents"] = "documents"
    return names


def unusual(message: Message) -> dict[str, object]:
    """What of a message's spelling does not follow from its turn."""
    content = message.content
    if (
        (content is None or (content and type(content) is str))
        and message.reasoning is None
        and message.refusal is None
        and message.name is None
    ):
        return {}  # Why first: most messages of a long history are of these.
    found: dict[str, object] = {}
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        found["content"] = "list"
    elif message.role == "assistant" and content is not None and not content:
        found["content"] = content
    if not message.reasoning_content and message.reasoning:
        found["reasoning"] = "reasoning"
    if message.refusal and not content:
        found["refusal"] = "refusal"
    if message.role == "tool" and message.name is not None:
        found["name"] = message.name
    return found


def spelling_of(dialogue: Dialogue) -> dict[str, object]:
    found = dialogue.extra.get(SPELLING)
    return found if isinstance(found, dict) else {}
