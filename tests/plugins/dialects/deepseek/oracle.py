"""Dialogues as the rival renderer's conversations, and dialogues to try. Knows none of our code
but the values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.dialogue import (
    Dialogue,
    Opaque,
    Part,
    Reasoning,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)

__all__ = ("dialogues", "rendered")

recipe = pytest.importorskip("deepseek_recipe")

EFFORTS = {"minimal": "low", "low": "low", "medium": "high", "high": "high", "xhigh": "xhigh",
           "max": "max"}  # fmt: skip
VERSIONS = {"deepseek_v4": "DeepseekV4Encoding", "deepseek_v41": "DeepseekV41Encoding"}


def rendered(name: str, dialogue: Dialogue) -> str:
    """What deepseek-recipe writes for the same conversation."""
    encoding = getattr(recipe, VERSIONS[name])()
    return encoding.render_conversation(_conversation(name, dialogue)).prompt


def _conversation(name: str, dialogue: Dialogue):
    thinks = dialogue.reasoning.mode != "off"
    choice = dialogue.tool_choice.mode
    tools = [_tool(name, tool) for tool in dialogue.tools]
    if choice == "named":
        tools = [tool for tool in tools if tool.name in dialogue.tool_choice.names]
    wanted = dialogue.response_format
    return recipe.Conversation(
        [message for turn in _ended(dialogue) for message in _messages(name, turn, thinks, tools)],
        thinking_mode=thinks,
        tools=tools,
        tool_choice={"named": "required"}.get(choice, choice),
        reasoning_effort=EFFORTS.get(dialogue.reasoning.effort or "high"),
        response_format="json_object" if wanted.kind == "json_object" else "text",
        response_schema=json.loads(wanted.text) if wanted.kind == "json_schema" else None,
    )


def _tool(name: str, tool: ToolSpec):
    # V4 shows every tool: the rival's own conversion undoes the deferring for it.
    deferred = name != "deepseek_v4" and tool.extra.get("defer_loading") is True
    parameters = json.loads(tool.parameters or "{}")
    return recipe.ToolDefinition(tool.name, tool.description, parameters, None, deferred)


def _ended(dialogue: Dialogue):
    *turns, last = dialogue.turns
    yield from ((turn, False) for turn in turns)
    yield last, dialogue.continue_final


def _messages(name, ended, thinks, tools):
    turn, goes_on = ended
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    text = "\n\n".join(texts)
    if turn.extra.get("role") == "latest_reminder":
        yield recipe.LatestReminderMessage(text)
    elif turn.role == "system" or (turn.role == "developer" and name == "deepseek_v41"):
        added = {part.value["tool"]["name"] for part in turn.parts if isinstance(part, Opaque)}
        # The rival shows what it is given; a tool that is not there is not given.
        given = [tool for tool in tools if tool.name in added] or None
        yield recipe.SystemMessage(text, None, None if name == "deepseek_v4" else given)
    elif turn.role == "assistant":
        thoughts = [part.text for part in turn.parts if isinstance(part, Reasoning)]
        calls = [
            recipe.ToolCall(part.id, part.name, part.arguments)
            for part in turn.parts
            if isinstance(part, ToolCall)
        ]
        # As its conversion does: none shown is empty where the model thinks.
        reasoning = "\n\n".join(thoughts) if thinks else None
        yield recipe.AssistantMessage(text, reasoning, calls or None, goes_on)
    else:
        for part in turn.parts:
            if isinstance(part, ToolResult):
                shown = "\n\n".join(inner.text for inner in part.parts)
                yield recipe.ToolMessage(shown, part.call_id)
        if texts or not turn.parts:
            yield recipe.UserMessage(text)


WORDS = st.one_of(
    st.sampled_from(["", "a", "hi there", "\n", " x ", '"q" \\ <b> é🌊', "line\n\nline",
                     "</think>", "\u2028", "<tool_result>"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
)  # fmt: skip
TEXTS = st.lists(WORDS.map(Text), max_size=2).map(tuple)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e-5, 1.25e-5, 1e-6, 1e15, 1e16, 1.5e22, -0.0, 5e-324, 2**63, -(2**63)]),
)  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.one_of(
    st.dictionaries(WORDS, JSON, max_size=3).map(json.dumps),
    st.dictionaries(WORDS, JSON, max_size=3).map(lambda v: json.dumps(v, ensure_ascii=False)),
    st.sampled_from([
        "", "null", "[1]", "{", '{"a": 1,}', '{"a": NaN}', '{"a": 1e999}', ' {"a":-0} ',
        '{"a": "\\ud800"}', '{"a": 1, "b": 2, "a": 3}', '{"a":' * 200 + "1" + "}" * 200,
    ]),
)  # fmt: skip
NAMES = st.sampled_from(["look_up", "f", 'q"<>'])
CALLS = st.lists(st.builds(ToolCall, st.just(""), NAMES, ARGUMENTS), max_size=3).map(tuple)
THOUGHTS = st.lists(WORDS.map(Reasoning), max_size=2).map(tuple)
ADDED = st.sampled_from([(), (Opaque("tool_addition", {"tool": {"name": "late"}}),)])
TURNS = st.one_of(
    st.builds(Turn, st.just("user"), TEXTS),
    st.builds(lambda t, a: Turn("system", t + a), TEXTS, ADDED),
    st.builds(Turn, st.just("developer"), TEXTS),
    st.builds(lambda t: Turn("system", t, extra={"role": "latest_reminder"}), TEXTS),
    st.builds(lambda r, t, c: Turn("assistant", r + t + c), THOUGHTS, TEXTS, CALLS),
    st.builds(lambda r, t, c: Turn("assistant", r + t + c), THOUGHTS, TEXTS, CALLS),
)
SMALL = st.dictionaries(
    st.sampled_from(["type", "a", "é"]),
    st.one_of(WORDS, st.floats(-1e30, 1e30), st.integers(-(2**63), 2**64 - 1), st.booleans()),
    max_size=3,
).map(json.dumps)
TOOLS = st.lists(
    st.one_of(
        st.builds(ToolSpec, NAMES, WORDS, SMALL),
        st.builds(ToolSpec, NAMES),
        st.just(ToolSpec("late", "d", '{"type": "object"}', extra={"defer_loading": True})),
    ),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)
CHOICES = st.sampled_from([
    ToolChoice(), ToolChoice(), ToolChoice("none"), ToolChoice("required"),
    ToolChoice("named", ("f",)),
])  # fmt: skip
SETTINGS = st.builds(
    ReasoningSettings, st.sampled_from([None, "on", "off", "adaptive"]),
    st.sampled_from([None, "low", "medium", "high", "xhigh", "max", "minimal"]),
)  # fmt: skip
FORMATS = st.one_of(
    st.just(ResponseFormat()), st.just(ResponseFormat("json_object")),
    SMALL.map(lambda text: ResponseFormat("json_schema", text)),
    st.just(ResponseFormat("regex", "a+")),
)  # fmt: skip


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    turns = _apart(_answered(draw, draw(st.lists(TURNS, min_size=1, max_size=7))))
    # Alone, an answer to go on with loses its reasoning in V4.1 as the rival renders it.
    goes_on = len(turns) > 1 and turns[-1].role == "assistant" and draw(st.booleans())
    tools = draw(TOOLS)
    choice = draw(CHOICES)
    if choice.mode in ("none", "named"):
        # What is not shown cannot be brought in later; the rival's caller has to see to that.
        tools = tuple(tool for tool in tools if not tool.extra)
    return Dialogue(turns, tools, choice, draw(FORMATS), draw(SETTINGS), continue_final=goes_on)


def _answered(draw: st.DrawFn, turns: list[Turn]) -> Iterator[Turn]:
    """Every call has its result behind it, in any order, as the protocols want. Ids are in the
    order of the calls, as minted ones are.

    Why: the rival sorts the calls of a V4 turn by id, where we keep the order that the model wrote.
    """
    made = 0
    for turn in turns:
        ids = []
        parts: list[Part] = []
        for part in turn.parts:
            if isinstance(part, ToolCall):
                ids.append(f"call_{made:02}")
                part = replace(part, id=ids[-1])
                made += 1
            parts.append(part)
        yield replace(turn, parts=tuple(parts))
        results = [ToolResult(id, draw(TEXTS)) for id in draw(st.permutations(ids))]
        if results and draw(st.booleans()):
            yield Turn("user", (*results, *draw(TEXTS)))
        else:
            yield from (Turn("tool", (result,)) for result in results)


def _apart(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """No reminder next to another: of such the rival shows V4.1 the first alone, where we lose no
    text."""
    kept: list[Turn] = []
    for turn in turns:
        if not (kept and turn.extra and kept[-1].extra):
            kept.append(turn)
    return tuple(kept)
