"""What the edge costs before it is used, and what it may touch."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("granian", "litestar", "uvicorn", "torch", "transformers", "tokenizers", "rich")


def test_the_lifecycle_imports_no_server():
    """The port is bound, or refused, before anything heavy is loaded."""
    code = (
        "import sys, tokenwire.core.server.lifecycle;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
