"""LangChain against Chat Completions, Responses and Messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from place import ASK, KEY, STAGE, URL, error, play, show, tide
from pydantic import BaseModel


class Tide(BaseModel):
    """The tide at a port."""

    port: str
    metres: int


@tool
def get_tide(port: str) -> str:
    """The tide at a port"""
    return tide(port)


def model(kind: str, script: str = "", *, name: str = "script", url: str = URL, **more: Any) -> Any:
    options = {"max_retries": 0, "timeout": 60, "api_key": KEY, "default_headers": play(script)}
    options |= {"model": name, **more}
    if kind == "messages":
        return ChatAnthropic(base_url=url, **options)
    return ChatOpenAI(
        base_url=f"{url}/v1",
        stream_usage=True,
        use_responses_api=kind == "responses",
        **options,
    )


THINKING: dict[str, dict[str, Any]] = {
    "chat": {},
    "responses": {"reasoning": {"summary": "auto"}},
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
}


def thought(kind: str) -> str:
    """The reasoning, where this integration shows it."""
    message = model(kind, "think", **THINKING[kind]).invoke(ASK)
    blocks = [block for block in message.content_blocks if block["type"] == "reasoning"]
    return "".join(str(block.get("reasoning", "")) for block in blocks)


def text(kind: str) -> dict[str, object]:
    whole = model(kind, "say").invoke(ASK)
    streamed = added_up(model(kind, "say").stream(ASK))
    return {
        "said": [whole.text, streamed.text],
        "output_tokens": [made.usage_metadata["output_tokens"] for made in (whole, streamed)],
    }


def tools(kind: str) -> dict[str, object]:
    asked = [HumanMessage(ASK)]
    bound = model(kind, "tools").bind_tools([get_tide])
    first = bound.invoke(asked)
    streamed = added_up(bound.stream(asked))
    results = [get_tide.invoke(call) for call in first.tool_calls]
    last = model(kind, "done").bind_tools([get_tide]).invoke([*asked, first, *results])
    return {
        "calls": [[call["args"]["port"] for call in made.tool_calls] for made in (first, streamed)],
        "answer": last.text,
    }


def added_up(chunks: Iterable[Any]) -> Any:
    """One message, as LangChain adds chunks."""
    return reduce(lambda total, chunk: total + chunk, chunks)


def cancelled(kind: str) -> str:
    stream = model(kind, "long").stream(ASK)
    first = next(chunk.text for chunk in stream if chunk.text)
    stream.close()
    return first


def structured(kind: str) -> object:
    asking = model(kind).with_structured_output(Tide, method="json_schema")
    return asking.invoke(ASK).model_dump()


def outcome(kind: str) -> dict[str, object]:
    return {
        **text(kind),
        **tools(kind),
        "thought": thought(kind),
        "structured": structured(kind),
        "refused": error(lambda: model(kind, temperature=9).invoke(ASK)),
        "missing": error(lambda: model(kind, name="nope").invoke(ASK)),
        "overloaded": error(lambda: model(kind, name="busy", url=STAGE, max_retries=1).invoke(ASK)),
        "lost": error(lambda: list(model(kind, "late").stream(ASK))),
        "cancelled": cancelled(kind),
    }


show({kind: outcome(kind) for kind in THINKING})
