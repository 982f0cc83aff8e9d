"""Scripts: what a body may say, which ids follow from it, and how several live together."""

from __future__ import annotations

import asyncio
import json
import math

import pytest

from tokenwire.core.errors import RequestError, StoreError
from tokenwire.core.host import lone_services
from tokenwire.core.ports.store import Store
from tokenwire.core.script import FIRST_MINTED_ID, SCRIPT_VOCABULARY_SIZE, ScriptToken, mint
from tokenwire.core.script_reader import MAX_TOKENS, read_script
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.cache.memory import register_stores


def read(**fields):
    return read_script(json.dumps(fields).encode())


def ids_of(script):
    return [list(step.ids) for step in script.steps]


def memory() -> Store:
    (factory, *_) = register_stores()
    return factory.build(factory.settings(), lone_services())


def test_each_text_is_one_token_and_one_step() -> None:
    script = read(pieces=["a", "b", "a"])
    a, b = mint(b"a", special=False), mint(b"b", special=False)
    assert ids_of(script) == [[a], [b], [a]]
    assert script.tokens == (ScriptToken(a, b"a"), ScriptToken(b, b"b"))
    assert all(FIRST_MINTED_ID <= id < SCRIPT_VOCABULARY_SIZE for id in (a, b))


def test_ids_follow_from_content_alone() -> None:
    assert mint(b"a", special=False) == 1554354738
    assert mint(b"a", special=True) != mint(b"a", special=False)


def test_a_list_is_one_step_of_several_ids() -> None:
    script = read(pieces=[["one", " two"], [], [{"hex": "f09f"}]])
    assert [len(ids) for ids in ids_of(script)] == [2, 0, 1]
    assert script.tokens[-1].bytes == b"\xf0\x9f"


def test_repeats_pauses_and_faults() -> None:
    script = read(pieces=[{"repeat": "x", "times": 3}, {"sleep_s": 2}, {"engine_error": "lost"}])
    assert len(script.steps) == 5
    assert script.steps[3].sleep_s == 2.0
    assert script.steps[4].error == "lost"
    assert len(script.tokens) == 1


def test_a_long_repeat_costs_one_step() -> None:
    script = read(pieces=[{"repeat": "x", "times": 250_000}])
    assert len({id(step) for step in script.steps}) == 1


def test_special_pieces_by_list_and_by_fixed_id() -> None:
    assert read(pieces=["<t>"], special=["<t>"]).tokens[0].special
    fixed = read(pieces=["<t>", "<u>"], special={"<t>": 151657, "<u>": None})
    assert fixed.tokens[0] == ScriptToken(151657, b"<t>", special=True)
    assert fixed.tokens[1].special


def test_a_last_eos_is_the_end_itself() -> None:
    assert len(read(pieces=["a", "<eos>"]).steps) == 1
    assert read(pieces=["a", "<eos>"], special={"<eos>": 2}).eos_id == 2
    assert len(read(pieces=["a", "<eos>"], finish="length").steps) == 2


def test_choices_and_their_tokens() -> None:
    script = read(choices=[{"pieces": ["a"], "format": "plain"}, {"pieces": ["b"]}])
    assert [ids_of(choice) for choice in script.choices] == [
        [[mint(b"a", special=False)]],
        [[mint(b"b", special=False)]],
    ]
    assert {token.bytes for token in script.tokens} == {b"a", b"b"}


def test_logprobs_may_be_minus_infinity() -> None:
    assert read(pieces=["a"], logprobs=[[-0.1, "-inf"]]).logprobs == ((-0.1, -math.inf),)


BAD = [
    ({}, "pieces"),
    ({"pieces": "a"}, "pieces"),
    ({"pieces": [1]}, "pieces[0]"),
    ({"pieces": [None]}, "pieces[0]"),
    ({"pieces": ["a", {"hex": "zz"}]}, "pieces[1].hex"),
    ({"pieces": [{"hex": "00", "times": 2}]}, "pieces[0]"),
    ({"pieces": [{"repeat": "a", "times": -1}]}, "pieces[0].times"),
    ({"pieces": [{"repeat": "a", "times": True}]}, "pieces[0].times"),
    ({"pieces": [{"repeat": "a", "times": MAX_TOKENS + 1}]}, "pieces[0]"),
    ({"pieces": [{"sleep_s": -1}]}, "pieces[0].sleep_s"),
    ({"pieces": [{"sleep_s": 1e9}]}, "pieces[0].sleep_s"),
    ({"pieces": [{"engine_error": ""}]}, "pieces[0]"),
    ({"pieces": [["a", ["b"]]]}, "pieces[0]"),
    ({"pieces": [], "finish": "stop"}, "finish"),
    ({"pieces": [], "finish": []}, "finish"),
    ({"pieces": [], "prompt_tail": 3}, "prompt_tail"),
    ({"pieces": [], "special": "x"}, "special"),
    ({"pieces": [], "special": {"x": 7}}, "special.x"),
    ({"pieces": [], "special": {"x": "7"}}, "special.x"),
    ({"pieces": [], "special": {"x": SCRIPT_VOCABULARY_SIZE}}, "special.x"),
    ({"pieces": [], "logprobs": [[]]}, "logprobs[0]"),
    ({"pieces": [], "logprobs": [[0.5]]}, "logprobs[0]"),
    ({"pieces": [], "logprobs": 1}, "logprobs"),
    ({"pieces": [], "piece": []}, "piece"),
    ({"choices": [{"pieces": [], "choices": [{"pieces": []}]}]}, "choices[0].choices"),
    ({"choices": [{"pieces": [3]}]}, "choices[0].pieces[0]"),
    ({"choices": 1}, "choices"),
    ({"pieces": ["x", "y"], "special": {"x": 900, "y": 900}}, "pieces[1]"),
]


@pytest.mark.parametrize(("fields", "param"), BAD)
def test_a_bad_script_is_refused_by_field(fields: dict[str, object], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(**fields)
    assert caught.value.param == param
    assert param in caught.value.message


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[]", b"\xff", b'{"pieces":["\\ud800"]}', b"[" * 9999]
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        read_script(body)


def test_another_worker_loads_what_one_put() -> None:
    async def go() -> None:
        store = memory()
        one, other = ScriptBook(store), ScriptBook(store)
        script = await one.put("s", b'{"pieces": ["a"]}')
        assert other.get("s") is None
        assert await other.load("s") == script
        assert other.token(script.tokens[0].id) == script.tokens[0]
        await one.put("s", b'{"pieces": ["b"]}')
        assert (await other.load("s")) == one.get("s")
        assert await one.names() == ("s",)
        assert await one.delete("s")
        assert await other.load("s") is None
        assert not await one.delete("s")
        await store.close()

    asyncio.run(go())


def test_a_replaced_scripts_tokens_can_still_be_decoded() -> None:
    async def go() -> None:
        book = ScriptBook(memory())
        old = await book.put("s", b'{"pieces": ["a"]}')
        await book.put("s", b'{"pieces": ["b"]}')
        assert book.token(old.tokens[0].id) == old.tokens[0]
        assert book.token(12345) is None

    asyncio.run(go())


def test_two_scripts_may_not_mean_different_things_by_one_id() -> None:
    async def go() -> None:
        book = ScriptBook(memory())
        await book.put("first", b'{"pieces": ["x"], "special": {"x": 900}}')
        other = b'{"pieces": ["y"], "special": {"y": 900}}'
        with pytest.raises(RequestError, match="'first'"):
            await book.put("second", other)
        await book.delete("first")
        await book.put("second", other)
        assert book.token(900) == ScriptToken(900, b"y", special=True)

    asyncio.run(go())


def test_a_name_has_a_length() -> None:
    async def go() -> None:
        book = ScriptBook(memory())
        for name in ("", "x" * 257):
            with pytest.raises(RequestError, match="name"):
                await book.put(name, b'{"pieces": []}')

    asyncio.run(go())


def test_a_lost_store_leaves_what_is_loaded() -> None:
    class Lost:
        async def get(self, namespace: str, key: str) -> bytes:
            raise StoreError("gone")

    async def go() -> None:
        book = ScriptBook(memory())
        script = await book.put("s", b'{"pieces": []}')
        book._store = Lost()
        assert await book.load("s") == script

    asyncio.run(go())


def test_the_empty_step_has_no_ids() -> None:
    assert read(pieces=[[]]).steps[0].ids == TokenIds()
