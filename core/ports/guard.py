"""The guard port: may this request come in, and as whom."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tokenwire.core.call import Identity
from tokenwire.core.wire import HttpRequest

__all__ = ("Guard",)


class Guard(ABC):
    """Laws: asked once a request, before decoding; the first guard that names a tenant decides it;
    raises nothing but RequestError; never reads or keeps the body."""

    @abstractmethod
    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        """The identity to go on with; raises RequestError (401, 403, 429) to refuse."""
