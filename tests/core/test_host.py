"""The host over tiny plugins: every hook, owners in every message, discovery, the built-ins."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from tokenwire.core import discovery, hookspecs
from tokenwire.core.errors import ConfigError, PluginError
from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import HOOKS, KINDS, Host

ROOT = Path(__file__).parents[2]
REGISTERING = [f"register_{kind}s" for kind in KINDS]


def plugin(name="tiny", **hooks):
    module = ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, impl(function))
    return module


def factory(name="tiny"):
    return Factory(name, NoSettings, lambda settings, services: None)


def host(_modules=None, **hooks):
    modules = {"tiny": plugin(**hooks)} if _modules is None else _modules
    return Host(modules, entry_points=False)


def test_hooks_are_exactly_those_of_the_manual_in_its_order():
    specs = [
        name
        for name, value in vars(hookspecs).items()
        if getattr(value, "tokenwire_spec", None) is not None
    ]
    assert specs == list(HOOKS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_register_hook_fills_its_registry(kind):
    found = host(**{f"register_{kind}s": lambda: [factory("one"), factory("two")]})
    assert list(found.registry(kind)) == ["one", "two"]
    assert found.registry(kind).owner("one") == "tiny"
    assert getattr(found, f"{kind}s") is found.registry(kind)
    assert [other for other in KINDS if found.registry(other)] == [kind]


def test_register_commands_gets_the_command_line():
    lines = []
    host(register_commands=lambda cli: lines.append(cli)).add_commands("the app")
    assert lines == ["the app"]


def test_host_started_and_host_stopping_get_the_host_in_order():
    told = []
    modules = {
        name: plugin(
            name,
            host_started=lambda host, name=name: told.append(("started", name, host)),
            host_stopping=lambda host, name=name: told.append(("stopping", name, host)),
        )
        for name in ("a", "b")
    }
    found = host(modules)
    assert told == []
    found.started()
    found.stopping()
    found.stopping()
    assert [(what, name) for what, name, _ in told] == [
        ("started", "a"),
        ("started", "b"),
        ("stopping", "b"),
        ("stopping", "a"),
    ]
    assert all(given is found for _, _, given in told)


def test_every_register_hook_is_asked_once_at_start_in_lifecycle_order():
    asked = []
    hooks = {hook: lambda hook=hook: asked.append(hook) or () for hook in reversed(REGISTERING)}
    found = host(**hooks)
    assert asked == REGISTERING
    found.started()
    found.stopping()
    assert asked == REGISTERING
    assert found.hooks(found.plugins[0]) == tuple(REGISTERING)


def test_an_implementation_may_leave_arguments_out():
    told = []
    found = host(host_started=lambda: told.append("yes"))
    found.started()
    assert told == ["yes"]


def test_a_generator_or_nothing_may_be_returned():
    def register_routers():
        yield factory("lazy")

    assert list(host(register_routers=register_routers).routers) == ["lazy"]
    assert not host(register_routers=lambda: None).routers


def test_a_duplicate_name_names_both_plugins():
    modules = {name: plugin(name, register_codecs=lambda: [factory("ndjson")]) for name in "ab"}
    with pytest.raises(PluginError, match=r"^b: codec 'ndjson' is already owned by a: "):
        host(modules)
    chosen = Host(modules, entry_points=False, replaces={"codec.ndjson": "b"})
    assert chosen.codecs.owner("ndjson") == "b"


@pytest.mark.parametrize("key", ["ndjson", "kodec.ndjson", "codec."])
def test_replaces_needs_a_kind_and_a_name(key):
    with pytest.raises(ConfigError, match=r"^replaces: .*: wanted KIND.NAME"):
        Host(entry_points=False, replaces={key: "a"})


def test_a_misspelt_hook_is_named_with_the_nearest():
    with pytest.raises(PluginError) as caught:
        host(register_codec=lambda: ())
    assert str(caught.value) == (
        "tiny: unknown hook 'register_codec'; the nearest is 'register_codecs'"
    )


def test_an_argument_that_the_hook_does_not_have_is_named():
    with pytest.raises(PluginError, match=r"^tiny: .*'register_codecs'.*'nonsense'"):
        host(register_codecs=lambda nonsense: ())


def test_a_module_without_hooks_is_refused():
    with pytest.raises(PluginError, match=r"^tiny: tiny has no hook: mark its functions @impl$"):
        host({"tiny": ModuleType("tiny")})


def test_the_same_module_under_two_names_is_refused():
    module = plugin(register_codecs=lambda: ())
    with pytest.raises(PluginError, match=r"^b: tiny or its name is there already"):
        host({"a": module, "b": module})


def raises(error):
    def hook(**_):
        raise error

    return hook


@pytest.mark.parametrize("error", [OSError("no file"), SystemExit(3), ValueError("no\nfile")])
def test_a_failing_register_hook_names_owner_hook_and_cause(error):
    def register_codecs():
        raise error

    with pytest.raises(PluginError, match=r"^tiny: register_codecs failed: \w+: (no file|3)$"):
        host(register_codecs=register_codecs)


def test_a_generator_that_fails_half_way_names_its_owner():
    def register_codecs():
        yield factory("one")
        raise OSError("no file")

    with pytest.raises(PluginError, match=r"^tiny: register_codecs failed: OSError: no file$"):
        host(register_codecs=register_codecs)


@pytest.mark.parametrize("answer", [3, factory("one")])
def test_an_answer_that_is_no_iterable_is_refused(answer):
    with pytest.raises(PluginError, match=r"^tiny: register_codecs gave .*, wanted an iterable"):
        host(register_codecs=lambda: answer)


def test_when_one_start_fails_those_before_it_are_stopped():
    told = []

    def fail(host):
        raise OSError("no port")

    found = host(
        {
            "a": plugin("a", host_started=lambda: None, host_stopping=lambda: told.append("a")),
            "b": plugin("b", host_started=fail, host_stopping=lambda: told.append("b")),
            "c": plugin("c", host_started=lambda: told.append("c started")),
        }
    )
    with pytest.raises(PluginError, match=r"^b: host_started failed: OSError: no port$"):
        found.started()
    assert told == ["a"]


def test_every_plugin_is_stopped_whatever_the_others_do():
    told = []

    def fail(host):
        raise OSError("busy")

    found = host(
        {
            "a": plugin("a", host_stopping=lambda: told.append("a")),
            "b": plugin("b", host_stopping=fail),
        }
    )
    found.started()
    with pytest.raises(PluginError, match=r"^b: host_stopping failed: OSError: busy$"):
        found.stopping()
    assert told == ["a"]


def test_build_makes_a_thing_of_any_kind_and_refuses_what_is_no_kind():
    found = host(register_routers=lambda: [factory("none")])
    with pytest.raises(PluginError, match="built None, which is not a Router"):
        found.build("router", "none")
    with pytest.raises(ConfigError, match=r"no plugin kind 'routers'; the nearest is 'router'"):
        found.build("routers", "none")


def test_the_built_ins_are_entry_points_like_anybodys():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = Host(environ={})
    names = {plugin.name for plugin in found.plugins if plugin.distribution == "tokenwire"}
    assert names == set(project["entry-points"]["tokenwire"])
    assert found.engines.owner("mock") == "mock"


# --- discovery -----------------------------------------------------------------------------------


class Points:
    """Stands in for the installed entry points: name -> module, or what importing it raises."""

    def __init__(self, monkeypatch, **modules):
        self.loaded = []
        points = [self.point(name, module) for name, module in modules.items()]
        monkeypatch.setattr(discovery, "entry_points", lambda group: points)

    def point(self, name, module):
        loaded = self.loaded

        class Point(EntryPoint):
            def load(self):
                loaded.append(self.name)
                if isinstance(module, BaseException):
                    raise module
                return module

        return Point(name, f"mod_{name}", discovery.GROUP)


@pytest.fixture
def points(monkeypatch):
    def make(**modules):
        return Points(monkeypatch, **modules)

    return make


def routers(*names):
    return {name: plugin(name, register_routers=lambda n=name: [factory(n)]) for name in names}


def test_entry_points_come_by_name_and_given_plugins_after_them(points):
    points(**routers("b", "a"))
    found = Host(routers("0"), environ={})
    assert list(found.routers) == ["a", "b", "0"]


def test_entry_points_can_be_left_out(points):
    seen = points(**routers("a"))
    assert list(Host(routers("0"), entry_points=False).routers) == ["0"]
    assert seen.loaded == []


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({"TOKENWIRE_PLUGINS": "c,a"}, ["c", "a"]),
        ({"TOKENWIRE_PLUGINS": " c a c "}, ["c", "a"]),
        ({"TOKENWIRE_PLUGINS": ""}, ["a", "b", "c"]),
        ({"TOKENWIRE_DISABLE": "b"}, ["a", "c"]),
        ({"TOKENWIRE_PLUGINS": "a b", "TOKENWIRE_DISABLE": "a"}, ["b"]),
    ],
)
def test_the_environment_restricts_and_blocks_before_importing(points, environ, names):
    seen = points(**routers("a", "b", "c"))
    assert list(Host(environ=environ).routers) == names
    assert seen.loaded == names


@pytest.mark.parametrize("variable", ["TOKENWIRE_PLUGINS", "TOKENWIRE_DISABLE"])
def test_a_name_that_is_not_installed_is_said_with_the_nearest(points, variable):
    points(**routers("round_robin"))
    with pytest.raises(PluginError) as caught:
        Host(environ={variable: "round_robbin"})
    assert str(caught.value) == (
        f"{variable} names 'round_robbin', which is not installed; the nearest is 'round_robin'"
    )


@pytest.mark.parametrize("error", [ImportError("no torch"), SyntaxError("bad"), SystemExit(1)])
def test_a_plugin_that_cannot_be_imported_is_named_with_a_way_out(points, error):
    points(**routers("a"), broken=error)
    with pytest.raises(PluginError) as caught:
        Host(environ={})
    text = str(caught.value)
    assert text.startswith("broken: cannot be imported from mod_broken ")
    assert text.endswith("repair it, or start with TOKENWIRE_DISABLE=broken")
    assert list(Host(environ={"TOKENWIRE_DISABLE": "broken"}).routers) == ["a"]


def test_two_distributions_with_one_plugin_name_are_an_error(monkeypatch):
    twins = [EntryPoint("a", f"mod{n}", discovery.GROUP) for n in (1, 2)]
    monkeypatch.setattr(discovery, "entry_points", lambda group: twins)
    with pytest.raises(PluginError, match="two distributions have a plugin 'a'"):
        Host(environ={})
