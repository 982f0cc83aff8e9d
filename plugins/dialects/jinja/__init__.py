"""Registers the template `jinja`: a checkpoint's own chat template, or a given one."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Template
from tokenwire.plugins.dialects.jinja.build import build
from tokenwire.plugins.dialects.jinja.settings import Settings


@impl
def register_templates() -> Iterable[Factory[Template]]:
    summary = "the checkpoint's own chat template, sandboxed"
    return [Factory("jinja", Settings, build, summary)]
