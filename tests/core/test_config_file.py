"""Configuration files: both forms, every refusal in one sentence, the mock swap, the bind rule."""

from __future__ import annotations

import builtins
import io
import os
import socket
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.config import (
    CacheConfig,
    Config,
    CorsConfig,
    ModelConfig,
    ParseConfig,
    PluginUse,
    Secret,
    ServerConfig,
)
from tokenwire.core.config_file import (
    TOP_LEVEL,
    load,
    parse,
)
from tokenwire.core.errors import ConfigError
from tokenwire.core.mock_mode import refuse_public_mock, with_mock

DEPLOYMENT = b"""\
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

FULL = """\
enable_mock = true
[server]
host = "0.0.0.0"
keys = ["env:NEW", "file:/run/old"]
cors = { origins = ["*"] }
[cache]
type = "memory"
max_bytes = 1_000_000
answers = true
[plugins.limits]
per_minute = 60
[replaces]
"codec.messages" = "mine"
[[models]]
name = "qwen3"
dialect = "auto"
reasoning = "think"
tokenizer = "/models/qwen3/tokenizer.json"
chat_template = "/models/qwen3/chat_template.jinja"
engine = "mock"
[models.parse]
unknown_fields = "warn"
roles = { developer = "system" }
[[models]]
name = "small"
aliases = ["gpt-4o-mini"]
tokenizer = "bytes"
dialect = { plugin = "plain" }
engine = { plugin = "cuda", max_batch_size = 8, kv = { host_gb = 4 } }
parser = "hermes"
"""

ONE = "models: [{name: a, engine: mock, tokenizer: bytes}]\n"


def refused(text, name="d.yaml", environ=None):
    with pytest.raises(ConfigError) as caught:
        parse(text, name, environ or {})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_deployment_file_loads_byte_for_byte(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_bytes(DEPLOYMENT)
    assert load(path, environ={}) == Config(
        server=ServerConfig(port=8080, health_check="/health"),
        models=(
            ModelConfig(
                name="",
                engine=PluginUse("remote", {"endpoint": "internal://inference-engine-svc:8000"}),
                tokenizer=PluginUse("hf", {"path": "/config/tokenizer.json"}),
                checkpoint="/config",
            ),
        ),
        cache=CacheConfig("redis", {"endpoint": "internal://redis-svc:6379"}),
        enable_mock=False,
    )


def test_the_full_form_in_toml():
    config = parse(FULL, "d.toml", {})
    assert config == Config(
        server=ServerConfig(
            host="0.0.0.0",
            keys=(Secret("env", "NEW"), Secret("file", "/run/old")),
            cors=CorsConfig(origins=("*",)),
        ),
        cache=CacheConfig("memory", {"max_bytes": 1_000_000}, answers=True),
        enable_mock=True,
        plugins={"limits": {"per_minute": 60}},
        replaces={"codec.messages": "mine"},
        models=(
            ModelConfig(
                name="qwen3",
                engine=PluginUse("mock"),
                tokenizer=PluginUse("hf", {"path": "/models/qwen3/tokenizer.json"}),
                reasoning="think",
                chat_template=PluginUse("jinja", {"path": "/models/qwen3/chat_template.jinja"}),
                checkpoint="/models/qwen3",
                parse=ParseConfig(unknown_fields="warn", roles={"developer": "system"}),
            ),
            ModelConfig(
                name="small",
                engine=PluginUse("cuda", {"max_batch_size": 8, "kv": {"host_gb": 4}}),
                tokenizer=PluginUse("bytes"),
                dialect="plain",
                parser=PluginUse("hermes"),
                aliases=("gpt-4o-mini",),
            ),
        ),
    )


def test_the_file_for_real_serving_loads():
    path = Path(__file__).parents[2] / "deploy" / "smollm2-real.yaml"
    model = load(path, environ={}).models[0]
    assert (model.name, model.engine) == ("smollm2", PluginUse("cuda"))
    assert model.checkpoint == "models/smollm2"


def test_yaml_and_toml_give_the_same():
    yaml = ONE + "server: {port: 9, keepalive: 3}\n"
    toml = (
        '[server]\nport = 9\nkeepalive = 3\n[[models]]\nname="a"\nengine="mock"\n'
        'tokenizer="bytes"\n'
    )
    assert parse(yaml, "d.yaml", {}) == parse(toml, "d.toml", {})


@pytest.mark.parametrize(
    ("tokenizer", "use", "checkpoint"),
    [
        ("bytes", PluginUse("bytes"), None),
        ("m/t.json", PluginUse("hf", {"path": "m/t.json"}), "m"),
        ("t.json", PluginUse("hf", {"path": "t.json"}), "."),
        ("/models/m", PluginUse("hf", {"path": "/models/m"}), "/models/m"),
        ("{plugin: hf, fast: 'off'}", PluginUse("hf", {"fast": "off"}), None),
    ],
)
def test_a_tokenizer_is_a_name_a_path_or_a_table(tokenizer, use, checkpoint):
    model = parse(f"models: [{{name: a, engine: x, tokenizer: {tokenizer}}}]", "d.yaml", {}).models[
        0
    ]
    assert (model.tokenizer, model.checkpoint) == (use, checkpoint)


def test_a_checkpoint_that_is_given_stands():
    text = "models: [{name: a, engine: x, tokenizer: /t/tokenizer.json, checkpoint: /c}]"
    assert parse(text, "d.yaml", {}).models[0].checkpoint == "/c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "d.yaml: wanted models (or inference_engine), got neither"),
        ("models: []", "d.yaml: wanted models (or inference_engine), got neither"),
        ("- a", "d.yaml: wanted keys with values, got list"),
        ("a: [", "d.yaml: line 1: expected the node content, but found '<stream end>'"),
        ("a: 1\nb: 2\na: 3", "d.yaml: line 3: the key 'a' is given twice"),
        ("s: {a: 1, b: {c: 1, c: 2}}", "d.yaml: line 1: the key 'c' is given twice"),
        ("1: a", "d.yaml: line 1: wanted a text as key (put it in quotes)"),
        ("on: a", "d.yaml: line 1: wanted a text as key (put it in quotes)"),
        ("? [a]\n: b", "d.yaml: line 1: wanted a text as key (put it in quotes)"),
        ("a: 2024-13-45", "d.yaml: cannot be read: month must be in 1..12"),
        ("modles: 1", "d.yaml: modles = 1: there is no such key; the nearest is 'models'"),
        ("models: 3", "d.yaml: models = 3: wanted a list of models"),
        ("models: [3]", "d.yaml: models[0] = 3: wanted a table"),
        (
            ONE + "server: {prot: 80}",
            "d.yaml: server.prot = 80: there is no such key; the nearest is 'port'",
        ),
        (
            ONE + "server: {cors: {orgins: []}}",
            "d.yaml: server.cors.orgins = a list: there is no such key; the nearest is 'origins'",
        ),
        (
            ONE + 'server: {port: "80"}',
            'd.yaml: server.port = "80": wanted a whole number, got a text',
        ),
        (ONE + "server: {port: 65536}", "d.yaml: server.port = 65536: wanted a port, 0 to 65535"),
        (ONE + "server: {workers: 0}", "d.yaml: server.workers = 0: wanted 1 to 256"),
        (ONE + "server: {workers: 257}", "d.yaml: server.workers = 257: wanted 1 to 256"),
        (
            ONE + "server: {health_check: health}",
            'd.yaml: server.health_check = "health": wanted a path that begins with /',
        ),
        (
            ONE + 'server: {health_check: "/mock/scripts/{x}"}',
            'd.yaml: server.health_check = "/mock/scripts/{x}": wanted a path that begins with / '
            "and has letters, digits and . _ ~ - only",
        ),
        (ONE + "server: {health_check: /a b}", 'd.yaml: server.health_check = "/a b": wanted a'),
        (ONE + "server: {health_check: /é}", 'd.yaml: server.health_check = "/é": wanted a path'),
        (
            ONE + "server: {cors: {max_age: -1}}",
            "d.yaml: server.cors.max_age = -1: wanted seconds, 0 or more",
        ),
        (
            ONE + "server: {http: grannian}",
            'd.yaml: server.http = "grannian": wanted one of granian, uvicorn; the nearest is '
            "'granian'",
        ),
        (ONE + "cache: redis", 'd.yaml: cache = "redis": wanted a table'),
        (
            ONE + "replaces: {codec.messages: 1}",
            "d.yaml: replaces.codec.messages = 1: wanted a text",
        ),
        (ONE + "warnings: []", "d.yaml: warnings = a list: there is no such key"),
        (ONE + "plugins: {a: 1}", "d.yaml: plugins.a = 1: wanted a table"),
        ("models: [{name: a, engine: x}]", "d.yaml: models[0]: the key 'tokenizer' is missing"),
        (
            "models: [{engine: x, tokenizer: bytes}]",
            "d.yaml: models[0]: the key 'name' is missing",
        ),
        (
            "models: [{name: '', engine: x, tokenizer: bytes}]",
            "d.yaml: models[0].name: wanted a name, got an empty text",
        ),
        (
            "models: [{name: a, tokenizer: bytes}]",
            "d.yaml: models[0]: the key 'engine' is missing",
        ),
        (
            "models: [{name: a, engine: x, tokenizer: bytes, dialekt: plain}]",
            "d.yaml: models[0].dialekt = \"plain\": there is no such key; the nearest is 'dialect'",
        ),
        (
            "models: [{name: a, engine: /x, tokenizer: bytes}]",
            "d.yaml: models[0].engine = \"/x\": wanted a plugin's name or a table with 'plugin'",
        ),
        (
            "models: [{name: a, engine: {latency: 1}, tokenizer: bytes}]",
            "d.yaml: models[0].engine: the key 'plugin' is missing",
        ),
        (
            "models: [{name: a, engine: x, tokenizer: bytes, dialect: {plugin: plain, z: 1}}]",
            "d.yaml: models[0].dialect.z = 1: a dialect has no settings",
        ),
        (
            "models: [{name: a, engine: x, tokenizer: bytes}, "
            "{name: b, engine: x, tokenizer: bytes, aliases: [a]}]",
            'd.yaml: models[1] = "a": this name is taken by models[0]',
        ),
        (
            "enable_mock: false\n" + ONE,
            'd.yaml: models[0].engine = "mock": but enable_mock is false',
        ),
        (
            "enable_mock: 'no'\n" + ONE,
            'd.yaml: enable_mock = "no": wanted true or false or nothing, got a text',
        ),
        (
            ONE + "inference_engine: {endpoint: x}",
            "d.yaml: models: wanted models or inference_engine, got both",
        ),
        ("inference_engine: {}", "d.yaml: inference_engine: the key 'endpoint' is missing"),
        (
            "inference_engine: {endpoint: x}",
            "d.yaml: inference_engine: the key 'tokenizer_path' is missing",
        ),
        (
            "inference_engine: {endpont: x}",
            'd.yaml: inference_engine.endpont = "x": there is no such key; the nearest is '
            "'endpoint'",
        ),
        (
            "enable_mock: true\ninference_engine: {enable_mock: true}",
            "d.yaml: enable_mock: is given twice, here and in inference_engine",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(text, message):
    assert refused(text).startswith(message)


def test_a_secret_that_stands_in_the_file_is_refused_and_not_repeated():
    message = refused(ONE + "server: {keys: [hunter2-hunter2]}")
    assert message == (
        "d.yaml: server.keys[0]: wanted env:NAME or file:PATH, got something else (not shown, it "
        "may be secret)"
    )
    assert "hunter2" not in refused(ONE + "server: {keys: hunter2}")
    assert "hunter2" not in refused(ONE + "server: {api_key: hunter2}")
    assert "hunter2" not in refused(ONE + "password: hunter2")


def test_toml_twins_and_errors_name_the_file():
    assert refused("a = 1\na = 2", "d.toml").startswith("d.toml: is no TOML: ")


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "{b: " * 3000])
def test_absurd_nesting_is_refused(text):
    assert refused(text) == "d.yaml: is nested too deeply"


def test_a_section_whose_lines_are_commented_out_is_absent():
    text = "server:\n#  port: 1\ncache:\nplugins:\nreplaces:\nenable_mock:\n" + ONE
    assert parse(text, "d.yaml", {}) == parse(ONE, "d.yaml", {})


def test_merge_keys_may_repeat_what_they_merge():
    text = "models:\n- &a {name: a, engine: x, tokenizer: bytes}\n- {<<: *a, name: b}\n"
    assert [model.name for model in parse(text, "d.yaml", {}).models] == ["a", "b"]


def test_no_yaml_tag_makes_an_object():
    assert "could not determine a constructor" in refused("a: !!python/object/apply:os.getcwd []")


def test_a_file_that_is_not_there_or_not_utf8(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load(tmp_path / "none.yaml", environ={})
    (tmp_path / "bad.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match=r"bad\.yaml: is not UTF-8 \(byte 3\)"):
        load(tmp_path / "bad.yaml", environ={})


def test_a_byte_order_mark_is_skipped(tmp_path):
    (tmp_path / "d.yaml").write_bytes(b"\xef\xbb\xbf" + ONE.encode())
    assert load(tmp_path / "d.yaml", environ={}).models[0].name == "a"


def test_reading_opens_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "d.yaml"
    path.write_bytes(DEPLOYMENT)
    opened = []
    real = io.open

    def watched(file, *rest, **named):
        opened.append(str(file))
        return real(file, *rest, **named)

    def refuse(*_, **__):
        raise AssertionError("a configuration was read with a socket or another path")

    monkeypatch.setattr(io, "open", watched)
    monkeypatch.setattr(builtins, "open", watched)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    load(path, environ={})
    assert opened == [str(path)]


# --- the environment -----------------------------------------------------------------------------


def test_the_environment_overrides_host_and_port():
    environ = {"TOKENWIRE_SERVER_HOST": "::1", "TOKENWIRE_SERVER_PORT": "9999"}
    server = parse(ONE + "server: {port: 1, workers: 2}", "d.yaml", environ).server
    assert server == ServerConfig(host="::1", port=9999, workers=2)
    assert parse(ONE, "d.yaml", {"TOKENWIRE_SERVER_PORT": ""}).server.port == 8080


@pytest.mark.parametrize("port", ["x", "-1", "70000", "1" * 50, "\uff18\uff10"])
def test_a_port_in_the_environment_is_checked(port):
    message = refused(ONE, environ={"TOKENWIRE_SERVER_PORT": port})
    assert message.startswith("TOKENWIRE_SERVER_PORT")
    assert "wanted a port, 0 to 65535" in message


# --- the mock ------------------------------------------------------------------------------------


def tokenizer_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    return path


def test_the_mock_keeps_tokenizer_template_and_limits(tmp_path):
    path = tokenizer_file(tmp_path)
    config = parse(
        f"models: [{{name: a, engine: {{plugin: cuda, x: 1}}, tokenizer: {path}, "
        "chat_template: /t.jinja, context_length: 99, parser: hermes}]",
        "d.yaml",
        {},
    )
    mocked = with_mock(config)
    assert mocked.enable_mock is True
    assert mocked.warnings == ()
    assert mocked.models == (msgspec.structs.replace(config.models[0], engine=PluginUse("mock")),)
    assert with_mock(mocked) == mocked


def test_a_mock_model_keeps_its_settings():
    text = "models: [{name: a, engine: {plugin: mock, ttft_s: 1}, tokenizer: bytes}]"
    config = parse(text, "d.yaml", {})
    assert with_mock(config).models == config.models


def test_a_model_that_embeds_does_so_on_the_mock():
    config = parse(
        "models: [{name: a, engine: {plugin: cuda, task: embed}, tokenizer: bytes}]", "d.yaml", {}
    )
    assert with_mock(config).models[0].engine == PluginUse("mock", {"tasks": ["embed"]})


@pytest.mark.parametrize("key", ["tokenizer: /none/tokenizer.json", "checkpoint: /none"])
def test_a_missing_tokenizer_becomes_bytes_and_plain_with_a_warning(key):
    config = parse(f"models: [{{name: a, engine: cuda, dialect: hermes, {key}}}]", "d.yaml", {})
    mocked = with_mock(config)
    assert mocked.models == (
        ModelConfig("a", PluginUse("mock"), PluginUse("bytes"), dialect="plain"),
    )
    assert mocked.warnings == (
        "model 'a': /none/tokenizer.json is not there: it is served with the tokenizer bytes and "
        "the dialect plain",
    )
    assert with_mock(mocked) == mocked


def test_the_deployment_file_runs_on_a_laptop():
    mocked = with_mock(parse(DEPLOYMENT.decode(), "d.yaml", {}))
    assert mocked.models == (
        ModelConfig("default", PluginUse("mock"), PluginUse("bytes"), dialect="plain"),
    )
    assert mocked.cache.type == "memory"
    assert mocked.cache.settings == {}
    assert len(mocked.warnings) == 2


def test_the_shortest_file_that_runs_has_two_lines():
    config = parse("inference_engine:\n  enable_mock: true\n", "d.yaml", {})
    assert config.enable_mock is True
    assert with_mock(config).models[0].name == "default"


# --- the bind rule -------------------------------------------------------------------------------


LOOPBACK = ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost", "LOCALHOST.", "::ffff:127.0.0.1"]
PUBLIC = ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io"]


def bound(host, *, engine="mock", **server):
    model = ModelConfig("a", PluginUse(engine), PluginUse("bytes"))
    return Config(server=ServerConfig(host=host, **server), models=(model,))


@pytest.mark.parametrize("host", LOOPBACK)
def test_a_mock_may_listen_where_only_this_machine_comes(host):
    refuse_public_mock(bound(host, debug=True))


@pytest.mark.parametrize("host", PUBLIC)
def test_a_mock_may_not_listen_where_others_come(host):
    with pytest.raises(ConfigError) as caught:
        refuse_public_mock(bound(host))
    assert str(caught.value) == (
        f"server.host = \"{host}\": others can reach it while model 'a' is on the mock engine: "
        "bind 127.0.0.1, or say server.allow_mock_public: true"
    )
    with pytest.raises(ConfigError, match=r"while server\.debug is on"):
        refuse_public_mock(bound(host, engine="cuda", debug=True))
    refuse_public_mock(bound(host, engine="cuda"))
    refuse_public_mock(bound(host, debug=True, allow_mock_public=True))


# --- whatever comes ------------------------------------------------------------------------------

WORDS = (*TOP_LEVEL, "name", "engine", "tokenizer", "port", "plugin", "keys", "bytes", "env:A")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5))
def test_any_mapping_is_a_config_or_one_sentence(values):
    _parsed_or_refused(msgspec.json.encode(values).decode())


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"\n #?,%@`1.\t~<=\x00é"), max_size=40))
def test_any_text_is_a_config_or_one_sentence(text):
    _parsed_or_refused(text)


def _parsed_or_refused(text):
    for name in ("d.yaml", "d.toml"):
        message = _outcome(text, name)
        assert message is None or message.startswith(f"{name}: ")
        assert message is None or "\n" not in message


def _outcome(text, name):
    """None when it is a configuration, else why it is none."""
    try:
        config = parse(text, name, {})
    except ConfigError as error:
        return str(error)
    assert isinstance(config, Config)
    return None
