"""Fields and messages under the names, and in the forms, that the client gave them. Pure."""

from __future__ import annotations

from typing import cast

from msgspec import Raw

from tokenwire.core.dialogue import Dialogue, ResponseFormat
from tokenwire.plugins.protocols.chat_completions.spelling import spelling_of

__all__ = ("respell", "respell_message")


def respell(given: dict[str, object], dialogue: Dialogue) -> None:
    """Fields under the names that the client gave them."""
    names = spelling_of(dialogue).get("names")
    for ours, theirs in names.items() if isinstance(names, dict) else ():
        match ours, theirs:
            case "documents", _:
                kwargs = cast("dict[str, object]", given.get("chat_template_kwargs", {}))
                given["documents"] = kwargs.pop("documents", None)
                if not kwargs:
                    given.pop("chat_template_kwargs", None)
            case "stop", _ if isinstance(given.get(ours), tuple) and len(_stop(given)) == 1:
                given["stop"] = _stop(given)[0]
            case "thinking", "switch" | "enable_thinking" | "effort":
                _respell_thinking(given, theirs)
            case "budget", _ if isinstance(given.get("thinking"), dict):
                thinking = cast("dict[str, object]", given["thinking"])
                given["thinking"] = {
                    **thinking,
                    "budget_tokens": given.pop("thinking_token_budget"),
                }
            case "response_format", _ if ours in given:
                given[theirs] = _other_format(theirs, dialogue.response_format)
                del given[ours]
            case _ if ours in given and ours not in ("stop", "budget"):
                given[theirs] = given.pop(ours)


def _stop(given: dict[str, object]) -> tuple[str, ...]:
    return cast("tuple[str, ...]", given["stop"])


def _respell_thinking(given: dict[str, object], name: str) -> None:
    thinking = given.pop("thinking", None)
    if not isinstance(thinking, dict):
        return
    is_on = thinking["type"] != "disabled"
    if name == "effort":
        given["reasoning_effort"] = "none"
    else:
        given["thinking" if name == "switch" else name] = is_on


def _other_format(name: str, wanted: ResponseFormat) -> object:
    text = Raw((wanted.text or "").encode()) if wanted.kind == "json_schema" else wanted.text
    value = wanted.choices if wanted.kind == "choice" else text
    if name != "structured_outputs":
        return value
    field = {"json_schema": "json"}.get(wanted.kind, wanted.kind)
    return {field: True if wanted.kind == "json_object" else value}


def respell_message(message: dict[str, object], how: dict[str, object]) -> None:
    content = message["content"]
    if "refusal" in how and isinstance(content, str):
        message["refusal"], message["content"] = content, None
        content = None
    if how.get("content") == "list" and isinstance(content, str):
        message["content"] = [{"type": "text", "text": content}]
    elif "content" in how and content is None:
        message["content"] = how["content"]
    if "reasoning" in how and "reasoning_content" in message:
        message["reasoning"] = message.pop("reasoning_content")
    if "name" in how:
        message["name"] = how["name"]
