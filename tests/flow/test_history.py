"""The next turn's prompt goes on from the last one's own ids, whichever protocol asks; what broke
it is told in a header and counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests import real_tokenizers
from tests.flow.wired import Told, ask, factory, model, serving
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.config import CacheConfig, PluginUse
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.server.metrics import Metrics
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

HEADER = "x-tokenwire-history"
FIRST = [{"role": "user", "content": "Hello?"}]
MORE = {"role": "user", "content": "And?"}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load(HfSettings(fast="off"), Checkpoint(real_tokenizers.published("qwen3")))


def served(tokenizer: Tokenizer, **more: Any) -> Any:
    chosen = model(
        tokenizer=PluginUse("qwen3"), dialect="hermes", settings={"answer": "Unbelievably so."}
    )
    return serving(chosen, plugins=[factory("qwen3", tokenizer)], kind="tokenizers", **more)


def text_of(protocol: str, body: Any) -> str:
    if protocol == "messages":
        return str(body["content"][0]["text"])
    return str(body["choices"][0]["message"]["content"])


@pytest.mark.parametrize("first", ["chat_completions", "messages"])
@pytest.mark.parametrize("second", ["chat_completions", "messages"])
def test_a_second_turn_is_spliced(tokenizer: Tokenizer, first: str, second: str) -> None:
    told = Told()
    with served(tokenizer, observers=[told]) as (client, (spied,)):
        reply = ask(client, first, messages=FIRST)
        assert HEADER not in reply.headers
        said = text_of(first, reply.json())
        turns = [*FIRST, {"role": "assistant", "content": said}, MORE]
        again = ask(client, second, messages=turns)
        one, two = spied.jobs
        answer = spied.ids[one.job]
        assert list(two.prompt[: len(one.prompt) + len(answer)]) == [*one.prompt, *answer]
        tokens = len(one.prompt) + len(answer)
        assert again.headers[HEADER] == f"spliced; tokens={tokens}"
        assert told.started[1].history is not None
        assert told.started[1].history.outcome == "spliced"


def test_a_break_is_told_and_counted(tokenizer: Tokenizer) -> None:
    told = Told()
    with served(tokenizer, observers=[told]) as (client, _):
        ask(client, messages=FIRST)
        turns = [*FIRST, {"role": "assistant", "content": "Something else."}, MORE]
        header = ask(client, messages=turns).headers[HEADER]
    assert header.startswith("diverged; token=")
    assert "; cause=answer_changed; where=turns[1]; lost=" in header
    metrics = Metrics(dict)
    for event in told.started:
        metrics.call_started(event)
    body, _ = metrics.exposition("text/plain")
    line = 'tokenwire_history_total{cause="answer_changed",model="m",outcome="diverged"} 1.0'
    assert line in body.decode()
    assert "tokenwire_history_tokens_lost_total{" in body.decode()


def test_it_can_be_switched_off(tokenizer: Tokenizer) -> None:
    with served(tokenizer, cache=CacheConfig(history=False)) as (client, _):
        said = text_of("chat_completions", ask(client, messages=FIRST).json())
        turns = [*FIRST, {"role": "assistant", "content": said}, MORE]
        assert HEADER not in ask(client, messages=turns).headers


def test_counting_counts_the_prompt_that_would_be_sent(tokenizer: Tokenizer) -> None:
    with served(tokenizer) as (client, (spied,)):
        said = text_of("messages", ask(client, "messages", messages=FIRST).json())
        turns = [*FIRST, {"role": "assistant", "content": said}, MORE]
        count = client.post("/v1/messages/count_tokens", {"model": "m", "messages": turns}).json()
        ask(client, "messages", messages=turns)
        assert count == {"input_tokens": len(spied.jobs[1].prompt)}
