"""docs/configuration.md says of every key what the Structs say, and names every variable."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET

from tokenwire.core.config import (
    CacheConfig,
    Config,
    CorsConfig,
    MediaConfig,
    ModelConfig,
    ParseConfig,
    ServerConfig,
)
from tokenwire.core.config_file import TOP_LEVEL, ShortForm, parse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SECTIONS = {
    "`server`": ServerConfig,
    "`server.cors`": CorsConfig,
    "`server.media`": MediaConfig,
    "`models[]`": ModelConfig,
    "`models[].parse`": ParseConfig,
    "`inference_engine`": ShortForm,
    "`cache`": CacheConfig,
}
TYPES = {
    "str": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "bool | None": "bool",
    "str | None": "str",
    "int | None": "int",
    "tuple[str, ...]": "list of str",
    "tuple[Secret, ...]": "list of secret",
    "Mapping[str, str]": "table of str",
    "PluginUse": "plugin",
    "PluginUse | None": "plugin",
    "CorsConfig": "table",
    "MediaConfig": "table",
    "ParseConfig": "table",
}


def rows(heading):
    """key -> (type, default, meaning) of a section's table."""
    section = re.split(r"^##+ ", TEXT.split(f"### {heading}\n")[1], flags=re.MULTILINE)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return {key.strip("`"): rest for key, *rest in cells}


def shown(default):
    """A default as the documentation writes it."""
    if isinstance(default, msgspec.Struct):
        return ""
    if default is None:
        return "none"
    if default == "":
        return "empty"
    if isinstance(default, tuple):
        default = list(default)
    return f"`{default if isinstance(default, str) else msgspec.json.encode(default).decode()}`"


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_is_there_and_no_other(heading):
    keys = {field.encode_name for field in msgspec.structs.fields(SECTIONS[heading])}
    # Why: `settings` is what is left of the table; it is no key of a file.
    assert set(rows(heading)) == keys - ({"settings"} if heading == "`cache`" else set())


def test_the_top_level_is_there():
    assert set(rows("Top level")) == set(TOP_LEVEL)
    fields = {field.encode_name for field in msgspec.structs.fields(Config)}
    assert set(TOP_LEVEL) == fields - {"warnings"} | {"inference_engine"}


@pytest.mark.parametrize("heading", SECTIONS)
def test_types_and_defaults_are_those_of_the_structs(heading):
    documented = rows(heading)
    for field in msgspec.structs.fields(SECTIONS[heading]):
        if field.encode_name not in documented:
            continue
        kind, default, meaning = documented[field.encode_name]
        written = SECTIONS[heading].__annotations__[field.name]
        if words := re.findall(r"'(\w+)'|\"(\w+)\"", written):
            assert kind == ", ".join(f"`{a or b}`" for a, b in words)
        else:
            assert kind.removesuffix(" or path") == TYPES[written], field.name
        if field.required:
            assert default == "required"
        elif not default.startswith("required"):
            value = field.default if field.default is not msgspec.NODEFAULT else UNSET
            value = field.default_factory() if value is UNSET else value
            assert default == shown(value), field.name
        assert meaning.endswith("."), field.name


MODEL = "models: [{name: m, engine: mock, tokenizer: bytes, dialect: plain}]\n"


def test_the_examples_load():
    examples = re.findall(r"^```(yaml|toml)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert len(examples) == 3
    for syntax, example in examples:
        beside = "" if "models" in example or "inference" in example else MODEL
        parse(example + beside, f"docs.{syntax}", {})


def test_every_environment_variable_is_named():
    sources = [path for folder in ("core", "plugins") for path in (ROOT / folder).rglob("*.py")]
    used = {
        name
        for path in sources
        for name in re.findall(r"TOKENWIRE_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert used == set(re.findall(r"^\| `(TOKENWIRE_[A-Z_]+)`", TEXT, re.MULTILINE))
