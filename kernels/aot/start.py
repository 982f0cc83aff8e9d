"""What an engine does with built kernels when it starts. Needs no Triton to be imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ("load_built",)


def load_built(
    capability: tuple[int, int], folder: Path | None = None
) -> tuple[int, tuple[str, ...]]:
    """Puts the artefact of `folder` (None: where `tokenwire kernels build` writes) into Triton's
    cache -> (kernels that need no compiling, warnings to log). Raises nothing: kernels that are not
    built are compiled when they are first used. Where no folder was named and none is there, that
    is no warning."""
    if find_spec("triton") is None:
        return 0, ("triton is not installed, so that no built kernel is of use",)
    from tokenwire.kernels.aot.artefact import default_folder, load

    place = folder or default_folder(capability)
    if folder is None and not place.exists():
        return 0, ()
    loaded = load(place, capability)
    return loaded.kernels, loaded.warnings
