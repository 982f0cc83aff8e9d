"""Completions: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples
from tests.flow.fields.shapes import SHAPES

__all__ = ("EXAMPLES",)


def one(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, **more)


STREAM = {"stream": True}

EXAMPLES = Examples(
    "/v1/completions",
    {"model": "m", "prompt": "ab", "max_tokens": 8},
    {
        "model": one("model", "other"),
        "prompt": one("prompt", ["ab", "cd"]),
        "suffix": one("suffix", "end", model="gaps"),
        "add_special_tokens": one("add_special_tokens", False, model="begins"),
        "temperature": one("temperature", 0),
        "top_p": one("top_p", 0.5),
        "top_k": one("top_k", 5),
        "min_p": one("min_p", 0.1),
        "frequency_penalty": one("frequency_penalty", 0.5),
        "presence_penalty": one("presence_penalty", 0.5),
        "repetition_penalty": one("repetition_penalty", 1.5),
        "seed": one("seed", 2),
        "logit_bias": one("logit_bias", {"65": 3}),
        "allowed_token_ids": one("allowed_token_ids", [65, 66], lacking="allowed_ids"),
        "max_tokens": one("max_tokens", 5),
        "min_tokens": one("min_tokens", 2),
        "stop": one("stop", "engine", beside={"max_tokens": 90}),
        "stop_token_ids": one("stop_token_ids", [65]),
        "ignore_eos": one("ignore_eos", True),
        "include_stop_str_in_output": one(
            "include_stop_str_in_output", True, beside={"stop": "engine", "max_tokens": 90}
        ),
        "n": one("n", 2),
        "best_of": one("best_of", 2),
        "logprobs": one("logprobs", 1),
        "echo": one("echo", True),
        "stream": one("stream", True),
        "stream_options.include_usage": Example(
            {"stream_options": {"include_usage": True}}, beside=STREAM
        ),
        "stream_options.continuous_usage_stats": Example(
            {"stream_options": {"continuous_usage_stats": True}}, beside=STREAM
        ),
        "user": one("user", "u"),
        "safety_identifier": one("safety_identifier", "u"),
        "session_id": one("session_id", "s"),
        "prompt_cache_key": one("prompt_cache_key", "s"),
        "cache_salt": one("cache_salt", "s"),
        "priority": one("priority", 3),
        **SHAPES,
        "skip_special_tokens": one("skip_special_tokens", False),
        "spaces_between_special_tokens": one("spaces_between_special_tokens", False),
        "truncate_prompt_tokens": one("truncate_prompt_tokens", 5),
        "prompt_logprobs": one("prompt_logprobs", 1),
        "return_token_ids": one("return_token_ids", True),
        "return_tokens_as_token_ids": one("return_tokens_as_token_ids", True),
        "use_beam_search": one("use_beam_search", True),
        "length_penalty": one("length_penalty", 1.2),
        "service_tier": one("service_tier", "auto"),
        "metadata": one("metadata", {"a": "b"}),
        "store": one("store", True),
    },
)
