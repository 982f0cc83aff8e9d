"""Names of capabilities are the interface's: what engines declare, and what they may leave out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.core.host import lone_services
from tokenwire.core.settings import Place, convert
from tokenwire.core.tokens import CAPABILITIES, EngineCard, is_capability
from tokenwire.plugins.engines.mock import build as mock
from tokenwire.plugins.engines.mock.settings import MockSettings
from tokenwire.plugins.engines.reference import build as reference
from tokenwire.plugins.engines.reference.settings import ReferenceSettings


def mock_card(**settings: object) -> EngineCard:
    return mock.make_card(MockSettings(**settings), mock.BYTES, "m", None)


def reference_card() -> EngineCard:
    model = SimpleNamespace(vocab_size=9, context_length=9, eos_ids=())
    return reference.make_card(ReferenceSettings(), lone_services(), model)


@pytest.mark.parametrize("card", [mock_card(), mock_card(adapters=("a",)), reference_card()])
def test_every_declared_capability_is_known(card: EngineCard) -> None:
    assert all(map(is_capability, card.capabilities))
    assert card.can("credit")
    assert not card.can("handoff")


def test_grammars_are_open() -> None:
    assert is_capability("grammar:json_schema")
    assert is_capability("grammar:of_tomorrow")
    assert not is_capability("grammar:")
    assert not is_capability("grammars")


@pytest.mark.parametrize("name", CAPABILITIES)
def test_the_mock_engine_goes_without_any(name: str) -> None:
    assert not mock_card(adapters=("a",), without=(name,)).can(name)


def test_without_what_nobody_knows_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"without: wanted names among n, logprobs, .* 'sed'"):
        convert(MockSettings, {"without": ["seed", "sed"]}, Place("d.yaml", "models[0].engine"))
