"""pydantic-ai against Chat Completions, Responses and Messages."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from place import ASK, KEY, STAGE, URL, play, show, tide
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Tide(BaseModel):
    """The tide at a port."""

    port: str
    metres: int


# Why: pydantic-ai knows by name which models of Anthropic can answer in a schema.
ABLE: Any = {"supports_json_schema_output": True}


def model(kind: str, name: str, url: str) -> Model:
    options: dict[str, Any] = {"api_key": KEY, "max_retries": 1, "timeout": 60}
    if kind == "messages":
        anthropic = AsyncAnthropic(base_url=url, **options)
        provider = AnthropicProvider(anthropic_client=anthropic)
        return AnthropicModel(name, provider=provider, profile=ABLE)
    openai = OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{url}/v1", **options))
    made = OpenAIResponsesModel if kind == "responses" else OpenAIChatModel
    return made(name, provider=openai)


THINKING: dict[str, dict[str, Any]] = {
    "chat": {},
    "responses": {"openai_reasoning_summary": "auto"},
    "messages": {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}},
}


def agent(
    kind: str, script: str = "", *, name: str = "script", url: str = URL, **more: Any
) -> Agent[None, Any]:
    settings: Any = {"extra_headers": play(script), "max_tokens": 2000}
    settings |= THINKING[kind] if script == "think" else {}
    return Agent(model(kind, name, url), model_settings=settings, **more)


async def text(kind: str) -> dict[str, object]:
    whole = await agent(kind, "say").run(ASK)
    async with agent(kind, "say").run_stream(ASK) as stream:
        streamed = await stream.get_output()
        usages = [whole.usage, stream.usage]
    return {
        "said": [whole.output, streamed],
        "output_tokens": [usage.output_tokens for usage in usages],
    }


async def tools(kind: str) -> dict[str, object]:
    """The whole loop is pydantic-ai's own; the stage plays the last answer."""
    asking = agent(kind, "tools", url=STAGE)
    ports: list[list[str]] = []

    @asking.tool_plain
    def get_tide(port: str) -> str:
        """The tide at a port"""
        ports[-1].append(port)
        return tide(port)

    ports.append([])
    answer = (await asking.run(ASK)).output
    ports.append([])
    async with asking.run_stream(ASK) as stream:
        await stream.get_output()
    return {"calls": [sorted(asked) for asked in ports], "answer": answer}


async def thought(kind: str) -> str:
    made = await agent(kind, "think").run(ASK)
    parts = made.all_messages()[-1].parts
    return "".join(part.content for part in parts if part.part_kind == "thinking")


async def structured(kind: str) -> dict[str, object]:
    native = await agent(kind, output_type=NativeOutput(Tide)).run(ASK)
    forced = await agent(kind, output_type=ToolOutput(Tide)).run(ASK)
    return {
        "structured": native.output.model_dump(),
        "structured_by_a_tool": forced.output.model_dump(),
    }


async def error(asking: Agent[None, Any], **settings: Any) -> str:
    try:
        await asking.run(ASK, model_settings=settings)
    except ModelHTTPError as found:
        return f"{type(found).__name__} {found.status_code}"
    return "no error"


async def lost(kind: str) -> str:
    try:
        async with agent(kind, "late").run_stream(ASK) as stream:
            return str(await stream.get_output())
    except Exception as found:
        return type(found).__name__


async def cancelled(kind: str) -> str:
    async with agent(kind, "long").run_stream(ASK) as stream:
        async for piece in stream.stream_text(delta=True, debounce_by=None):
            return piece
    return ""


async def outcome(kind: str) -> dict[str, object]:
    return {
        **await text(kind),
        **await tools(kind),
        "thought": await thought(kind),
        **await structured(kind),
        "refused": await error(agent(kind), temperature=9),
        "missing": await error(agent(kind, name="nope")),
        "overloaded": await error(agent(kind, name="busy", url=STAGE)),
        "lost": await lost(kind),
        "cancelled": await cancelled(kind),
    }


async def main() -> None:
    show({kind: await outcome(kind) for kind in THINKING})


asyncio.run(main())
