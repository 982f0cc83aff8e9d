"""The registry's rules: owners, duplicates, types, versions, lateness, settings."""

from __future__ import annotations

import pytest
from msgspec import Struct

from tokenwire.core.errors import ConfigError, PluginError, ServiceError
from tokenwire.core.factory import PORT_VERSION, Factory, NoSettings, Services
from tokenwire.core.ports.router import Router
from tokenwire.core.registry import Registry
from tokenwire.core.settings import Place
from tokenwire.core.signing import Keyring

SERVICES = Services(Keyring([b"k" * 32]))


class FirstRouter(Router):
    def __init__(self, settings=None):
        self.settings = settings

    def pick(self, query, fleet):
        return None


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    weight: float = 1.0
    label: str = ""


class Thawed(Struct):
    weight: float = 1.0


def factory(name="first", settings=NoSettings, build=None, **fields):
    return Factory(name, settings, build or (lambda settings, _: FirstRouter(settings)), **fields)


@pytest.fixture
def registry():
    return Registry("router", Router)


def test_it_is_a_mapping_in_order_of_registration_that_knows_owners(registry):
    second, first = factory("second"), factory("first")
    registry.add(second, "b")
    registry.add(first, "a")
    assert list(registry) == ["second", "first"]
    assert registry["first"] is first
    assert len(registry) == 2
    assert registry.owner("second") == "b"
    assert "third" not in registry
    with pytest.raises(KeyError):
        registry["third"]


def test_a_duplicate_names_both_owners_and_the_way_out(registry):
    registry.add(factory(), "a")
    with pytest.raises(PluginError) as caught:
        registry.add(factory(), "b")
    assert str(caught.value) == (
        "b: router 'first' is already owned by a: uninstall or disable one (TOKENWIRE_DISABLE), "
        'or choose with replaces: {"router.first": "b"}'
    )


def test_one_owner_may_not_register_a_name_twice_even_with_replaces():
    registry = Registry("router", Router, {"first": "a"})
    registry.add(factory(), "a")
    with pytest.raises(PluginError, match="already owned by a"):
        registry.add(factory(), "a")


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("winner", ["a", "b"])
def test_replaces_chooses_whatever_the_order(order, winner):
    registry = Registry("router", Router, {"first": winner})
    for owner in order:
        registry.add(factory(summary=owner), owner)
    registry.freeze()
    assert registry.owner("first") == winner
    assert registry["first"].summary == winner


def test_replaces_that_names_neither_of_two_owners_settles_nothing():
    registry = Registry("router", Router, {"first": "c"})
    registry.add(factory(), "a")
    with pytest.raises(PluginError, match="already owned by a"):
        registry.add(factory(), "b")


def test_replaces_without_effect_is_an_error():
    registry = Registry("router", Router, {"first": "c"})
    registry.add(factory(), "a")
    with pytest.raises(ConfigError) as caught:
        registry.freeze()
    assert str(caught.value) == (
        "replaces: router.first = \"c\": plugin 'c' registers no router 'first'"
    )


@pytest.mark.parametrize("item", [None, "first", FirstRouter(), FirstRouter])
def test_what_is_no_factory_is_refused(registry, item):
    with pytest.raises(PluginError, match=r"^a: register_routers gave .*, which is not a Factory$"):
        registry.add(item, "a")


def test_a_newer_port_is_refused_with_what_to_do(registry):
    with pytest.raises(PluginError) as caught:
        registry.add(factory(port=PORT_VERSION + 1), "a")
    assert str(caught.value) == (
        f"a: router 'first' was written for port version {PORT_VERSION + 1}, this Tokenwire has "
        f"{PORT_VERSION}: upgrade Tokenwire, or install an older a"
    )


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (factory(name=""), "a name"),
        (factory(name=3), "a name"),
        (factory(build="no"), "a build"),
        (factory(settings=Thawed), "a frozen Struct that forbids unknown fields"),
        (factory(settings=dict), "a frozen Struct"),
        (factory(settings=NoSettings()), "a frozen Struct"),
    ],
)
def test_a_factory_with_wrong_parts_is_refused(registry, item, what):
    with pytest.raises(PluginError, match=f"^a: router .* needs {what}"):
        registry.add(item, "a")


def test_a_late_registration_is_refused(registry):
    registry.freeze()
    with pytest.raises(PluginError, match=r"^a: router 'first' came after start-up: register it"):
        registry.add(factory(), "a")


def test_find_names_place_name_and_nearest(registry):
    registry.add(factory("round_robin"), "a")
    with pytest.raises(ConfigError) as caught:
        registry.find("round_robbin", "models[0].router")
    assert str(caught.value) == (
        "models[0].router: no router 'round_robbin' is installed; the nearest is 'round_robin'"
    )
    with pytest.raises(ConfigError, match=r"^engine: no engine 'x' is installed; none is$"):
        Registry("engine", Router).find("x")


def test_build_gives_settings_and_services(registry):
    seen = []

    def build(settings, services):
        seen.append((settings, services))
        return FirstRouter()

    registry.add(factory(settings=Weights, build=build), "a")
    assert isinstance(registry.build("first", {"weight": 2}, SERVICES), FirstRouter)
    assert seen == [(Weights(2.0), SERVICES)]


def test_unknown_settings_name_place_value_and_nearest_key(registry):
    registry.add(factory(settings=Weights), "a")
    with pytest.raises(ConfigError) as caught:
        registry.build("first", {"wieght": 2}, SERVICES, Place("f.yaml", "plugins.first"))
    assert str(caught.value) == (
        "f.yaml: plugins.first.wieght = 2: there is no such key; the nearest is 'weight'"
    )
    with pytest.raises(ConfigError, match=r"^router 'first': weight = \"x\": wanted a number, got"):
        registry.build("first", {"weight": "x"}, SERVICES)


def test_a_build_that_fails_names_its_owner(registry):
    def build(settings, services):
        raise OSError("no such device")

    registry.add(factory(build=build), "a")
    with pytest.raises(PluginError) as caught:
        registry.build("first", {}, SERVICES)
    assert str(caught.value) == "a: router 'first' could not be built: OSError: no such device"


def test_what_a_build_raises_on_purpose_stands(registry):
    def build(settings, services):
        raise ServiceError(message="not now")

    registry.add(factory(build=build), "a")
    with pytest.raises(ServiceError, match="not now"):
        registry.build("first", {}, SERVICES)


def test_what_a_build_gives_must_fill_the_port(registry):
    registry.add(factory(build=lambda settings, services: 3), "a")
    with pytest.raises(PluginError) as caught:
        registry.build("first", {}, SERVICES)
    assert str(caught.value) == "a: router 'first' built 3, which is not a Router"
