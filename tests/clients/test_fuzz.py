"""Every route, fuzzed by its own description: no 5xx, and every reply as it is described.

Valid and invalid bodies, parameters and methods, and sequences of calls. TOKENWIRE_FUZZ_SECONDS
says for how long `make test-long` does it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import CONFIG
from tests.clients.fuzz_document import prepared
from tests.clients.live import live_server

FUZZER = Path(sys.executable).with_name("schemathesis")
SECONDS = int(os.environ.get("TOKENWIRE_FUZZ_SECONDS", "600"))
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
"""Not whether valid data is taken (what fields mean together no schema says), nor authentication
(this server asks for none)."""


def fuzz(folder: Path, seconds: int, *more: str) -> None:
    with live_server(CONFIG.format(http="granian"), folder) as live:
        document = folder / "openapi.json"
        document.write_text(json.dumps(prepared(live.url)))
        command = [
            *(str(FUZZER), "--no-color", "run", str(document), "--url", live.url),
            *("--checks", ",".join(CHECKS), "--max-time", str(seconds)),
            *("--continue-on-failure", "--request-timeout", "60", "--report-dir", str(folder)),
            *("--suppress-health-check", "all", *more),
        ]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-2_000:]
        assert "Traceback" not in live.log.read_text(), live.log.read_text()[-4_000:]


needs_fuzzer = pytest.mark.skipif(not FUZZER.exists(), reason="schemathesis is not installed")


@needs_fuzzer
def test_routes_bear_the_usual_edges(tmp_path: Path) -> None:
    """What a description alone says to try: least, largest, missing, of another type."""
    fuzz(tmp_path, 20, "--phases", "coverage", "--generation-deterministic", "--no-shrink")


@pytest.mark.long
@needs_fuzzer
def test_routes_bear_anything(tmp_path: Path) -> None:
    fuzz(tmp_path, SECONDS, "--max-examples", "2000", "--generation-database", "none")
