"""The headline: a real model, served as deploy/smollm2-real.yaml says, knows the capital of France,
whichever protocol asks; and its ids are those of transformers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.live import LiveServer, live_server
from tests.flow.wired import factory, model, serving
from tokenwire.core.config import PluginUse
from tokenwire.core.factory import Services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import Control, EngineStatus, TokenDelta, TokenJob
from tokenwire.core.wire import SseReader

pytestmark = pytest.mark.torch

DEPLOYED = Path(__file__).parents[2] / "deploy" / "smollm2-real.yaml"
ASK: dict[str, Any] = {
    "model": "smollm2",
    "temperature": 0,
    "max_tokens": 40,
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
}


@pytest.fixture(scope="module")
def server(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    text, count = re.subn(r"models/smollm2(?=/)", str(smollm2), DEPLOYED.read_text())
    assert count == 1, "the file names the tokenizer's path once"
    with live_server(text, tmp_path_factory.mktemp("real")) as server:
        yield server


def stream(server: LiveServer, path: str) -> list[Any]:
    with httpx.stream("POST", server.url + path, json=ASK | {"stream": True}, timeout=120) as reply:
        assert reply.status_code == 200
        messages = SseReader().push(b"".join(reply.iter_raw()))
    return [json.loads(message.data) for message in messages if message.data != "[DONE]"]


def whole(server: LiveServer, path: str) -> Any:
    reply = httpx.post(server.url + path, json=ASK, timeout=120)
    assert reply.status_code == 200
    return reply.json()


def test_paris_through_both_protocols_whole_and_streamed(server: LiveServer) -> None:
    chat, messages = "/v1/chat/completions", "/v1/messages"
    texts = [
        whole(server, chat)["choices"][0]["message"]["content"],
        whole(server, messages)["content"][0]["text"],
        "".join(
            choice["delta"].get("content") or ""
            for chunk in stream(server, chat)
            for choice in chunk["choices"]
        ),
        "".join(
            event["delta"]["text"]
            for event in stream(server, messages)
            if event["type"] == "content_block_delta"
        ),
    ]
    assert "Paris" in texts[0]
    assert len(set(texts)) == 1
    assert not re.search(r"<\|\w+\|>", texts[0]), "no special token is shown"


class Watched(Engine):
    """An engine, and the ids that passed."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.jobs: list[TokenJob] = []
        self.ids: list[int] = []
        self.matched: list[int] = []

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self.jobs += jobs
        self.inner.submit(jobs)

    def control(self, frames: Sequence[Control]) -> None:
        self.inner.control(frames)

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        async for batch in self.inner.batches():
            for delta in batch:
                self.ids += delta.ids
                self.matched += delta.finish.matched if delta.finish is not None else ()
            yield batch

    def status(self) -> EngineStatus:
        return self.inner.status()

    async def drain(self, timeout_s: float) -> None:
        await self.inner.drain(timeout_s)


def test_greedy_ids_through_the_gateway_are_those_of_transformers(smollm2: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenwire.plugins.engines.cuda.build import build
    from tokenwire.plugins.engines.cuda.settings import CudaSettings
    from tokenwire.plugins.engines.reference.model import load

    loaded = load(smollm2, gguf=None, device="cpu", dtype="auto")
    made: list[Watched] = []

    def watch(settings: CudaSettings, services: Services) -> Watched:
        made.append(Watched(build(settings, services)))
        return made[0]

    config = model(
        "smollm2",
        "watched",
        tokenizer=PluginUse("hf", {"path": str(smollm2 / "tokenizer.json")}),
        checkpoint=str(smollm2),
    )
    watched = factory("watched", watch, CudaSettings)
    with serving(config, plugins=[watched]) as (client, _):
        answer: Any = client.post("/v1/chat/completions", ASK).json()
    (engine,) = made
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(smollm2))
    prompt = tokenizer.apply_chat_template(
        ASK["messages"], add_generation_prompt=True, return_dict=False
    )
    assert list(engine.jobs[0].prompt) == list(prompt)
    generated = loaded._network.generate(
        torch.tensor([prompt]),
        max_new_tokens=ASK["max_tokens"],
        do_sample=False,
        eos_token_id=list(engine.jobs[0].stopping.stop_ids),
    )
    expected = generated[0].tolist()[len(prompt) :]
    assert engine.ids + engine.matched == expected
    text = tokenizer.decode(expected, skip_special_tokens=True)
    assert answer["choices"][0]["message"]["content"] == text
