"""How a kit checks its laws, and says which was broken or had nothing to check. Knows no port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar, final

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ("LawBroken", "Probe", "checking", "run_laws", "short")

T = TypeVar("T")
P = TypeVar("P", bound="Probe")

LONGEST = 400
"""Characters of a value in a complaint."""


@final
class LawBroken(AssertionError):
    """A plugin broke `law` of `port`; `detail` says what was wanted and what came."""

    def __init__(self, port: str, law: str, detail: str) -> None:
        super().__init__(f"{port} kit, law '{law}': {detail}")
        self.port = port
        self.law = law
        self.detail = detail


class Probe:
    """What the probes of all ports have in common: for one run of one law, ways to complain."""

    port: ClassVar[str]

    def __init__(self, law: str, *, examples: int = 50) -> None:
        self.law = law
        self.was_skipped = False
        self._examples = examples

    def skip(self) -> None:
        """The law has nothing to say of this plugin, or what it needs was not given: a kit does
        not count it among those that hold."""
        self.was_skipped = True

    def equal(self, what: str, got: object, wanted: object) -> None:
        if got != wanted:
            self.broken(f"{what}: wanted {short(wanted)}, got {short(got)}")

    def true(self, what: str, holds: bool) -> None:
        if not holds:
            self.broken(what)

    def broken(self, detail: str) -> NoReturn:
        raise LawBroken(self.port, self.law, detail)

    def every(self, strategy: SearchStrategy[T], check: Callable[[T], None]) -> None:
        """Check what the strategy makes: the same examples on every run."""
        # Why here: `conform` names broken laws, and says in words that hypothesis is missing.
        from hypothesis import HealthCheck, given, settings

        @settings(
            max_examples=self._examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
        )
        @given(strategy)
        def run(value: T) -> None:
            check(value)

        run()


@contextmanager
def checking(probe: Probe) -> Iterator[None]:
    """Whatever else a law lets out is a broken law, too."""
    try:
        yield
    except LawBroken:
        raise
    except Exception as error:
        detail = f"wanted no exception, got {type(error).__name__}: {error}"
        raise LawBroken(probe.port, probe.law, detail) from error


def run_laws(
    names: Iterable[str], checks: Mapping[str, Callable[[P], None]], make: Callable[[str], P]
) -> tuple[str, ...]:
    """The laws that hold, of these; `make` gives each a fresh probe. Raises LawBroken for the first
    that does not."""
    held = []
    for name in names:
        probe = make(name)
        with checking(probe):
            checks[name](probe)
        if not probe.was_skipped:
            held.append(name)
    return tuple(held)


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
