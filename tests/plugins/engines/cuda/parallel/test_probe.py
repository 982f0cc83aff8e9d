"""`tokenwire plan --measure` with the engine's own probe: real ranks on this machine's CPUs."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from msgspec import json

from tokenwire.core.cli import main
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel import probe

pytestmark = pytest.mark.torch


def test_a_plan_with_links_of_this_machine(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    asked = "plan --model qwen3-30b-a3b --gpus 8 --domain 2 --measure --ranks 2 --json"
    assert main(asked.split()) == 0
    found = json.decode(capfd.readouterr().out)
    links = found["links"]
    assert (links["ranks"], links["domain"], links["device"]) == (2, 2, "CPUs over gloo")
    assert links["row_bytes"] == 2 * 2048
    assert {each["way"] for each in links["samples"]} == {"within", "sums"}
    assert (links["across_gb_s"], found["nic_mark"]) == (None, "datasheet")
    assert links["sums_gb_s"] > 0
    assert found["figures"][0]["nvlink_gb_s"] == links["within_gb_s"] > 0


@pytest.mark.parametrize(
    ("wanted", "devices", "ranks"), [(None, 0, 2), (4, 0, 4), (None, 8, 8), (2, 8, 2)]
)
def test_how_many_ranks(wanted: int | None, devices: int, ranks: int) -> None:
    assert probe._ranks(wanted, devices) == ranks


@pytest.mark.parametrize(
    ("wanted", "devices", "words"),
    [(None, 1, "has one GPU, and a link is between two"), (4, 2, "--ranks 4: .* has 2 GPUs")],
)
def test_too_few_devices(wanted: int | None, devices: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        probe._ranks(wanted, devices)
