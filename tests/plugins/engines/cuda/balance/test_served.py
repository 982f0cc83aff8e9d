"""A server whose model lies over two processes that share its experts: all the way from the
configuration to the figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

pytest.importorskip("torch")

from tests.clients.live import live_server
from tests.plugins.engines.cuda.test_matrix import mixed

pytestmark = pytest.mark.torch


def test_experts_over_two_ranks_are_served_and_their_balance_is_shown(tmp_path: Path) -> None:
    fields = {"plugin": "cuda", "path": str(mixed()), "device": "cpu", "threads": 1}
    body = {"model": "m", "prompt": [5, 17, 42, 7], "max_tokens": 40, "temperature": 0}
    body |= {"ignore_eos": True, "return_token_ids": True}
    group = {"parallel_strategy": "DEP_2", "redundant_experts": 2, "kv_gib": 0.01}
    group |= {"rebalance": {"interval": 8, "window": 8, "bar": 1.0}}
    found = []
    for more in ({"kv_gib": 0.01}, group):
        models = [{"name": "m", "tokenizer": "bytes", "engine": fields | more}]
        with (
            live_server(json.dumps({"models": models}), tmp_path) as server,
            httpx.Client(base_url=server.url, timeout=120) as http,
        ):
            replies = [http.post("/v1/completions", json=body) for _ in range(4)]
            assert all(reply.status_code == 200 for reply in replies), replies[0].text
            found.append([reply.json()["choices"] for reply in replies])
            text = http.get("/metrics").text
            about = http.get("/engines").json()["engines"]["m"]["about"]
    assert found[0] == found[1]
    assert (about["layout"], about["ranks"]) == ("DEP_2", 2)
    gauges = re.findall(r'engine_expert_balancedness\{layer="(\d)",model="m"\} (\S+)', text)
    assert {layer for layer, _ in gauges} == {"0", "1"}
    assert all(0.5 <= float(value) <= 1 for _, value in gauges)
    rebalances = re.search(r'engine_expert_rebalances_total\{model="m"\} (\S+)', text)
    assert rebalances is not None
    assert float(rebalances[1]) >= 1
