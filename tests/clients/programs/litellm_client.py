"""LiteLLM's library against Chat Completions, Responses and Messages."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched when imported

import litellm
from place import ASK, KEY, PARAMETERS, STAGE, URL, error, play, show, tide
from pydantic import BaseModel

litellm.suppress_debug_info = True
PROVIDERS = {"chat": "openai", "messages": "anthropic"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "description": "The tide at a port",
            "parameters": PARAMETERS,
        },
    }
]
THINKING = {
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "max_tokens": 2000,
    # Why: LiteLLM knows by name which models of Anthropic think, and refuses for all others.
    "allowed_openai_params": ["thinking"],
}
ASKED = [{"role": "user", "content": ASK}]


class Tide(BaseModel):
    """The tide at a port."""

    port: str
    metres: int


def ask(kind: str, script: str = "", *, name: str = "script", url: str = URL, **more: Any) -> Any:
    options = {"messages": ASKED, "max_retries": 0, "timeout": 60, **more}
    return litellm.completion(
        model=f"{PROVIDERS[kind]}/{name}",
        api_base=url if kind == "messages" else f"{url}/v1",
        api_key=KEY,
        extra_headers=play(script),
        **options,
    )


def streamed(kind: str, script: str, **more: Any) -> Any:
    """What LiteLLM builds of its own chunks."""
    usage = {"include_usage": True}
    return litellm.stream_chunk_builder(
        list(ask(kind, script, stream=True, stream_options=usage, **more))
    )


def text(kind: str) -> dict[str, object]:
    made = [ask(kind, "say"), streamed(kind, "say")]
    return {
        "said": [answer.choices[0].message.content for answer in made],
        "output_tokens": [answer.usage.completion_tokens for answer in made],
    }


def tools(kind: str) -> dict[str, object]:
    made = [ask(kind, "tools", tools=TOOLS), streamed(kind, "tools", tools=TOOLS)]
    first = made[0].choices[0].message
    calls = [answer.choices[0].message.tool_calls for answer in made]
    ports = [[json.loads(call.function.arguments)["port"] for call in asked] for asked in calls]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": tide(port)}
        for call, port in zip(first.tool_calls, ports[0], strict=True)
    ]
    last = ask(kind, "done", messages=[*ASKED, first.model_dump(), *results], tools=TOOLS)
    return {"calls": ports, "answer": last.choices[0].message.content}


def thought(kind: str) -> str:
    made = ask(kind, "think", **(THINKING if kind == "messages" else {}))
    return str(made.choices[0].message.reasoning_content)


def structured(kind: str) -> object:
    made = ask(kind, response_format=Tide)
    return json.loads(made.choices[0].message.content)


def cancelled(kind: str) -> str:
    stream = ask(kind, "long", stream=True)
    pieces = (chunk.choices[0].delta.content for chunk in stream)
    first = next(piece for piece in pieces if piece)
    close = getattr(stream.completion_stream, "close", None) or stream.response.close
    close()
    return str(first)


def outcome(kind: str) -> dict[str, object]:
    return {
        **text(kind),
        **tools(kind),
        "thought": thought(kind),
        "structured": structured(kind),
        "refused": error(lambda: ask(kind, temperature=9)),
        "missing": error(lambda: ask(kind, name="nope")),
        "overloaded": error(lambda: ask(kind, name="busy", url=STAGE, num_retries=1)),
        "lost": error(lambda: list(ask(kind, "late", stream=True))),
        "cancelled": cancelled(kind),
    }


def responses() -> dict[str, object]:
    options: Any = {
        "model": "openai/script",
        "api_base": f"{URL}/v1",
        "api_key": KEY,
        "extra_headers": play("say"),
    }
    whole = litellm.responses(input=ASK, **options)
    events = list(litellm.responses(input=ASK, stream=True, **options))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    return {"said": [whole.output_text, "".join(deltas)], "last": events[-1].type}


show({**{kind: outcome(kind) for kind in PROVIDERS}, "responses": responses()})
