"""Every field that docs/protocols.md calls used is used: another value is another call; and what
samples, stops and shapes an answer is another job for the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, model, serving
from tokenwire.core.call import Call
from tokenwire.core.host import Host, lone_services
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.tokens import TokenJob
from tokenwire.core.wire import HttpRequest

DOCS = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text()
TITLES = {"chat_completions": "Chat Completions: fields", "messages": "Messages: fields"}
CODECS = {name: Host().codecs.build(name, {}, lone_services()) for name in TITLES}
TOOL = {"type": "function", "function": {"name": "f"}}
SHAPE = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "string"}}}
USER = {"role": "user", "content": "hi"}

# Field -> (what it needs beside it, a value that changes the call).
CHAT: dict[str, tuple[dict[str, Any], Any]] = {
    "model": ({}, "n"),
    "messages": ({}, [{"role": "user", "content": "ho"}]),
    "temperature": ({}, 0),
    "top_p": ({}, 0.5),
    "top_k": ({}, 5),
    "min_p": ({}, 0.1),
    "frequency_penalty": ({}, 0.5),
    "presence_penalty": ({}, 0.5),
    "repetition_penalty": ({}, 1.5),
    "seed": ({}, 0),
    "logit_bias": ({}, {"65": 3}),
    "allowed_token_ids": ({}, [65, 66]),
    "max_completion_tokens": ({"max_tokens": 7}, 5),
    "max_tokens": ({}, 5),
    "min_tokens": ({}, 2),
    "stop": ({}, "x"),
    "stop_token_ids": ({}, [65]),
    "ignore_eos": ({}, True),
    "include_stop_str_in_output": ({"stop": "x"}, True),
    "n": ({}, 2),
    "logprobs": ({}, True),
    "top_logprobs": ({"logprobs": True}, 2),
    "stream": ({}, True),
    "stream_options": ({"stream": True}, {"include_usage": True}),
    "modalities": ({}, ["audio"]),
    "response_format": ({}, SHAPE),
    "structured_outputs": ({}, {"choice": ["a", "b"]}),
    "tools": ({}, [TOOL]),
    "tool_choice": ({"tools": [TOOL]}, "none"),
    "reasoning_effort": ({}, "high"),
    "thinking": ({}, {"type": "enabled", "budget_tokens": 9}),
    "enable_thinking": ({}, False),
    "thinking_token_budget": ({}, 9),
    "chat_template_kwargs": ({}, {"a": 1}),
    "add_generation_prompt": ({}, False),
    "continue_final_message": ({"messages": [USER, {"role": "assistant", "content": "a"}]}, True),
    "user": ({}, "u"),
    "safety_identifier": ({}, "u"),
    "session_id": ({}, "s"),
    "prompt_cache_key": ({}, "s"),
    "cache_salt": ({}, "s"),
    "priority": ({}, 3),
}
SCHEMA = {"name": "f", "input_schema": {"type": "object"}}
FORMAT = {"type": "json_schema", "schema": {"type": "string"}}
MESSAGES: dict[str, tuple[dict[str, Any], Any]] = {
    "model": ({}, "n"),
    "messages": ({}, [{"role": "user", "content": "ho"}]),
    "max_tokens": ({}, 5),
    "system": ({}, "Be brief."),
    "tools": ({}, [SCHEMA]),
    "tool_choice": ({"tools": [SCHEMA]}, {"type": "any"}),
    "thinking": ({"max_tokens": 4000}, {"type": "enabled", "budget_tokens": 1024}),
    "output_config": ({}, {"effort": "high"}),
    "output_format": ({}, FORMAT),
    "metadata": ({}, {"user_id": "u"}),
    "stop_sequences": ({}, ["x"]),
    "stream": ({}, True),
    "temperature": ({}, 0),
    "top_p": ({}, 0.5),
    "top_k": ({}, 5),
}
TABLES = {"chat_completions": CHAT, "messages": MESSAGES}
CASES = [(protocol, name) for protocol, table in TABLES.items() for name in table]
REFUSED = {"modalities": "modalities"}
LISTED = {"add_generation_prompt": "add_generation_prompt"}


def used(protocol: str) -> set[str]:
    section = re.search(rf"^### {TITLES[protocol]}\n(.*?)(?=^##)", DOCS, re.DOTALL | re.MULTILINE)
    assert section is not None
    return set(re.findall(r"^\| `([\w.]+)` \| used ", section.group(1), re.MULTILINE))


@pytest.mark.parametrize("protocol", TABLES)
def test_every_used_field_has_a_case_here(protocol: str) -> None:
    assert set(TABLES[protocol]) == used(protocol)


def bodies(protocol: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request without and with the field."""
    beside, value = TABLES[protocol][name]
    least = {"model": "m", "messages": [USER]}
    if protocol == "messages":
        least["max_tokens"] = 90
    return least | beside, least | beside | {name: value}


def decoded(protocol: str, body: dict[str, Any]) -> Call:
    asked = HttpRequest("POST", PATHS[protocol], body=json.dumps(body).encode())
    call = CODECS[protocol].decode(asked)
    assert isinstance(call, Call)
    return call


@pytest.mark.parametrize(("protocol", "name"), CASES)
def test_another_value_is_another_call(protocol: str, name: str) -> None:
    without, with_it = bodies(protocol, name)
    if name in REFUSED:
        with pytest.raises(Exception, match=REFUSED[name]):
            decoded(protocol, with_it)
        return
    plain, changed = decoded(protocol, without), decoded(protocol, with_it)
    if name in LISTED:
        assert name in changed.ignored
        return
    assert changed.ignored == plain.ignored
    assert name not in changed.extra
    differing = [key for key, value in asdict(plain).items() if getattr(changed, key) != value]
    assert len(differing) == 1, differing


# --- the job -------------------------------------------------------------------------------------

ELSEWHERE = {
    "model",  # which engine gets it
    "stop",  # found here, where it spells no token (test_wiring)
    "include_stop_str_in_output",
    "stop_sequences",
    "stream_options",  # how the reply is written
    "user",  # for observers
    "safety_identifier",
    "session_id",
    "prompt_cache_key",
    "metadata",
    "enable_thinking",  # for the template, where it looks at them
    "reasoning_effort",
    "chat_template_kwargs",
    "output_config",
    "tool_choice",  # "none" is for the parser, "any" is listed where no grammar can force it
    "response_format",  # listed: the mock has no grammar (tests/core/test_jobs.py)
    "structured_outputs",
    "output_format",
    *REFUSED,
    *LISTED,
}
INSIDE: dict[str, tuple[str, ...]] = {
    "messages": ("prompt",),
    "system": ("prompt",),
    "tools": ("prompt",),
    "continue_final_message": ("prompt",),
    "temperature": ("sampling",),
    "top_p": ("sampling",),
    "top_k": ("sampling",),
    "min_p": ("sampling",),
    "frequency_penalty": ("sampling",),
    "presence_penalty": ("sampling",),
    "repetition_penalty": ("sampling",),
    "seed": ("sampling",),
    "logit_bias": ("sampling",),
    "allowed_token_ids": ("sampling",),
    "max_tokens": ("stopping",),
    "max_completion_tokens": ("stopping",),
    "min_tokens": ("stopping",),
    "stop_token_ids": ("stopping",),
    "ignore_eos": ("stopping",),
    "n": ("n",),
    "logprobs": ("logprobs",),
    "top_logprobs": ("logprobs",),
    "stream": ("credit",),
    "thinking": ("reasoning",),
    "thinking_token_budget": ("reasoning",),
    "cache_salt": ("kv",),
    "priority": ("priority",),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[LocalClient, SpyEngine]]:
    with serving(model(dialect="hermes", settings={"answer": "ab"})) as (client, (spied,)):
        yield client, spied


def job(served: tuple[LocalClient, SpyEngine], protocol: str, body: dict[str, Any]) -> TokenJob:
    """What the engine gets; with the gateway's own seed made one, unless the client sends one."""
    client, spied = served
    given = body if protocol == "messages" else {"seed": 42} | body
    response = client.post(PATHS[protocol], given)
    assert response.status == 200, response.body
    return spied.jobs[-1]


@pytest.mark.parametrize(("protocol", "name"), [case for case in CASES if case[1] not in ELSEWHERE])
def test_what_the_engine_must_know_is_in_its_job(
    served: tuple[LocalClient, SpyEngine], protocol: str, name: str
) -> None:
    without, with_it = bodies(protocol, name)
    plain, changed = (asdict(job(served, protocol, body)) for body in (without, with_it))
    differing = {key for key, value in plain.items() if changed[key] != value}
    differing -= {"job"}
    if protocol == "messages":
        differing -= unseeded(plain, changed)
    if name in ("messages", "system", "tools", "continue_final_message"):
        differing -= {"stopping"} if "max_tokens" not in without else set()
    assert differing == set(INSIDE[name])


def unseeded(plain: dict[str, Any], changed: dict[str, Any]) -> set[str]:
    """{"sampling"} where only the gateway's random seed differs."""
    one, two = (asdict(each["sampling"]) | {"seed": 0} for each in (plain, changed))
    return {"sampling"} if one == two else set()


def test_every_field_goes_to_the_engine_or_is_said_to_stay() -> None:
    names = {name for _, name in CASES}
    assert set(INSIDE) | ELSEWHERE == names
    assert not set(INSIDE) & ELSEWHERE
