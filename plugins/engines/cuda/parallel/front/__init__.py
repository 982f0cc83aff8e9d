"""The server's side of groups of ranks: starts them, shares jobs out, gathers what comes back.

Runs in the server's process, and imports no torch.
"""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.parallel.front.building import build_groups

__all__ = ("build_groups",)
