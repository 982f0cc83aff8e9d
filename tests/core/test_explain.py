"""`explain` over the built-in plugins: what a request becomes, and what is said where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tokenwire.core.cli import main
from tokenwire.core.cli.explaining import decode, explained
from tokenwire.core.cli.serving import default_config
from tokenwire.core.config import ModelConfig, PluginUse
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.host import Host

ROOT = Path(__file__).parents[2]
TURN = {"role": "user", "content": "Hi <eos>\x1b[31m"}
CHAT = {"model": "mock", "messages": [{"role": "system", "content": "Be brief."}, TURN]}
MESSAGES = {"model": "mock", "max_tokens": 9, "system": "Be brief.", "messages": [TURN]}


@pytest.fixture(scope="module")
def host():
    return Host(environ={})


@pytest.fixture
def config(tmp_path):
    return default_config(tmp_path)


@pytest.mark.parametrize(("protocol", "body"), [("chat_completions", CHAT), ("messages", MESSAGES)])
def test_pieces_add_up_to_the_prompt_and_spans_cover_it(host, config, protocol, body):
    call = decode(config, host, protocol, json.dumps(body).encode())
    found = explained(config, host, call, 0.0)
    assert "".join(piece.text for piece in found.pieces) == found.prompt.text
    assert len(found.pieces) == len(found.prompt.ids)
    ends = [0, *(span.end for span in found.prompt.spans)]
    assert [span.start for span in found.prompt.spans] == ends[:-1]
    assert ends[-1] == len(found.prompt.ids)
    clients = [
        "".join(piece.text for piece in found.pieces[span.start : span.end])
        for span in found.prompt.spans
        if span.source == "client"
    ]
    assert clients == ["Be brief.", TURN["content"]]


def test_both_protocols_ask_the_same(host, config):
    prompts = [
        explained(
            config, host, decode(config, host, protocol, json.dumps(body).encode()), 0.0
        ).prompt
        for protocol, body in (("chat_completions", CHAT), ("messages", MESSAGES))
    ]
    assert prompts[0] == prompts[1]


def test_a_model_that_is_not_configured_is_said_with_the_nearest(host, config):
    call = decode(config, host, "chat_completions", json.dumps(CHAT | {"model": "mokc"}).encode())
    with pytest.raises(ConfigError, match=r"model 'mokc' is not configured; the nearest is 'mock'"):
        explained(config, host, call, 0.0)


def test_a_short_form_model_answers_to_any_name(host, config):
    unnamed = ModelConfig("", PluginUse("remote"), PluginUse("bytes"), dialect="plain")
    call = decode(config, host, "chat_completions", json.dumps(CHAT | {"model": "any"}).encode())
    found = explained(type(config)(models=(unnamed,)), host, call, 0.0)
    assert "Be brief." in found.prompt.text


def test_plugins_have_their_settings(host, config):
    told = replace(config, plugins={"chat_completions": {"reasoning_feild": "both"}})
    body = json.dumps(CHAT).encode()
    with pytest.raises(ConfigError, match=r"plugins\.chat_completions: reasoning_feild .* nearest"):
        decode(told, host, "chat_completions", body)
    decode(replace(told, plugins={"messages": {}}), host, "chat_completions", body)


def test_the_file_for_scripts_is_explained(tmp_path, capsys):
    (tmp_path / "r.json").write_text(json.dumps(CHAT | {"model": "script"}))
    config = ROOT / "deploy" / "mock-scripts.yaml"
    assert main(["explain", str(tmp_path / "r.json"), "--config", str(config)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Hi <eos>" in out


def test_what_is_no_request_is_refused(host, config):
    with pytest.raises(RequestError):
        decode(config, host, "messages", b"{}")
    with pytest.raises(ConfigError, match=r"--protocol: no codec 'massages' is installed; the nea"):
        decode(config, host, "massages", b"{}")
    with pytest.raises(ConfigError, match="has no request that is answered by a model"):
        decode(config, host, "models", b"{}")


def test_the_command_shows_prompt_legend_spans_and_count(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.json").write_text(json.dumps(CHAT))
    assert main(["explain", "r.json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "Hi <eos>\\x1b[31m" in out
    assert "ids; the answer starts in content; fingerprint " in out.splitlines()[-1]


@pytest.mark.parametrize("body", ["{", "{}", json.dumps(CHAT | {"model": "x"})])
def test_the_command_says_what_is_wrong(tmp_path, monkeypatch, capsys, body):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.json").write_text(body)
    assert main(["explain", "r.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tokenwire: ")
    assert err.count("\n") == 1
