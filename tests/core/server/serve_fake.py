"""`python serve_fake.py '{"port": 0, ...}' [opener]`: the real edge over the fake deployment."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import fakes
import msgspec

from tokenwire.core.config import Config, ServerConfig
from tokenwire.core.server.lifecycle import run

if __name__ == "__main__":
    server = msgspec.json.decode(sys.argv[1], type=ServerConfig)
    opener = getattr(fakes, sys.argv[2] if len(sys.argv) > 2 else "open_fake")
    sys.exit(run(Config(server=server), opener))
