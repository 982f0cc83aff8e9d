"""Which op an error came from, and the memory that an error holds. Knows no step."""

from __future__ import annotations

from types import TracebackType

__all__ = ("NETWORK", "OTHER", "SAMPLER", "op_of", "release_frames")

KERNELS = "tokenwire.kernels."
NETWORK, SAMPLER, OTHER = "network", "sampler", "other"
PARTS = {
    "tokenwire.plugins.engines.cuda.models": NETWORK,
    "tokenwire.plugins.engines.cuda.layers": NETWORK,
    "tokenwire.plugins.engines.cuda.sampler": SAMPLER,
}


def op_of(error: BaseException) -> str:
    """The kernel's folder whose code raised it, or else the part of the engine: a closed set, which
    is a metric's label."""
    found = OTHER
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith(KERNELS):
            found = module.removeprefix(KERNELS).partition(".")[0]
        else:
            found = next((part for name, part in PARTS.items() if module.startswith(name)), found)
        trace = trace.tb_next
    return found


def release_frames(error: BaseException) -> None:
    """Let go of the frames that an error holds, and so of the tensors in them: a smaller step then
    finds their memory."""
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = None
        seen = seen.__context__ or seen.__cause__
