"""The rivals' side of codec.py; what is not installed gives no rows, and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codec_cases import MODEL, compact, messages_for_templates

__all__ = ("absent", "recipe", "recipe_stream", "recipe_unary", "transformers")

Rows = dict[str, Callable[[], object]]
PACKAGES = {"deepseek_recipe": "deepseek-recipe", "transformers": "transformers"}
JINJA = "deepseek-ai-DeepSeek-V4.jinja"


def absent() -> list[str]:
    return [
        f"no rows of {name}: it is not installed (pip install {name})"
        for module, name in PACKAGES.items()
        if find_spec(module) is None
    ]


def _module(name: str) -> Any:
    return import_module(name) if find_spec(name) else None


def recipe(body: bytes, tokenizer: Path | None) -> Rows:
    """deepseek-recipe: the same request, converted, rendered and encoded."""
    lib = _module("deepseek_recipe")
    if lib is None:
        return {}
    options = lib.ConversionOptions()
    encoding = lib.DeepseekV4Encoding()
    conversation = lib.ChatCompletionRequest(body).convert(options).conversation
    short = compact(body)
    rows: Rows = {
        "decode and convert": lambda: lib.ChatCompletionRequest(body).convert(options),
        "decode and convert, compact": lambda: lib.ChatCompletionRequest(short).convert(options),
        "render, native": lambda: encoding.render_conversation(conversation).prompt,
    }
    if tokenizer is not None:
        read = lib.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
        with_tokenizer = encoding.with_tokenizer(read)
        # Why: it needs the token of DSML, which tokenizers before V3.2 do not have.
        try:
            with_tokenizer.encode(conversation)
        except RuntimeError:
            return rows
        rows["render and encode, from scratch"] = lambda: with_tokenizer.encode(conversation)
    return rows


def recipe_stream(protocol: str, pieces: Sequence[str], body: bytes) -> Callable[[], object] | None:
    lib = _module("deepseek_recipe")
    if lib is None:
        return None
    chunk, finish = lib.InferenceChunk, lib.InferenceFinishReason.Stop
    usage = lib.PromptUsage(prompt_tokens=100)
    generator = _generators(lib, body)[protocol]

    def work() -> int:
        options = lib.ParsingOptions(thinking_initial_stage=lib.ThinkingInitialStage.ReasoningStart)
        processor = lib.StreamProcessor(generator(), options)
        push = processor.push
        written = 0
        for event in push(chunk.ready(prompt_usage=usage)):
            written += len(event.to_json())
        for text in pieces:
            for event in push(chunk.text(text, 1)):
                written += len(event.to_json())
        for event in (*push(chunk.finish(finish)), *processor.finish()):
            written += len(event.to_json())
        return written

    return work


def recipe_unary(protocol: str, text: str, body: bytes) -> Callable[[], object] | None:
    """The same answer as one piece, to the bytes of one body."""
    lib = _module("deepseek_recipe")
    if lib is None:
        return None
    kinds = {"messages": lib.MessagesResponse, "responses": lib.ResponsesResponse}
    kind = kinds.get(protocol, lib.ChatCompletionResponse)
    chunk, finish = lib.InferenceChunk, lib.InferenceFinishReason.Stop
    usage = lib.PromptUsage(prompt_tokens=100)
    generator = _generators(lib, body)[protocol]
    stage = lib.ThinkingInitialStage.ReasoningStart

    def work() -> int:
        options = lib.ParsingOptions(thinking_initial_stage=stage)
        processor = lib.StreamProcessor(generator(), options)
        response = kind("r", MODEL, 0, 100, 0)
        given = (chunk.ready(prompt_usage=usage), chunk.text(text, 1), chunk.finish(finish))
        for part in given:
            for event in processor.push(part):
                response.accumulate(event)
        for event in processor.finish():
            response.accumulate(event)
        return len(response.to_json())

    return work


def _generators(lib: Any, body: bytes) -> dict[str, Callable[[], Any]]:
    made = lib.ChatCompletionRequest(body).convert(lib.ConversionOptions())
    return {
        "chat_completions": lambda: lib.ChatCompletionRequest.chunk_generator(made, "r", MODEL),
        "messages": lambda: lib.MessagesChunkGenerator("r", MODEL, True),
        "responses": lambda: lib.ResponsesRequest.chunk_generator(made, "r", MODEL),
    }


def transformers(body: bytes, templates: Path) -> Rows:
    """transformers: the published Jinja template."""
    lib = _module("transformers.utils.chat_template_utils") if find_spec("transformers") else None
    if lib is None or not (templates / JINJA).is_file():
        return {}
    source = (templates / JINJA).read_text(encoding="utf-8")
    messages = messages_for_templates(body)

    def render() -> object:
        return lib.render_jinja_template(
            [messages],
            chat_template=source,
            add_generation_prompt=True,
            bos_token="",
            thinking=True,
        )

    return {"render, Jinja": render}
