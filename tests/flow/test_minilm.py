"""A real embedding model, served by the engine of our own, asked as OpenAI's own library asks."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.live import COMMAND, LiveServer, live_server

pytestmark = pytest.mark.torch

TEXTS = [
    "The sea was calm.",
    "The ocean lay still.",
    "Interest rates rose again by a quarter of a point, to nobody's surprise.",
]


@pytest.fixture(scope="module")
def server(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    pytest.importorskip("torch")
    engine = {"plugin": "cuda", "task": "embed", "device": "cpu", "threads": 1}
    models = [{"name": "minilm", "checkpoint": str(minilm), "engine": engine}]
    with live_server(json.dumps({"models": models}), tmp_path_factory.mktemp("minilm")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: LiveServer) -> Iterator[Any]:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def likeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_related_sentences_are_closer_in_both_formats(client: Any) -> None:
    packed = client.embeddings.create(model="minilm", input=TEXTS)  # the library asks for base64
    plain = client.embeddings.create(model="minilm", input=TEXTS, encoding_format="float")
    assert [each.index for each in packed.data] == [0, 1, 2]
    one, near, far = (each.embedding for each in plain.data)
    for ours, theirs in zip(packed.data, plain.data, strict=True):
        assert ours.embedding == pytest.approx(theirs.embedding, abs=1e-6)
    assert likeness(one, one) == pytest.approx(1, abs=1e-5)
    assert likeness(one, near) > 0.5 > 0.3 > likeness(one, far)
    assert packed.model == "minilm"
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > len(TEXTS) * 4


def test_the_vectors_are_those_of_transformers(client: Any, minilm: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(minilm))
    network = transformers.AutoModel.from_pretrained(str(minilm), dtype=torch.float32).eval()
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = network(**given).last_hidden_state
    mask = given["attention_mask"][..., None]
    wanted = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    found = client.embeddings.create(model="minilm", input=TEXTS, encoding_format="float")
    torch.testing.assert_close(
        torch.tensor([each.embedding for each in found.data]), wanted, atol=1e-5, rtol=0
    )
    assert found.usage.prompt_tokens == int(given["attention_mask"].sum())
    ids = [row[: int(length)] for row, length in zip(
        given["input_ids"].tolist(), given["attention_mask"].sum(1), strict=True
    )]  # fmt: skip
    again = client.embeddings.create(model="minilm", input=ids, encoding_format="float")
    for one, other in zip(found.data, again.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)


def test_spellings_of_special_tokens_are_text(client: Any) -> None:
    plain = client.embeddings.create(model="minilm", input="a [SEP] b")
    assert plain.usage.prompt_tokens > 5


def test_a_long_text_is_refused_or_cut_before_its_end_token(client: Any) -> None:
    openai = importlib.import_module("openai")
    text = "sea " * 300
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model="minilm", input=text)
    assert refused.value.code == "context_length_exceeded"
    assert "302 tokens > 256" in refused.value.message
    cut = {"truncate_prompt_tokens": -1}
    found = client.embeddings.create(model="minilm", input=text, extra_body=cut)
    assert found.usage.prompt_tokens == 256
    fits = client.embeddings.create(model="minilm", input="sea " * 254)
    assert fits.data[0].embedding == pytest.approx(found.data[0].embedding, abs=1e-6)


def test_dimensions(client: Any) -> None:
    openai = importlib.import_module("openai")
    few = client.embeddings.create(model="minilm", input="sea", dimensions=8).data[0].embedding
    whole = client.embeddings.create(model="minilm", input="sea").data[0].embedding
    assert likeness(few, few) == pytest.approx(1, abs=1e-5)
    length = likeness(whole[:8], whole[:8]) ** 0.5
    assert few == pytest.approx([each / length for each in whole[:8]], abs=1e-5)
    with pytest.raises(openai.BadRequestError, match="has 384, got 385"):
        client.embeddings.create(model="minilm", input="sea", dimensions=385)


def test_it_makes_no_text_and_says_so(client: Any) -> None:
    openai = importlib.import_module("openai")
    with pytest.raises(openai.BadRequestError, match="makes vectors, and no text"):
        client.chat.completions.create(
            model="minilm", messages=[{"role": "user", "content": "Hello?"}]
        )
    assert [model.id for model in client.models.list()] == ["minilm"]


def test_it_tells_what_it_does(server: LiveServer) -> None:
    (told,) = httpx.get(f"{server.url}/v1/capabilities").json()["data"]
    assert told["tasks"] == ["embed"]
    assert "embeddings" in told["protocols"]
    assert "chat_completions" not in told["protocols"]
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    assert "/v1/embeddings" in paths


def test_tokenize_gives_the_ids_that_the_model_reads(server: LiveServer) -> None:
    text = "a calm sea, [SEP] and more"
    tokens = httpx.post(f"{server.url}/tokenize", json={"prompt": text}).json()["tokens"]
    body = {"input": [text, text]}
    asked = httpx.post(f"{server.url}/v1/embeddings", json=body).json()
    given = httpx.post(f"{server.url}/v1/embeddings", json={"input": tokens}).json()
    one, other = asked["data"][0]["embedding"], given["data"][0]["embedding"]
    assert asked["usage"]["prompt_tokens"] == 2 * len(tokens)
    assert one == pytest.approx(other, abs=1e-6)
    assert (tokens[0], tokens[-1], tokens.count(tokens[-1])) == (101, 102, 1)


def test_its_engine_tells_of_itself(server: LiveServer) -> None:
    assert httpx.post(f"{server.url}/v1/embeddings", json={"input": "a"}).status_code == 200
    told = httpx.get(f"{server.url}/engines").text
    assert re.search(r'"dimensions":\s*384', told), told
    assert 'protocol="embeddings"' in httpx.get(f"{server.url}/metrics").text


def test_the_command_line_asks_it(server: LiveServer) -> None:
    command = [str(COMMAND), "call", "--url", server.url, "--protocol", "embeddings", "a calm sea"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 384
