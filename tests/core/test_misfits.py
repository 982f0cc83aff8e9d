"""A dialect that does not fit the chat template is warned of at start, by `config check` and by
`explain`; `explain` and `conform` know what was meant by another name."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.flow.wired import model, serving
from tokenwire.core.cli import main
from tokenwire.core.cli.conforming import pick
from tokenwire.core.cli.explaining import decode
from tokenwire.core.cli.serving import default_config, misfits
from tokenwire.core.config import Config, PluginUse
from tokenwire.core.dialect_names import ALIASES
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.host import Host, lone_services

LOOP = "{% for m in messages %}{{ m.content }}{% endfor %}"


def of(dialect: str) -> str:
    """A template with this family's markers."""
    found = Host().dialects.build(dialect, {}, lone_services())
    assert found.template_markers
    return LOOP + "{# " + " ".join(found.template_markers) + " #}"


def using(path: Path, source: str, dialect: str, **more: Any) -> Config:
    path.write_text(source)
    template = PluginUse("jinja", {"path": str(path)})
    return Config(models=(model(engine="mock", dialect=dialect, chat_template=template, **more),))


@pytest.mark.parametrize(
    ("dialect", "markers", "more", "is_warned"),
    [
        ("hermes", "kimi", {}, True),
        ("qwen3", "kimi", {}, True),
        ("plain", "kimi", {}, True),
        ("kimi", "kimi", {}, False),
        ("auto", "kimi", {}, False),
        ("hermes", "kimi", {"parser": PluginUse("kimi")}, False),
        ("hermes", "", {}, False),
    ],
)
def test_which_do_not_fit(
    tmp_path: Path, dialect: str, markers: str, more: dict[str, object], is_warned: bool
) -> None:
    source = of(markers) if markers else LOOP
    config = using(tmp_path / "t.jinja", source, dialect, **more)
    found = misfits(config, Host())
    assert bool(found) is is_warned
    if is_warned:
        assert found[0].startswith(f"model m: dialect {ALIASES.get(dialect, dialect)!r} is conf")
        assert " as 'kimi' does: calls and reasoning may not be found" in found[0]


def test_a_template_that_is_not_there_is_no_warning(tmp_path: Path) -> None:
    config = using(tmp_path / "t.jinja", LOOP, "hermes")
    (tmp_path / "t.jinja").unlink()
    assert misfits(config, Host()) == []


def test_it_is_logged_at_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = using(tmp_path / "t.jinja", of("kimi"), "hermes")
    with caplog.at_level(logging.WARNING, "tokenwire.deployment"), serving(*config.models):
        pass
    assert "model m: dialect 'hermes' is configured, but the chat template has" in caplog.text


def test_the_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.jinja").write_text(of("kimi"))
    (tmp_path / "c.yaml").write_text(
        "models: [{name: m, engine: mock, tokenizer: bytes, dialect: hermes,"
        f" chat_template: {{plugin: jinja, path: {tmp_path / 't.jinja'}}}}}]\n"
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    (tmp_path / "r.json").write_text(json.dumps(body))
    config = str(tmp_path / "c.yaml")
    for arguments in (
        ["config", "check", config],
        ["explain", str(tmp_path / "r.json"), "--config", config],
    ):
        assert main(arguments) == 0
        assert "warning: model m: dialect 'hermes' is configured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("protocol", "body", "hint"),
    [
        (
            "chat_completions",
            {"model": "mock", "input": "hi"},
            "messages is missing; it is a request of responses: say --protocol responses",
        ),
        (
            "messages",
            {"model": "mock", "messages": [{"role": "user", "content": "hi"}]},
            "; it is a request of chat_completions: say --protocol chat_completions",
        ),
        ("chat_completions", {"model": "mock"}, "messages is missing"),
        (
            "chat_completions",
            {"model": "mock", "input": "hi", "messages": [], "temperature": 9},
            "messages: expected",
        ),
    ],
)
def test_explain_says_whose_request_it_is(
    tmp_path: Path, protocol: str, body: dict[str, object], hint: str
) -> None:
    config = default_config(tmp_path)
    with pytest.raises(RequestError) as caught:
        decode(config, Host(), protocol, json.dumps(body).encode())
    assert hint in caught.value.message
    assert ("; it is" in caught.value.message) is ("; it is" in hint)


def test_conform_takes_other_names_of_dialects() -> None:
    host = Host()
    assert pick("qwen3", host) == pick("dialect.qwen3", host) == ("dialect", "hermes")
    assert pick("gpt_oss", host) == ("dialect", "harmony")
    assert pick("chatml", host) == ("template", "chatml"), "a plugin's own name goes first"
    assert pick("dialect.chatml", host) == ("dialect", "hermes")
    with pytest.raises(ConfigError, match="'qwen9'"):
        pick("dialect.qwen9", host)
