"""What a leader's loop gets: its followers, and its agreement with other parts' leaders."""

from __future__ import annotations

from tokenwire.plugins.engines.cuda.laid import Laid
from tokenwire.plugins.engines.cuda.parallel.followers import Follower, Followers
from tokenwire.plugins.engines.cuda.parallel.lockstep import Lockstep
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
from tokenwire.plugins.engines.cuda.policy.lockstep import Rules

__all__ = ("follower_of", "followers_of", "lockstep_of")

LOW = 4
"""A part that has less than this part of its places taken does not hold prompts back."""


def lockstep_of(mesh: Mesh, laid: Laid) -> Lockstep:
    low = max(laid.found.max_batch_size // LOW, 1)
    return Lockstep(mesh.data_host, Rules(sizes=laid.graph_sizes, low=low))


def followers_of(mesh: Mesh) -> Followers | None:
    """None: the leader is its part."""
    return Followers(mesh.tensor_host, mesh.tensor) if mesh.tensor.size > 1 else None


def follower_of(mesh: Mesh, laid: Laid) -> Follower:
    """In a rank that is no leader."""
    return Follower(laid.passes, mesh.tensor_host, mesh.tensor, laid.stream)
