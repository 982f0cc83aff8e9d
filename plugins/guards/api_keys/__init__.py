"""The guard `api_keys`: a key in each request, which names its tenant. Off without keys."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.guard import Guard
from tokenwire.plugins.guards.api_keys.guard import ApiKeys, Settings


@impl
def register_guards() -> Iterable[Factory[Guard]]:
    def build(settings: Settings, services: Services) -> Guard:
        return ApiKeys(settings, os.environ, time.monotonic)

    yield Factory("api_keys", Settings, build, "asks for a key, which names its tenant")
