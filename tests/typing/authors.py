"""What a plugin author's editor must say, for each port: checked by mypy, never run.

`assert_type` pins a type; an ignored error pins that the error is there, because strict mypy
refuses an ignore that ignores nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import assert_never, assert_type

from tokenwire.core.call import Call, Count, GetModel, Identity, ListModels, ModelInfo, QueryResult
from tokenwire.core.dialogue import Dialogue, Text, ToolResult, Turn
from tokenwire.core.errors import CallError, ErrorKind, RequestError
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    PartDelta,
    PartEnd,
    PartKind,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.fold import Answer, fold
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, PartEvent, Template
from tokenwire.core.ports.engine import Engine
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.router import EngineView, Router, RouterChoice, RouterQuery
from tokenwire.core.ports.store import Incr, Store
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Phase, Piece, Segments
from tokenwire.core.signing import Keyring
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Control, EngineStatus, TokenDelta, TokenJob
from tokenwire.core.wire import HttpReply, HttpRequest, Route, Stamp


class Half(Codec):
    """A codec that is not done."""

    name = "half"
    routes = (Route("POST", "/half"),)


class Whole(Codec):
    name = "whole"
    routes = (Route("POST", "/whole"),)

    def decode(self, request: HttpRequest) -> Call:
        assert_type(request.body, bytes)
        turn = Turn("user", (Text("hi"),))
        Turn("narrator", ())  # type: ignore[arg-type]
        return Call("m", Dialogue((turn,)))

    def reply(self, call: Call, stamp: Stamp) -> Reply:
        assert_type(stamp.token(0), str)
        return Spoken()

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        assert_type(error.kind, ErrorKind)
        assert_type(error.retry_after, float | None)
        return HttpReply(error.status, "text/plain", error.message.encode())


class Spoken(Reply):
    content_type = "text/plain"

    def push(self, event: Event) -> bytes:
        """Every event is named; a new one would be an error here."""
        match event:
            case Started() | Logprobs() | Finished() | Usage() | Failed():
                return b""
            case PartStart():
                assert_type(event.kind, PartKind)
                return b""
            case PartDelta():
                return event.text.encode()
            case PartEnd():
                return b"."
            case _:
                assert_never(event)

    def save(self) -> object:
        return None

    def restore(self, state: object) -> None: ...


def codecs(services: Services) -> None:
    Half()  # type: ignore[abstract]
    codec = Whole()
    assert_type(codec.decode(HttpRequest("POST", "/whole")), Call)
    assert_type(Codec.routes, tuple[Route, ...])
    assert_type(services.keys, Keyring)
    assert_type(services.store, Store | None)
    assert_type(services.tokenizer, Tokenizer | None)


@impl
def register_codecs() -> Iterable[Factory[Codec]]:
    return [Factory("whole", NoSettings, lambda settings, services: Whole())]


def queries(query: Count | ListModels | GetModel, result: QueryResult) -> None:
    if isinstance(query, Count):
        assert_type(query.call, Call)
    if isinstance(result, int):
        assert_type(result, int)
    elif isinstance(result, ModelInfo):
        assert_type(result.context_length, int)
    elif isinstance(result, tuple):
        assert_type(result, tuple[ModelInfo, ...])


def values(events: Sequence[Event], turn: Turn) -> None:
    answer = fold(events)
    assert_type(answer, Answer)
    assert_type(answer.choices[0].reason, FinishReason | None)
    turn.role = "user"  # type: ignore[misc]
    for part in turn.parts:
        if isinstance(part, ToolResult):
            assert_type(part.is_error, bool)
    raise RequestError("a is wrong", kind=ErrorKind.NOT_FOUND, param="a")


class Shouting(Template):
    def render(self, dialogue: Dialogue, now: float) -> Segments:
        return Segments(())


class Verbatim(Parser):
    phase: Phase = "content"

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        assert_type(piece.text, str)
        return (PartDelta(0, piece.text),)

    def flush(self) -> Sequence[PartEvent]:
        return (Started(1),)  # type: ignore[return-value]

    def save(self) -> object:
        return None

    def restore(self, state: object) -> None: ...


class Verbatims(ParserMaker):
    def parser(self, setup: ParserSetup) -> Parser:
        assert_type(setup.phase, Phase)
        return Verbatim()


async def stores(store: Store) -> None:
    assert_type(await store.get("n", "k"), bytes | None)
    assert_type(await store.apply(Incr(), "n", "k"), float)
    await store.set("n", "k", b"v", 3.0)  # type: ignore[call-arg]


async def engines(engine: Engine, job: TokenJob, frames: Sequence[Control]) -> None:
    engine.submit([job])
    engine.control(frames)
    assert_type(engine.batches(), AsyncIterator[tuple[TokenDelta, ...]])
    assert_type(engine.status(), EngineStatus)
    assert_type(job.prompt, TokenIds)


def tokenizers(tokenizer: Tokenizer) -> None:
    assert_type(tokenizer.encode("hi"), TokenIds)
    assert_type(tokenizer.token_bytes(3), bytes)


class First(Router):
    def pick(self, query: RouterQuery, fleet: tuple[EngineView, ...]) -> RouterChoice | None:
        assert_type(query.blocks, tuple[bytes, ...])
        return RouterChoice(fleet[0].id, "the first") if fleet else None


class Door(Guard):
    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        assert_type(identity.tenant, str)
        return identity
