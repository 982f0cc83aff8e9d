"""Every row of every protocol's capability table is shown on the live flow: another value is
another job or answer, or is refused by name, or is listed as ignored. The values are in
tests/flow/fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict, replace

from tests.flow.fields.examples import Example, Examples
from tests.flow.spy import SpyEngine
from tests.flow.wired import Told, factory, model, serving
from tokenwire.core.byte_text import BOS, EOS, PAD, ByteText
from tokenwire.core.config import PluginUse
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.testing.client import LocalClient
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import CAPABILITIES, TokenJob
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.engines.mock.spelling import KINDS

ROOT = Path(__file__).parents[2]
IGNORED = "x-tokenwire-ignored"
ALL = (*CAPABILITIES, *(f"grammar:{kind}" for kind in KINDS))
GAP = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


def _codecs() -> dict[str, Codec]:
    codecs = Host().codecs
    built = {name: codecs.build(name, {}, lone_services()) for name in codecs}
    return {name: codec for name, codec in built.items() if codec.fields}


CODECS = _codecs()
ROWS = [(name, rule) for name, codec in CODECS.items() for rule in codec.fields]


def examples(protocol: str) -> Examples:
    name = f"tests.flow.fields.{protocol}"
    assert find_spec(name) is not None, f"{protocol} has a table and no {name} that shows it"
    found = import_module(name).EXAMPLES
    assert isinstance(found, Examples)
    return found


class OddBytes(Tokenizer):
    """Bytes, with tokens for filling gaps, and a first token."""

    def __init__(self, *, begins: bool) -> None:
        self._text = ByteText((BOS, EOS, PAD, *GAP))
        own = self._text.vocabulary()
        self.vocabulary = replace(own, begin_ids=(256,)) if begins else own

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)


class World:
    """The models that examples may ask, and what was seen of a request to one of them."""

    def __init__(self, client: LocalClient, spies: list[SpyEngine], told: Told) -> None:
        self._client = client
        self._spies = spies
        self._told = told

    def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        volatile: frozenset[str],
    ) -> Seen:
        before = [len(spy.jobs) for spy in self._spies]
        started = len(self._told.started)
        data = json.dumps(body).encode()
        response = self._client.send(HttpRequest("POST", path, headers, body=data))
        jobs = [
            _job(job, is_seeded="seed" in str(body))
            for spy, old in zip(self._spies, before, strict=True)
            for job in spy.jobs[old:]
        ]
        people = [(each.user, each.session) for each in self._told.started[started:]]
        listed = response.headers.get(IGNORED, "")
        return Seen(
            response.status,
            _still(response.body, volatile),
            [jobs, people],
            tuple(listed.split(", ")) if listed else (),
        )


class Seen(msgspec.Struct, frozen=True):
    status: int
    answer: Any
    inside: Any
    ignored: tuple[str, ...]


def _job(job: TokenJob, *, is_seeded: bool) -> dict[str, Any]:
    """What the engine was told, without what the gateway makes up."""
    told = asdict(job)
    del told["job"]
    if not is_seeded:
        told["sampling"] = replace(job.sampling, seed=0)
    return told


def _still(body: bytes, volatile: frozenset[str]) -> Any:
    """An answer without what differs from request to request."""
    try:
        return _without(json.loads(body), volatile)
    except ValueError:
        parts = []
        for line in body.decode().splitlines():
            _, _, data = line.partition("data: ")
            try:
                parts.append(_without(json.loads(data), volatile))
            except ValueError:
                parts.append(line)
        return "\n".join(map(repr, parts))


def _without(value: Any, volatile: frozenset[str]) -> Any:
    match value:
        case dict():
            return {
                key: _without(item, volatile) for key, item in value.items() if key not in volatile
            }
        case list():
            return [_without(item, volatile) for item in value]
    return value


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    told = Told()
    lacks = {"without": [name for name in ALL if name not in ("credit", "stop_ids")]}
    with serving(
        model("m", dialect="hermes"),
        model("other", dialect="hermes"),
        model("lacks", dialect="hermes", settings=lacks),
        model("gaps", tokenizer=PluginUse("gaps")),
        model("begins", tokenizer=PluginUse("begins")),
        model("e", tokenizer=PluginUse("begins"), settings={"tasks": ["embed"]}),
        model("e2", settings={"tasks": ["embed"], "embedding_size": 8}),
        observers=[told],
        kind="tokenizers",
        plugins=[
            factory("gaps", lambda settings, services: OddBytes(begins=False)),
            factory("begins", lambda settings, services: OddBytes(begins=True)),
        ],
    ) as (client, spies):
        yield World(client, spies, told)


def bodies(table: Examples, example: Example, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request without the field, and one with it."""
    least = {**table.least, **example.beside}
    if "model" in least:
        least["model"] = name
    first, second = {**least, **(example.instead or {})}, {**least, **example.given}
    return tuple({k: v for k, v in each.items() if v is not ...} for each in (first, second))  # type: ignore[return-value]


@pytest.mark.parametrize("protocol", CODECS)
def test_every_row_has_an_example(protocol: str) -> None:
    names = [rule.name for rule in CODECS[protocol].fields]
    assert len(names) == len(set(names)), "a row stands twice"
    assert set(examples(protocol).examples) == set(names)


@pytest.mark.parametrize(
    ("protocol", "rule"), ROWS, ids=lambda value: getattr(value, "name", value)
)
def test_the_row_is_true(world: World, protocol: str, rule: FieldRule) -> None:
    table = examples(protocol)
    example = table.examples[rule.name]
    if example.elsewhere:
        file, _, test = example.elsewhere.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text()
        return
    without, with_it = bodies(table, example, example.model)
    volatile = frozenset(table.volatile)
    plain = world.ask(table.path, without, {}, volatile)
    changed = world.ask(table.path, with_it, example.headers, volatile)
    shows(rule.how, example.named or rule.name, plain, changed)
    if rule.how in ("used", "emulated"):
        again = world.ask(table.path, without, {}, volatile)
        assert again == plain, "the same request is the same: else a difference shows nothing"


@pytest.mark.parametrize(
    ("protocol", "rule"),
    [row for row in ROWS if any(not need.startswith("dialect:") for need in row[1].needs)],
    ids=lambda value: getattr(value, "name", value),
)
def test_an_engine_that_lacks_it(world: World, protocol: str, rule: FieldRule) -> None:
    table = examples(protocol)
    example = table.examples[rule.name]
    without, with_it = bodies(table, example, "lacks")
    volatile = frozenset(table.volatile)
    plain = world.ask(table.path, without, {}, volatile)
    changed = world.ask(table.path, with_it, example.headers, volatile)
    shows(rule.otherwise, example.lacking or example.named or rule.name, plain, changed)


def shows(how: str, name: str, plain: Seen, changed: Seen) -> None:
    assert plain.status == 200, plain.answer
    assert name not in plain.ignored
    if how == "refused":
        assert changed.status == 400, changed.answer
        assert name.partition("[")[0].partition(".")[0] in json.dumps(changed.answer)
        return
    assert changed.status == 200, changed.answer
    if how == "ignored":
        assert name in changed.ignored
        return
    assert name not in changed.ignored
    assert (plain.answer, plain.inside) != (changed.answer, changed.inside)


# --- the route -----------------------------------------------------------------------------------


def test_the_route_says_what_the_tables_say(world: World) -> None:
    client = world._client
    listed: Any = client.send(HttpRequest("GET", "/v1/capabilities")).json()
    by_name = {each["id"]: each for each in listed["data"]}
    assert set(by_name) == {"m", "other", "lacks", "gaps", "begins", "e", "e2"}
    own = by_name["m"]
    assert own == client.send(HttpRequest("GET", "/v1/capabilities/m")).json()
    assert own["ready"] is True
    assert own["context_length"] == 8192
    assert own["tasks"] == ["generate"]
    assert own["dialect"] == {"name": "hermes", "why": "configured"}
    answer = client.post("/v1/completions", {"model": "m", "prompt": "a"})
    assert answer.headers["x-tokenwire-fingerprint"] == own["fingerprint"]
    assert by_name["e"]["tasks"] == ["embed"]
    assert (own["embedding_size"], by_name["e2"]["embedding_size"]) == (None, 8)
    for protocol, codec in CODECS.items():
        tasks = {name for name, each in by_name.items() if protocol in each["protocols"]}
        assert ("m" in tasks, "e" in tasks) == (codec.task != "embed", codec.task != "generate")
        said = by_name["e" if codec.task == "embed" else "m"]["protocols"][protocol]
        assert {name: field["how"] for name, field in said.items()} == {
            rule.name: rule.otherwise if said[rule.name].get("lacks") else rule.how
            for rule in codec.fields
        }
        lacking = by_name["lacks"]["protocols"].get(protocol, {})
        for rule in codec.fields:
            lacks = [name for name in rule.needs if name in ALL]
            if lacks:
                assert lacking[rule.name]["how"] == rule.otherwise
                assert set(lacks) <= set(lacking[rule.name]["lacks"])


def test_a_model_that_is_not_served_has_no_capabilities(world: World) -> None:
    response = world._client.send(HttpRequest("GET", "/v1/capabilities/a/b"))
    assert response.status == 404
    assert b"'a/b' is not served" in response.body
