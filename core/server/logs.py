"""Where log lines go: standard error, unless whoever embeds us has said otherwise."""

from __future__ import annotations

import logging

__all__ = ("set_up_logs",)


def set_up_logs() -> None:
    """Our own lines from INFO on, everybody else's from WARNING on."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("tokenwire").setLevel(logging.INFO)
