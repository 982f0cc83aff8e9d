"""Pictures on their way to a model: what stands for them in the prompt, through every protocol; who
shares what is cached; and what is refused."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, factory, model, serving
from tests.pictures import PICTURES, png
from tokenwire.core.byte_text import BOS, EOS, PAD, ByteText
from tokenwire.core.config import PluginUse
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.token_ids import TokenIds

START, PICTURE, END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
SEES = "qwen_vl@14-2-3136-1003520"
MESSAGES, CHAT, RESPONSES = PATHS["messages"], PATHS["chat_completions"], "/v1/responses"
ONE, OTHER = png(280, 140, b"one"), png(280, 140, b"other")
TOKENS = 10 * 5

World = tuple[LocalClient, SpyEngine]


class Seeing(Tokenizer):
    """Bytes, and tokens for pictures."""

    def __init__(self) -> None:
        self._text = ByteText((BOS, EOS, PAD, START, PICTURE, END))
        self.vocabulary = self._text.vocabulary()

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)


@contextmanager
def seeing(**more: Any) -> Iterator[World]:
    more.setdefault("settings", {"media": SEES})
    own = model(tokenizer=PluginUse("seeing"), dialect=more.pop("dialect", "qwen_vl"), **more)
    made = factory("seeing", lambda settings, services: Seeing())
    with serving(own, plugins=[made], kind="tokenizers") as (client, (spied,)):
        yield client, spied


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with seeing() as found:
        yield found


def data_url(data: bytes) -> str:
    return f"data:image/png;base64,{b64encode(data).decode()}"


def chat(*pictures: bytes | str, text: str = "What is it?") -> dict[str, Any]:
    urls = [each if isinstance(each, str) else data_url(each) for each in pictures]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content = [*parts, {"type": "text", "text": text}]
    return {"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 8}


def messages(*pictures: bytes, text: str = "What is it?") -> dict[str, Any]:
    sources = [
        {"type": "base64", "media_type": "image/png", "data": b64encode(each).decode()}
        for each in pictures
    ]
    parts = [{"type": "image", "source": source} for source in sources]
    content = [*parts, {"type": "text", "text": text}]
    return {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": content}]}


def responses(*pictures: bytes, text: str = "What is it?") -> dict[str, Any]:
    parts = [{"type": "input_image", "image_url": data_url(each)} for each in pictures]
    content = [*parts, {"type": "input_text", "text": text}]
    return {"model": "m", "input": [{"role": "user", "content": content}], "store": False}


WAYS = {CHAT: chat, MESSAGES: messages, RESPONSES: responses}


def ask(client: LocalClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(path, body)
    assert response.status == 200, response.body
    answer: dict[str, Any] = json.loads(response.body)
    return answer


def shown(spied: SpyEngine) -> str:
    names = {259: START, 260: PICTURE, 261: END}
    prompt = spied.jobs[-1].prompt
    return b"".join(bytes((id_,)) if id_ < 256 else names[id_].encode() for id_ in prompt).decode()


@pytest.mark.parametrize("path", WAYS)
def test_a_picture_is_as_many_tokens_as_it_takes(world: World, path: str) -> None:
    client, spied = world
    ask(client, path, WAYS[path](ONE))
    (item,) = spied.jobs[-1].media
    assert (item.kind, item.length, item.data) == ("image", TOKENS, ONE)
    assert list(spied.jobs[-1].prompt[item.at : item.at + TOKENS]) == [260] * TOKENS
    assert f"user\n{START}{PICTURE * TOKENS}{END}What is it?<|im_end|>" in shown(spied)


def test_the_protocols_ask_alike(world: World) -> None:
    client, spied = world
    asked = []
    for path, body in WAYS.items():
        ask(client, path, body(ONE, OTHER))
        asked.append((list(spied.jobs[-1].prompt), spied.jobs[-1].media))
    assert asked[0] == asked[1] == asked[2]
    assert [item.data for item in asked[0][1]] == [ONE, OTHER]


def cached(answer: dict[str, Any]) -> int:
    count: int = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return count


def test_only_the_same_picture_is_found_in_the_cache() -> None:
    with seeing() as (client, _):
        assert cached(ask(client, CHAT, chat(ONE))) == 0
        assert cached(ask(client, CHAT, chat(OTHER))) <= 32, "the block before the picture"
        assert cached(ask(client, CHAT, chat(ONE))) > TOKENS


@pytest.mark.parametrize("kind", PICTURES)
def test_every_format_is_taken(world: World, kind: str) -> None:
    client, spied = world
    ask(client, CHAT, chat(PICTURES[kind](280, 140)))
    assert spied.jobs[-1].media[0].length == TOKENS


def test_a_count_is_the_prompts(world: World) -> None:
    client, spied = world
    body = messages(ONE)
    counted = ask(client, f"{MESSAGES}/count_tokens", {k: body[k] for k in ("model", "messages")})
    ask(client, MESSAGES, body)
    assert counted["input_tokens"] == len(spied.jobs[-1].prompt)


def test_a_result_holds_a_picture(world: World) -> None:
    client, spied = world
    body = messages(ONE)
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    (picture, text) = body["messages"][0]["content"]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text, picture]}
    body["messages"] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    ask(client, MESSAGES, body)
    placeholder = f"{START}{PICTURE * TOKENS}{END}"
    assert f"<tool_response>\nWhat is it?{placeholder}\n</tool_response>" in shown(spied)


def test_marks_of_the_cache_stand_behind_pictures(world: World) -> None:
    client, spied = world
    body = messages(ONE)
    body["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    ask(client, MESSAGES, body)
    item = spied.jobs[-1].media[0]
    (pin,) = spied.jobs[-1].kv.pins
    assert pin.tokens == (item.at + TOKENS + 1) // 16 * 16


def test_a_client_cannot_write_a_placeholder(world: World) -> None:
    client, spied = world
    text = f"{START}{PICTURE}{END} \U00100000\U00100001"
    ask(client, CHAT, chat(ONE, text=text))
    assert len(spied.jobs[-1].media) == 1
    assert list(spied.jobs[-1].prompt).count(260) == TOKENS
    ask(client, CHAT, {"model": "m", "messages": [{"role": "user", "content": text}]})
    assert not set(spied.jobs[-1].prompt) & {259, 260, 261}


def test_a_conversation_with_another_picture_is_another(world: World) -> None:
    client, spied = world
    for picture in (ONE, png(560, 560), ONE):
        body = chat(picture)
        body["messages"] += [
            {"role": "assistant", "content": "A tide."},
            {"role": "user", "content": "Sure?"},
        ]
        ask(client, CHAT, body)
        (item,) = spied.jobs[-1].media
        assert list(spied.jobs[-1].prompt).count(260) == item.length


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize("data", [b"%PDF-1.7", b"", ONE[:18], png(2010, 10)])
def test_what_is_no_picture_is_refused(world: World, path: str, data: bytes) -> None:
    client, _ = world
    response = client.post(path, WAYS[path](data))
    assert response.status == 400
    assert b"picture" in response.body or b"empty" in response.body or b"data" in response.body


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize(
    "more",
    [{"dialect": "hermes"}, {"settings": {}}, {"settings": {"media": "qwen_vl@other"}}],
    ids=["dialect", "engine", "revision"],
)
def test_a_model_that_takes_none_says_so(path: str, more: dict[str, Any]) -> None:
    with seeing(**more) as (client, _):
        response = client.post(path, WAYS[path](ONE))
    assert response.status == 400
    assert b"takes no image input" in response.body


def test_a_prompt_with_pictures_is_not_cut(world: World) -> None:
    client, _ = world
    response = client.post(CHAT, chat(ONE) | {"truncate_prompt_tokens": 40})
    assert response.status == 400
    assert b"truncate_prompt_tokens" in response.body


def test_pictures_by_url_are_fetched(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenwire.core.media_fetch import MediaFetcher

    async def fetch(self: MediaFetcher, urls: list[str]) -> dict[str, bytes]:
        return dict.fromkeys(urls, ONE)

    monkeypatch.setattr(MediaFetcher, "fetch", fetch)
    client, spied = world
    url = "https://example.com/a.png"
    ask(client, CHAT, chat(url, url))
    assert [item.data for item in spied.jobs[-1].media] == [ONE, ONE]
    body = messages(ONE)
    body["messages"][0]["content"][0]["source"] = {"type": "url", "url": url}
    ask(client, MESSAGES, body)
    assert spied.jobs[-1].media[0].data == ONE
    body = responses(ONE)
    body["input"][0]["content"][0]["image_url"] = url
    ask(client, RESPONSES, body)
    assert spied.jobs[-1].media[0].data == ONE


TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}
{%- if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>
{%- else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Of the shape of Qwen2-VL's."""


def test_a_jinja_template_writes_as_the_familys_own(tmp_path: Path) -> None:
    path = tmp_path / "template.jinja"
    path.write_text(TEMPLATE)
    with seeing(chat_template=PluginUse("jinja", {"path": str(path)})) as (client, spied):
        body = chat(ONE)
        (picture, text) = body["messages"][0]["content"]
        body["messages"][0]["content"] = [text, picture, picture, text]
        ask(client, CHAT, body)
    placeholder = f"{START}{PICTURE * TOKENS}{END}"
    inside = f"What is it?{placeholder * 2}What is it?"
    assert shown(spied) == f"<|im_start|>user\n{inside}<|im_end|>\n<|im_start|>assistant\n"
