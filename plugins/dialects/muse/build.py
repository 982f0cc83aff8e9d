"""Builds the dialect `muse` and its parser."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker

__all__ = ("build_dialect", "build_parser")


def build_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.muse.maker import MuseMaker

    return MuseMaker()


def build_dialect(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("muse", "chatml", parser="muse", template_markers=('<atem:invoke name="',))
