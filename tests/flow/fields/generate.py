"""Generate: what shows each row of its table."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example, Examples

__all__ = ("EXAMPLES",)


def one(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, **more)


def sampling(name: str, value: Any, **more: Any) -> tuple[str, Example]:
    return f"sampling.{name}", Example({"sampling": {name: value}}, **more)


def stopping(name: str, value: Any, **more: Any) -> tuple[str, Example]:
    return f"stopping.{name}", Example({"stopping": {"max_tokens": 8, name: value}}, **more)


EXAMPLES = Examples(
    "/v1/generate",
    {"model": "m", "prompt": [65, 66], "stopping": {"max_tokens": 8}},
    {
        "model": one("model", "other"),
        "prompt": one("prompt", [65]),
        "n": one("n", 2),
        **dict(
            [
                sampling("temperature", 0),
                sampling("top_p", 0.5),
                sampling("top_k", 5),
                sampling("min_p", 0.1),
                sampling("frequency_penalty", 0.5),
                sampling("presence_penalty", 0.5),
                sampling("repetition_penalty", 1.5),
                ("sampling.seed", Example({"sampling": {"seed": 2}})),
                sampling("logit_bias", {"65": 3}),
                sampling("allowed_ids", [65, 66]),
                ("stopping.max_tokens", Example({"stopping": {"max_tokens": 5}})),
                stopping("min_tokens", 2),
                stopping("stop_ids", [65]),
                stopping("sequences", [[65, 66]]),
                stopping("ignore_eos", True),
            ]
        ),
        "logprobs": one("logprobs", 1),
        "stream": one("stream", True),
        "priority": one("priority", 3),
        "deadline_ms": one("deadline_ms", 60_000),
        "expected_tokens": one("expected_tokens", 30),
        "cache_salt": one("cache_salt", "s"),
        "user": one("user", "u"),
        "session": one("session", "s"),
    },
)
