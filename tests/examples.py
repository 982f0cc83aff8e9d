"""How many examples a law is tried with: 50, or six times as many with --hypothesis-profile=long.

No test says a number of its own: one whose examples are dear takes a `share`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ("load", "share")

USUAL = 50


def load() -> None:
    """Both profiles: the same examples on every run, and no test that fails of a slow machine."""
    for name, examples in (("usual", USUAL), ("long", 6 * USUAL)):
        settings.register_profile(
            name,
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
    settings.load_profile("usual")


def share(examples: int) -> settings:
    """`examples` of the usual 50; as much more in the long profile."""
    return settings(max_examples=settings().max_examples * examples // USUAL)
