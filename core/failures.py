"""What a client is told when an engine's finish is no answer. Knows no protocol."""

from __future__ import annotations

from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import Failed
from tokenwire.core.tokens import Finish, FinishCause, FinishKind

__all__ = ("INTERNAL", "failure")

# The engine's own words go to the log alone.
FAILURES: dict[FinishCause, tuple[ErrorKind, str]] = {
    FinishCause.REFUSED: (
        ErrorKind.INVALID_REQUEST,
        "the model's engine cannot do what this request asks",
    ),
    FinishCause.CONTEXT_LENGTH: (
        ErrorKind.CONTEXT_LENGTH,
        "the prompt does not fit into the model's context",
    ),
    FinishCause.OVERLOADED: (ErrorKind.OVERLOADED, "the model is overloaded; try again shortly"),
    FinishCause.LOST: (ErrorKind.UNAVAILABLE, "the model's engine was lost; try again"),
    FinishCause.DEADLINE: (ErrorKind.TIMEOUT, "the request's deadline passed"),
    FinishCause.DRAIN: (ErrorKind.UNAVAILABLE, "the server is shutting down; try again elsewhere"),
    FinishCause.PREEMPTED: (ErrorKind.OVERLOADED, "the request gave way to more urgent ones"),
}
INTERNAL = (ErrorKind.INTERNAL, "the model's engine met an internal error")
OWN_ABORTS = (FinishCause.STOP_TEXT, FinishCause.CLIENT)
RETRY_AFTER_S = {ErrorKind.OVERLOADED: 1.0, ErrorKind.UNAVAILABLE: 1.0}


def failure(finish: Finish) -> Failed | None:
    """What an engine's finish tells the client when it is no answer; None for a proper end."""
    if finish.kind in (FinishKind.STOP, FinishKind.LENGTH):
        return None
    if finish.kind is FinishKind.ABORT and finish.cause in OWN_ABORTS:
        return None
    kind, message = FAILURES.get(finish.cause, INTERNAL)
    return Failed(kind, message, RETRY_AFTER_S.get(kind))
