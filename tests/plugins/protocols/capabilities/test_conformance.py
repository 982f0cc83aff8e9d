"""The codec kit over the codec that lists capabilities; what it says is in tests/flow."""

from __future__ import annotations

import msgspec
import pytest

from tokenwire.core.call import ListModels
from tokenwire.core.host import Host
from tokenwire.core.queries import Capabilities, CapabilityTable, FieldUse, ModelCapabilities
from tokenwire.core.testing.codec_kit import conform, run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols import capabilities
from tokenwire.plugins.protocols.capabilities.codec import CapabilitiesCodec

ONE = HttpRequest("GET", "/v1/capabilities/m", path_params={"model": "m"})
SLASH = HttpRequest("GET", "/v1/capabilities/a/b", path_params={"owner": "a", "model": "b"})
EXAMPLES = (
    (HttpRequest("GET", "/v1/capabilities"), Capabilities()),
    (ONE, Capabilities("m")),
    (SLASH, Capabilities("a/b")),
)
USES = (FieldUse("seed", "ignored", "x", ("seed",)), FieldUse("n", "used"))
FACTS = ModelCapabilities(
    "m", ("x",), 9, ("generate",), "plain", "configured", "f", ("n",), True, {"p": USES}
)


def test_conforms():
    assert run_codec_kit(CapabilitiesCodec(), EXAMPLES)
    conform(Host({"capabilities": capabilities}, entry_points=False), "capabilities")


def test_a_model_s_entry():
    body = msgspec.json.decode(
        CapabilitiesCodec().answer(Capabilities("m"), CapabilityTable((FACTS,))).body
    )
    assert body == {
        "id": "m",
        "object": "capabilities",
        "aliases": ["x"],
        "ready": True,
        "context_length": 9,
        "tasks": ["generate"],
        "embedding_size": None,
        "dialect": {"name": "plain", "why": "configured"},
        "fingerprint": "f",
        "engine": ["n"],
        "protocols": {
            "p": {
                "seed": {"how": "ignored", "what": "x", "lacks": ["seed"]},
                "n": {"how": "used"},
            }
        },
    }


def test_it_answers_its_own_query_alone():
    with pytest.raises(TypeError, match="is not answered by"):
        CapabilitiesCodec().answer(ListModels(), ())
