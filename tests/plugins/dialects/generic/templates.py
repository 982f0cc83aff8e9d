"""Response templates, in our own words, for published chat templates and for odd shapes."""

from __future__ import annotations

from typing import Any, Final

__all__ = ("CHANNELS", "GRANITE", "KV", "PYTHON", "QWEN", "TAGGED")

CALL: Final = {"type": "function", "function": "{content}"}
NAMED: Final = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}

QWEN: Final[dict[str, Any]] = {
    "version": 1,
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open": "<tool_call>", "close": "</tool_call>", "content": "json", "repeats": True,
            "transform": CALL,
        },
        "content": {"close": "<|im_end|>"},
    },
}  # fmt: skip
GRANITE: Final[dict[str, Any]] = {
    "start_anchor_pattern": r"<\|start_of_role\|>assistant(?:\s*\{.*?\})?<\|end_of_role\|>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>", "close": "</tool_call>", "content": "json", "repeats": True,
            "transform": CALL,
        },
        "content": {},
    },
}  # fmt: skip
CHANNELS: Final[dict[str, Any]] = {
    "start_anchor": "<|start|>assistant",
    "fields": {
        "thinking": {
            "open": "<|channel|>analysis<|message|>", "close": "<|end|>", "repeats": True,
            "join": "\n",
        },
        "tool_calls": {
            "open_pattern": r"<\|channel\|>commentary to=functions\.(?P<name>[\w.-]+)\s*"
            r"(?:<\|constrain\|>json)?<\|message\|>",
            "close": "<|call|>", "content": "json", "repeats": True, "transform": NAMED,
        },
        "content": {"open": "<|channel|>final<|message|>", "close": ["<|end|>", "<|return|>"]},
    },
}  # fmt: skip
TAGGED: Final[dict[str, Any]] = {
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call>\s*<function=(?P<name>[^>\n]+)>",
            "close_pattern": r"</function>\s*</call>",
            "content": "xml-inline", "repeats": True, "transform": NAMED,
            "content_args": {"tag_pattern": r"<p=(?P<key>[^>]+)>\n(?P<value>.*?)\n</p>"},
        },
        "content": {},
    },
}  # fmt: skip
KV: Final[dict[str, Any]] = {
    "start_anchor": "A:",
    "fields": {
        "tool_calls": {
            "open_pattern": r"CALL (?P<name>\w+)\n", "close": "END", "content": "kv-lines",
            "repeats": True, "transform": NAMED,
        },
        "content": {"content_args": {"strip": False}},
    },
}  # fmt: skip
PYTHON: Final[dict[str, Any]] = {
    "start_anchor": "A:",
    "fields": {
        "tool_calls": {
            "open": "<|calls|>", "close": "<|end_calls|>", "content": "python-call-list",
            "transform": {"type": "function", "function": {"name": "{name}",
                                                           "arguments": "{arguments}"}},
            "transform_each": True,
        },
        "content": {},
    },
}  # fmt: skip
