"""`POST /parse`: a model's answer, as ids or text, to events. Stateless.

A whole answer gives all of its events. With `incremental` it comes in pieces: each reply has a
`state`, which goes with the next piece, and which nobody but this server can write. The piece with
`finish` is the last.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Annotated, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Meta, Struct

from tokenwire.core.call import Query, QueryResult
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.core.events import Event
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.json_body import to_struct
from tokenwire.core.prompt import Phase
from tokenwire.core.queries import Parse, Parsed, ParseOptions
from tokenwire.core.signing import unspelled
from tokenwire.core.wire import HttpReply, HttpRequest, Route
from tokenwire.plugins.protocols.tokens.asking import QueryCodec, json_reply, read, refuse_unknown

__all__ = ("ParseCodec",)

Word: TypeAlias = Annotated[str, Meta(min_length=1)]

_encode: Final = msgspec.json.Encoder().encode


class Body(Struct, frozen=True):
    ids: list[Annotated[int, Meta(ge=0, le=2**32 - 1)]] | None = None
    text: str | None = None
    finish: Literal["stop", "length"] | None = None
    incremental: bool | None = None
    state: str | None = None
    model: str | None = None
    tools: list[dict[str, object]] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: bool | None = None
    phase: Phase | None = None
    stop: Word | Annotated[list[Word], Meta(max_length=64)] | None = None
    include_stop: bool | None = None


class Named(Struct, frozen=True):
    name: Word
    description: str | None = None
    strict: bool | None = None
    """Taken, and nothing to a parser."""
    parameters: dict[str, object] | bool | None = None
    input_schema: dict[str, object] | bool | None = None


class Flat(Named, frozen=True):
    """A tool with its name outermost."""

    type: str | None = None


class Tool(Struct, frozen=True):
    """As Chat Completions writes tools."""

    type: Literal["function", "custom"] = "function"
    function: Named | None = None
    custom: Named | None = None


OPTIONS: Final = (
    "model",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "phase",
    "stop",
    "include_stop",
)
"""What a state holds, so that it is not sent with one."""

FIELDS: Final = (
    FieldRule("ids", "used", "the answer's token ids"),
    FieldRule("text", "used", "the answer's text, where nobody has its ids"),
    FieldRule("finish", "used", "stop or length; a whole answer ends by stop"),
    FieldRule("incremental", "used", "true: more is to come, and a state is given back"),
    FieldRule("state", "used", "what the piece before gave back; another than ours is refused"),
    FieldRule("model", "used", "whose answer; not needed where only one is served"),
    FieldRule("tools", "used", "as Chat Completions writes them, or with their name outermost"),
    FieldRule("tool_choice", "used", "none: what looks like a call is text"),
    FieldRule("parallel_tool_calls", "used", "false: what follows the first call is left out"),
    FieldRule("reasoning", "used", "false: the answer has no reasoning"),
    FieldRule("phase", "used", "where the prompt ended: content or reasoning"),
    FieldRule("stop", "used", "a string or at most 64, which end the visible answer"),
    FieldRule("include_stop", "used", "leave the stop string in the text"),
)


@final
class ParseCodec(QueryCodec):
    name = "parse"
    routes = (Route("POST", "/parse", "A model's answer to events", body=Body),)
    fields = FIELDS

    def decode(self, request: HttpRequest) -> Query:
        body = read(request.body, Body)
        if (body.ids is None) == (body.text is None):
            raise RequestError("wanted one of ids and text", param="ids")
        ids = None if body.ids is None else tuple(body.ids)
        if body.state is not None:
            for name in OPTIONS:
                if getattr(body, name) is not None:
                    raise RequestError(f"{name} is in the state already: leave it out", param=name)
            return Parse(ids=ids, text=body.text, state=_unspelled(body.state), finish=body.finish)
        goes_on = bool(body.incremental) and body.finish is None
        return Parse(
            model=body.model or "",
            ids=ids,
            text=body.text,
            options=_options(body),
            finish=None if goes_on else body.finish or "stop",
        )

    def answer(self, query: Query, result: QueryResult) -> HttpReply:
        if not isinstance(result, Parsed):
            raise TypeError(f"{query!r} is not answered by a {type(result).__name__}")
        state = None if result.state is None else urlsafe_b64encode(result.state).decode()
        return json_reply(
            {
                "events": [_event(event) for event in result.events],
                "fingerprint": result.fingerprint,
                "state": state,
            }
        )


def _options(body: Body) -> ParseOptions:
    stop = body.stop
    tools = tuple(_tool(given, f"tools[{k}]") for k, given in enumerate(body.tools or ()))
    return ParseOptions(
        tools=tools,
        parse_tools=bool(tools) and body.tool_choice != "none",
        parallel=body.parallel_tool_calls is not False,
        reasoning=body.reasoning is not False,
        phase=body.phase or "content",
        stops=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        include_stop=bool(body.include_stop),
    )


def _tool(given: dict[str, object], at: str) -> ToolSpec:
    if "name" in given:
        refuse_unknown(given, Flat, at)
        named, custom = to_struct(given, Named, at=at), given.get("type") == "custom"
    else:
        refuse_unknown(given, Tool, at)
        tool = to_struct(given, Tool, at=at)
        for name in ("function", "custom"):
            if isinstance(one := given.get(name), dict):
                refuse_unknown(one, Named, f"{at}.{name}")
        inner, custom = tool.custom or tool.function, tool.custom is not None
        if inner is None:
            raise RequestError(f"{at} has no function", param=at)
        named = inner
    schema = named.parameters if named.parameters is not None else named.input_schema
    text = None if schema is None else _encode(schema).decode()
    return ToolSpec(named.name, named.description, text, custom=custom)


def _unspelled(text: str) -> bytes:
    try:
        return unspelled(text)
    except ValueError:
        raise RequestError(
            "the state cannot be used: it is no sealed state", param="state", code="invalid_state"
        ) from None


def _event(event: Event) -> dict[str, object]:
    """The event's own schema, but for `end`, which counts characters for logprobs."""
    said: dict[str, object] = msgspec.to_builtins(event)
    said.pop("end", None)
    return said
