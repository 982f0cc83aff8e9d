"""Template `harmony`: messages with a role, a channel, and a recipient where they are for a tool.

The system message is the family's own; what clients say as system or developer is the developer
message, with the tools. An assistant turn's text before its calls is a preamble on `commentary`,
other text is `final`. Reasoning is shown only behind the last answer that calls nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import (
    Dialogue,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects._shared.client_text import text_of
from tokenwire.plugins.dialects.harmony.markers import (
    CALL,
    CHANNEL,
    CONSTRAIN,
    END,
    MESSAGE,
    START,
)
from tokenwire.plugins.dialects.harmony.settings import TemplateSettings
from tokenwire.plugins.dialects.harmony.typescript import declaration

__all__ = ("HarmonyTemplate",)

SYSTEM: Final = ("system", "developer")
CHANNELS: Final = (
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
)
TOOLS_GO_TO: Final = "\nCalls to these tools must go to the commentary channel: 'functions'."


class _Place(Struct, frozen=True):
    """What a turn's messages depend on beside the turn."""

    turn: int
    shows_reasoning: bool
    is_open: bool
    """Whether the model goes on with its last message."""


@final
class HarmonyTemplate(Template):
    """Parallel calls are messages of their own, one behind the other."""

    source = "harmony 1"

    variables = ("model_identity", "reasoning_effort", "tools")

    def __init__(self, settings: TemplateSettings | None = None) -> None:
        self._settings = settings or TemplateSettings()

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        if not dialogue.turns:
            raise RequestError("a conversation needs at least one message")
        segments = (*self._system(dialogue, now), *_developer(dialogue), *_turns(dialogue))
        return Segments(tuple(segment for segment in segments if segment.text))

    def _system(self, dialogue: Dialogue, now: float) -> Iterator[Segment]:
        settings = self._settings
        arguments = dialogue.template_args
        identity = arguments.get("model_identity", settings.identity)
        effort = arguments.get("reasoning_effort", dialogue.reasoning.effort) or settings.effort
        if not isinstance(identity, str) or not isinstance(effort, str):
            raise RequestError("model_identity and reasoning_effort must be texts")
        today = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        yield from (_special(START), _own("system"), _special(MESSAGE))
        yield Segment(identity, "client" if "model_identity" in arguments else "template")
        yield _own(f"\nKnowledge cutoff: {settings.knowledge_cutoff}\nCurrent date: {today}\n\n")
        yield from (_own("Reasoning: "), Segment(effort, "client"))
        yield _own(f"\n\n{CHANNELS}{TOOLS_GO_TO if dialogue.tools else ''}")
        yield _special(END)


def _own(text: str) -> Segment:
    return Segment(text, "template")


def _special(text: str) -> Segment:
    return Segment(text, "special")


def _developer(dialogue: Dialogue) -> Iterator[Segment]:
    turns = [(k, turn) for k, turn in enumerate(dialogue.turns) if turn.role in SYSTEM]
    if not turns and not dialogue.tools:
        return
    yield from (_special(START), _own("developer"), _special(MESSAGE))
    if turns:
        yield _own("# Instructions\n\n")
    for place, (k, turn) in enumerate(turns):
        yield _own("\n\n" * bool(place))
        yield from _texts(turn.parts, k)
    if dialogue.tools:
        yield _own("\n\n" * bool(turns) + "# Tools\n\n## functions\n\nnamespace functions {\n\n")
        for tool in dialogue.tools:
            yield Segment(f"{declaration(tool)}\n\n", "client")
        yield _own("} // namespace functions")
    yield _special(END)


def _turns(dialogue: Dialogue) -> Iterator[Segment]:
    names = {p.id: p.name for turn in dialogue.turns for p in turn.parts if isinstance(p, ToolCall)}
    answer = max((k for k, turn in enumerate(dialogue.turns) if _answers(turn)), default=-1)
    last = len(dialogue.turns) - 1
    is_going_on = dialogue.continue_final and dialogue.turns[last].role == "assistant"
    for k, turn in enumerate(dialogue.turns):
        if turn.role in SYSTEM:
            continue
        place = _Place(k, k > answer or (k == last and is_going_on), k == last and is_going_on)
        if turn.role == "assistant":
            yield from _assistant(turn, place)
        else:
            yield from _user(turn, k, names)
    if not is_going_on:
        yield from (_special(START), _own("assistant"))


def _answers(turn: Turn) -> bool:
    return turn.role == "assistant" and not any(isinstance(part, ToolCall) for part in turn.parts)


def _user(turn: Turn, k: int, names: dict[str, str]) -> Iterator[Segment]:
    for j, part in enumerate(turn.parts):
        if isinstance(part, ToolResult):
            name = part.name or names.get(part.call_id) or "unknown"
            yield from (_special(START), _own("functions."), Segment(name, "client", k, j))
            yield from (_own(" to=assistant"), _special(CHANNEL), _own("commentary"))
            yield _special(MESSAGE)
            for inner in part.parts:
                yield Segment(text_of(inner, k), "client", k, j)
            yield _special(END)
    if turn.role == "user" and not all(isinstance(part, ToolResult) for part in turn.parts):
        yield from (_special(START), _own("user"), _special(MESSAGE))
        yield from _texts(turn.parts, k)
        yield _special(END)


def _assistant(turn: Turn, place: _Place) -> Iterator[Segment]:
    """Its messages, in the order of its parts."""
    calls = [j for j, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    messages = [
        (kind, [j for j, _ in group])
        for kind, group in groupby(enumerate(turn.parts), lambda item: _kind(item[1]))
        if kind != "reasoning" or place.shows_reasoning
    ]
    for count, (kind, indexes) in enumerate(messages):
        is_open = place.is_open and count == len(messages) - 1
        if kind == "call":
            for j in indexes:
                yield from _call(turn.parts[j], place.turn, j)
            continue
        segments = list(_said(turn.parts, indexes, place.turn))
        if not any(segment.text for segment in segments) and not (is_open or len(messages) == 1):
            continue
        before_calls = any(j > indexes[-1] for j in calls)
        speaking = "commentary" if before_calls else "final"
        yield from (_special(START), _own("assistant"), _special(CHANNEL))
        yield from (_own("analysis" if kind == "reasoning" else speaking), _special(MESSAGE))
        yield from segments
        if not is_open:
            yield _special(END)


def _kind(part: Part) -> str:
    match part:
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "call"
    return "text"


def _call(part: Part, k: int, j: int) -> Iterator[Segment]:
    assert isinstance(part, ToolCall)
    arguments = part.arguments or "{}"
    if part.custom:
        arguments = msgspec.json.encode({"input": part.arguments}).decode()
    yield from (
        _special(START),
        _own("assistant to=functions."),
        Segment(part.name, "client", k, j),
    )
    yield from (_special(CHANNEL), _own("commentary "), _special(CONSTRAIN), _own("json"))
    yield from (_special(MESSAGE), Segment(arguments, "client", k, j), _special(CALL))


def _said(parts: tuple[Part, ...], indexes: list[int], k: int) -> Iterator[Segment]:
    for j in indexes:
        part = parts[j]
        if isinstance(part, Reasoning):
            yield Segment(part.text, "client", k, j)
        elif not isinstance(part, (ToolCall, ToolResult)):
            yield Segment(text_of(part, k), "client", k, j)


def _texts(parts: tuple[Part, ...], k: int) -> Iterator[Segment]:
    said = [j for j, part in enumerate(parts) if not isinstance(part, (Reasoning, ToolCall))]
    yield from _said(parts, said, k)
