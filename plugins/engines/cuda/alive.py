"""Whether a device still works at all, after something on it failed. Knows no step."""

from __future__ import annotations

import torch

__all__ = ("is_alive",)


def is_alive(device: torch.device | str) -> bool:
    """Waits for the device."""
    try:
        return int(torch.ones(1, device=device).add_(1)) == 2
    except RuntimeError:
        return False
