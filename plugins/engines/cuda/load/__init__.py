"""Loads networks: `load` is the door. Imports torch."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.load.filling import Progress
from tokenwire.plugins.engines.cuda.load.loading import Loaded, load, load_config

__all__ = ("Loaded", "Progress", "load", "load_config")
