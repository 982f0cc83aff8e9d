"""What a request says and what a model is configured with arrive where they belong: in the job that
the engine gets, and in the head of the reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flow.wired import HELLO, ask, factory, model, serving
from tokenwire.core.byte_text import BOS, EOS, PAD, ByteText
from tokenwire.core.config import PluginUse
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.served import INLINE_CHARACTERS
from tokenwire.core.stream import CREDIT_WINDOW
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.wire import HttpRequest

PROTOCOLS = ["chat_completions", "messages"]
END = "<|im_end|>"
END_ID = 259
IGNORED = "x-tokenwire-ignored"


class Tagged(Tokenizer):
    """Bytes and a ChatML token; tells which other threads encoded long text."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._text = ByteText((BOS, EOS, PAD, END))
        self.vocabulary = self._text.vocabulary()
        self.threads: list[threading.Thread] = []
        self._before = before

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        # Why so long: engines load in a thread, and encode a sentence there.
        if len(text) > 1000 and threading.current_thread() is not threading.main_thread():
            self.threads.append(threading.current_thread())
            self._before()
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)


def tagged(tokenizer: Tokenizer | None = None, **more: Any) -> Any:
    """Serving a model with that tokenizer."""
    config = {"dialect": "hermes"} | more
    return serving(
        model(tokenizer=PluginUse("tagged"), **config),
        plugins=[factory("tagged", tokenizer or Tagged())],
        kind="tokenizers",
    )


# --- the configuration ---------------------------------------------------------------------------


def test_the_checkpoints_sampling_reaches_the_job_and_the_clients_wins(tmp_path: Path) -> None:
    config = {"temperature": 0.6, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1}
    (tmp_path / "generation_config.json").write_text(json.dumps(config))
    with serving(model(checkpoint=str(tmp_path), dialect="plain")) as (client, (spied,)):
        ask(client)
        ask(client, temperature=0, top_p=0.5)
        ask(client, "messages", top_k=0)
        first, second, third = (job.sampling for job in spied.jobs)
    assert {name: getattr(first, name) for name in config} == config
    assert (second.temperature, second.top_p, second.top_k) == (0, 0.5, 20)
    assert (third.temperature, third.top_k) == (0.6, 0)


def test_an_alias_is_the_same_model() -> None:
    with serving(model(aliases=("n",))) as (client, (spied,)):
        assert ask(client, model="n").status == 200
        assert spied.jobs[0].model == "m"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_configured_context_bounds_prompt_and_answer(protocol: str) -> None:
    with serving(model(context_length=60)) as (client, (spied,)):
        ask(client, protocol, **({"max_tokens": 10**6} if protocol == "messages" else {}))
        job = spied.jobs[0]
        assert job.stopping.max_tokens == 60 - len(job.prompt)
        long = [{"role": "user", "content": "x" * 61}]
        refused: Any = ask(client, protocol, messages=long).json()
        assert "prompt is too long" in refused["error"]["message"]
        assert len(spied.jobs) == 1


def test_the_revision_is_part_of_the_fingerprint() -> None:
    def fingerprint(**config: Any) -> str:
        with serving(model(**config)) as (client, _):
            return ask(client).headers["x-tokenwire-fingerprint"]

    assert fingerprint() == fingerprint()
    assert len({fingerprint(), fingerprint(revision="1"), fingerprint(dialect="hermes")}) == 3


# --- what ends an answer -------------------------------------------------------------------------


def test_the_dialects_stop_strings_go_as_ids_and_ignore_eos_leaves_them_out() -> None:
    with tagged() as (client, (spied,)):
        ask(client)
        ask(client, ignore_eos=True, max_tokens=5)
        ask(client, ignore_eos=True, stop_token_ids=[65], max_tokens=5)
        ids = [list(job.stopping.stop_ids) for job in spied.jobs]
        assert ids == [[257, END_ID], [], [65]]
        assert [job.stopping.ignore_eos for job in spied.jobs] == [False, True, True]


def test_a_model_without_such_a_token_has_none_to_stop_at() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        ask(client)
        assert list(spied.jobs[0].stopping.stop_ids) == [257]


@pytest.mark.parametrize("stream", [True, False])
def test_a_stop_string_that_spells_a_token_ends_the_answer_by_its_id(stream: bool) -> None:
    with tagged(settings={"answer": "one<pad>two"}) as (client, (spied,)):
        response = ask(client, "messages", stop_sequences=["<pad>", "never"], stream=stream)
        job = spied.jobs[0]
        assert list(job.stopping.stop_ids) == [257, END_ID, 258]
        assert b'"stop_reason":"stop_sequence"' in response.body
        assert b'"stop_sequence":"<pad>"' in response.body
        assert b"two" not in response.body
        assert not spied.controls, "the engine knew the id, and needed no word from us"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_stop_strings_of_text_are_found_here(protocol: str) -> None:
    field = {"chat_completions": "stop", "messages": "stop_sequences"}[protocol]
    with tagged(settings={"answer": "one two three"}) as (client, (spied,)):
        response = ask(client, protocol, **{field: [" two"]})
        assert list(spied.jobs[0].stopping.stop_ids) == [257, END_ID]
        assert b'"one"' in response.body
        assert len(spied.controls) == 1


# --- what the engine or the model cannot do ------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_what_nobody_uses_is_listed(stream: bool) -> None:
    lame = {"without": ["seed", "min_p", "reasoning_budget"]}
    with serving(model(settings=lame)) as (client, (spied,)):
        listed = ask(client, stream=stream, seed=1, min_p=0.5, verbosity="low").headers[IGNORED]
        assert listed.split(", ") == ["verbosity", "min_p", "seed"]
        thinking = {"type": "enabled", "budget_tokens": 1024}
        listed = ask(client, "messages", stream=stream, thinking=thinking, speed=1).headers[IGNORED]
        assert listed.split(", ") == ["speed", "thinking.budget_tokens", "thinking"]
        assert IGNORED not in ask(client, stream=stream).headers
        assert spied.jobs[1].reasoning is None


def test_a_reasoning_budget_reaches_the_job() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with serving(model(dialect="hermes")) as (client, (spied,)):
        response = ask(client, "messages", thinking=thinking)
        assert IGNORED not in response.headers
        ask(client, thinking_token_budget=77)
        first, second = (job.reasoning for job in spied.jobs)
    assert first is not None
    assert second is not None
    assert (first.budget, second.budget) == (1024, 77)
    assert list(first.start_ids) == list(b"<think>")
    assert list(first.end_ids) == list(first.force_ids) == list(b"</think>")
    assert first.on_budget == "force"


@pytest.mark.parametrize(
    ("without", "stream", "credit"),
    [((), True, CREDIT_WINDOW), ((), False, None), (("credit",), True, None)],
)
def test_credit_is_for_streams_of_engines_that_keep_it(
    without: tuple[str, ...], stream: bool, credit: int | None
) -> None:
    with serving(model(settings={"without": without})) as (client, (spied,)):
        assert ask(client, stream=stream).status == 200
        assert spied.jobs[0].credit == credit


# --- encoding ------------------------------------------------------------------------------------


def test_long_prompts_are_encoded_beside_the_loop() -> None:
    tokenizer = Tagged()
    with tagged(tokenizer, context_length=50_000, settings={"context_length": 50_000}) as (
        client,
        (spied,),
    ):
        assert ask(client).status == 200
        assert not tokenizer.threads, "short ones are not worth a thread"
        long = [{"role": "user", "content": "x" * INLINE_CHARACTERS}]
        assert ask(client, messages=long).status == 200
        assert ask(client, "messages", messages=long).status == 200
        assert len(spied.jobs[1].prompt) > INLINE_CHARACTERS
    assert len(tokenizer.threads) == 2


def test_both_ways_of_encoding_give_the_same_ids() -> None:
    with tagged(context_length=50_000, settings={"context_length": 50_000}) as (client, (spied,)):
        for length in (INLINE_CHARACTERS - 200, INLINE_CHARACTERS + 200):
            text = "<pad>é" + "x" * length
            ask(client, messages=[{"role": "user", "content": text}])
            ids = list(spied.jobs[-1].prompt)
            spelled = b"".join(Tagged().token_bytes(id) for id in ids).decode()
            assert text in spelled
            assert 258 not in ids


# --- routes --------------------------------------------------------------------------------------


def send(client: LocalClient, method: str, path: str) -> Any:
    return client.send(HttpRequest(method, path))


def test_a_method_that_a_path_does_not_take_is_said_with_those_it_takes() -> None:
    with serving() as (client, _):
        response = send(client, "GET", "/v1/messages")
        assert response.status == 405
        assert response.headers["allow"] == "POST"
        assert response.json()["type"] == "error"
        response = send(client, "POST", "/v1/models")
        assert (response.status, response.headers["allow"]) == (405, "GET")


def test_there_is_nothing_at_other_paths() -> None:
    with serving() as (client, _):
        response = send(client, "POST", "/v1/nothing")
        assert response.status == 404
        assert response.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_names_its_request_twice_and_no_other(protocol: str) -> None:
    with serving() as (client, _):
        heads = [ask(client, protocol, **more).headers for more in ({}, {"temperature": 9}) * 2]
        ids = [head["x-request-id"] for head in heads]
        assert ids == [head["request-id"] for head in heads]
        assert len(set(ids)) == 4


def test_counting_and_asking_see_the_same_prompt() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        ask(client, "messages", system="Be brief.")
        counted: Any = client.post(
            "/v1/messages/count_tokens", HELLO | {"system": "Be brief."}
        ).json()
        assert counted["input_tokens"] == len(spied.jobs[0].prompt)
