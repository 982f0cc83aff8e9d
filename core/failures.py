"""What a client is told when an engine's finish is no answer. Knows no protocol."""

from __future__ import annotations

import re
from typing import Final

from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.events import Failed
from tokenwire.core.tokens import Constraint, Finish, FinishCause, FinishKind

__all__ = ("INTERNAL", "constrained_field", "constraint_error", "failure")

LONGEST_REASON: Final = 200
SHARED: Final = 16
"""A reason that has so many characters in a row of a prompt is not shown."""
ODD: Final = re.compile(r"[^\x21-\x7e]+")

# The engine's own words go to the log alone (but for why it cannot keep to a constraint).
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


def constraint_error(
    finish: Finish, constraint: Constraint, prompt: str, param: str
) -> RequestError | None:
    """Why an engine refused a job that holds its answer to something; None where the refusal was
    for the moment alone. `prompt`: its text, of which nothing may be said; `param`: the field that
    asks for the constraint, as its protocol calls it."""
    if finish.cause is not FinishCause.REFUSED or finish.retryable:
        return None
    reason = _safe(finish.message, constraint.text, prompt)
    return RequestError(
        f"the model's engine refused the {constraint.kind} that {param} holds the answer to"
        f"{f': {reason}' if reason else ''}",
        param=param,
        code="unsupported_constraint",
    )


def constrained_field(dialogue: Dialogue) -> str:
    """What of a call its constraint was made from."""
    choice, wanted = dialogue.tool_choice, dialogue.response_format
    if not dialogue.tools or choice.mode == "none":
        return "response_format"
    is_forced = choice.mode in ("required", "named") or choice.required
    return "tools" if is_forced or wanted.kind == "text" else "response_format"


def _safe(reason: str, own: str, prompt: str) -> str:
    """In one short line; "" where it quotes the prompt, and not only what the client wrote as the
    constraint."""
    shown = ODD.sub(" ", reason)[:LONGEST_REASON].strip()
    for at in range(len(shown) - SHARED + 1):
        piece = shown[at : at + SHARED]
        if piece in prompt and piece not in own:
            return ""
    return shown
