"""Files that tests read and that are no part of the project: published chat templates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ("shared",)

ROOT = Path(__file__).parent.parent


def shared(folder: str) -> Path:
    """TOKENWIRE_SHARED/folder, else ../shared/folder; skips where it is absent."""
    path = Path(os.environ.get("TOKENWIRE_SHARED") or ROOT.parent / "shared") / folder
    if not path.is_dir():
        pytest.skip(f"{path} is absent; TOKENWIRE_SHARED names another place for it")
    return path
