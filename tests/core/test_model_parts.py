"""One model's configuration reaches its tokenizer, template and parser, and theirs alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import Struct

from tokenwire.core.config import ModelConfig, ParseConfig, PluginUse
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host, lone_services
from tokenwire.core.model_parts import ModelParts, assemble
from tokenwire.core.ports.dialect import Dialect, Parser, ParserMaker, ParserSetup, Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.core.tokens import EngineCard
from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer


class Full(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings that a model's configuration may give."""

    merge_system: str = "unset"
    roles: Mapping[str, str] = {}
    reasoning: str = "unset"
    sentencepiece: bool = False
    own: int = 0


class Some(Struct, frozen=True, forbid_unknown_fields=True):
    own: int = 0


class Written(Template):
    def render(self, dialogue: Dialogue, now: float) -> Segments:
        return Segments((Segment("x", "template"),))


class Maker(ParserMaker):
    def parser(self, setup: ParserSetup) -> Parser:
        raise NotImplementedError


class Bench:
    """Plugins that keep what they were built with, by name."""

    def __init__(self) -> None:
        self.built: dict[str, tuple[Any, Services]] = {}
        module = ModuleType("bench")
        things: dict[str, list[tuple[str, type[Struct], Any]]] = {
            "templates": [("t", Full, Written), ("t2", Some, Written)],
            "parsers": [("p", Full, Maker), ("p2", Some, Maker)],
            "tokenizers": [("b", Full, BytesTokenizer), ("b2", Some, BytesTokenizer)],
            "dialects": [("d", Some, lambda: Dialect("d", template="t", parser="p"))],
        }
        for kind, entries in things.items():
            factories = [self._factory(*entry) for entry in entries]

            def register(factories: Any = factories) -> Iterable[Factory[Any]]:
                return factories

            setattr(module, f"register_{kind}", impl(register))
        self.host = Host({"bench": module})

    def _factory(self, name: str, settings: type[Struct], make: Any) -> Factory[Any]:
        def build(given: Struct, services: Services) -> Any:
            self.built[name] = (given, services)
            return make()

        return Factory(name, settings, build)

    def assemble(self, **config: Any) -> ModelParts:
        full = {"engine": PluginUse("mock"), "tokenizer": PluginUse("b"), "dialect": "d"} | config
        return assemble(ModelConfig(name="m", **full), self.host, lone_services())


@pytest.fixture
def bench() -> Bench:
    return Bench()


def folder(path: Path, **files: Any) -> str:
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return str(path)


def test_what_the_model_says_reaches_template_and_parser(bench: Bench) -> None:
    bench.assemble(
        reasoning="none", parse=ParseConfig(merge_system="front", roles={"developer": "system"})
    )
    wanted = Full(merge_system="front", roles={"developer": "system"}, reasoning="none")
    assert bench.built["t"][0] == wanted
    assert bench.built["p"][0] == wanted


def test_a_plugins_own_settings_win_and_unknown_ones_are_not_given(bench: Bench) -> None:
    bench.assemble(
        reasoning="none",
        chat_template=PluginUse("t", {"merge_system": "never", "own": 1}),
        parser=PluginUse("p2", {"own": 2}),
        parse=ParseConfig(merge_system="front"),
    )
    assert bench.built["t"][0] == Full(merge_system="never", reasoning="none", own=1)
    assert bench.built["p2"][0] == Some(own=2)
    assert "p" not in bench.built


def test_the_template_named_is_the_one_used(bench: Bench) -> None:
    bench.assemble(chat_template=PluginUse("t2"))
    assert set(bench.built) == {"b", "d", "t2", "p"}


def test_a_misspelt_setting_names_its_model_and_place(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"models\.m\.parser"):
        bench.assemble(parser=PluginUse("p", {"onw": 1}))
    with pytest.raises(ConfigError, match=r"models\.m"):
        bench.assemble(parser=PluginUse("none"))


def test_every_part_gets_the_models_services(bench: Bench, tmp_path: Path) -> None:
    parts = bench.assemble(checkpoint=folder(tmp_path), context_length=99)
    for name in ("b", "t", "p"):
        services = bench.built[name][1]
        assert services.model == "m"
        assert services.context_length == 99
        assert services.checkpoint is not None
        assert services.checkpoint.folder == tmp_path
    assert bench.built["b"][1].tokenizer is None
    tokenizer = bench.built["t"][1].tokenizer
    assert tokenizer is parts.services.tokenizer is parts.model.renderer.tokenizer
    assert parts.services.context_length == 99
    card = EngineCard("e", vocab_size=9, context_length=1000)
    assert parts.model.jobs.context_length(card) == 99
    assert (parts.model.name, parts.model.is_mock) == ("m", True)
    assert not bench.assemble(engine=PluginUse("other")).model.is_mock


def test_sentencepiece_is_said_to_tokenizers_that_have_a_name_for_it(bench: Bench) -> None:
    bench.assemble(dialect="sentencepiece")
    assert bench.built["b"][0].sentencepiece
    bench.assemble()
    assert not bench.built["b"][0].sentencepiece
    bench.assemble(dialect="sentencepiece", tokenizer=PluginUse("b2"))
    assert bench.built["b2"][0] == Some()


def test_the_checkpoint_is_the_folder_named_or_the_tokenizers(tmp_path: Path) -> None:
    named, beside = tmp_path / "named", tmp_path / "beside"
    for path in (named, beside):
        path.mkdir()
    seen = []

    def build(given: Any, services: Services) -> Any:
        seen.append(services.checkpoint)
        return BytesTokenizer()

    class ByPath(Struct, frozen=True, forbid_unknown_fields=True):
        path: str

    module = ModuleType("by_path")
    module.register_tokenizers = impl(lambda: [Factory("by_path", ByPath, build)])  # type: ignore[attr-defined]
    host = Host({"by_path": module})
    use = PluginUse("by_path", {"path": str(beside / "tokenizer.json")})
    for checkpoint in (None, str(named)):
        config = ModelConfig("m", PluginUse("mock"), use, "plain", checkpoint=checkpoint)
        assemble(config, host, lone_services())
    assert [checkpoint.folder for checkpoint in seen] == [beside, named]


def test_a_model_needs_a_tokenizer_or_a_folder_with_one(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"models\.m: wanted a tokenizer or a checkpoint"):
        bench.assemble(tokenizer=None)
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        bench.assemble(tokenizer=None, checkpoint=folder(tmp_path))


def test_a_broken_generation_config_is_said_at_start(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text("[1]")
    with pytest.raises(ConfigError, match=r"generation_config\.json"):
        bench.assemble(checkpoint=str(tmp_path))


TEMPLATE = "{% for m in messages %}{{ m.role }}|{{ m.content }};{% endfor %}"


def test_a_template_in_the_folder_is_rendered_and_tells_the_dialect(
    bench: Bench, tmp_path: Path
) -> None:
    marks = '{# <tool_call> "arguments": #}'
    config = {"chat_template": TEMPLATE + marks, "eos_token": "<eos>"}
    parts = bench.assemble(
        dialect="auto",
        tokenizer=PluginUse("bytes"),
        checkpoint=folder(tmp_path, tokenizer_config=config),
    )
    assert parts.dialect == "hermes"
    assert "<tool_call>" in parts.why
    assert render(parts, "a") == "user|a;"


def test_a_template_named_by_path_wins_over_the_folders(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "other.jinja"
    path.write_text("other {{ messages[0].content }}")
    parts = bench.assemble(
        dialect="auto",
        tokenizer=PluginUse("bytes"),
        chat_template=PluginUse("jinja", {"path": str(path)}),
        checkpoint=folder(tmp_path, tokenizer_config={"chat_template": TEMPLATE}),
    )
    assert parts.dialect == "plain"
    assert render(parts, "a") == "other a"


def test_roles_and_system_turns_are_bent_as_configured(bench: Bench, tmp_path: Path) -> None:
    parse = ParseConfig(merge_system="front", roles={"developer": "system", "user": "human"})
    parts = bench.assemble(
        tokenizer=PluginUse("bytes"),
        chat_template=PluginUse("jinja", {"source": TEMPLATE}),
        parse=parse,
    )
    assert render(parts, "one", "two") == "system|one\n\ntwo;human|hi;"


def render(parts: ModelParts, *texts: str) -> str:
    if len(texts) == 1:
        turns = (Turn("user", (Text(texts[0]),)),)
    else:
        developers = (Turn("developer", (Text(text),)) for text in texts)
        first, *rest = developers
        turns = (first, Turn("user", (Text("hi"),)), *rest)
    return parts.model.renderer.prompt(Dialogue(turns), 0.0).text
