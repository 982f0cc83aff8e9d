"""One HTTP request to its answer: guard, decode, render, submit, stream. Knows no server.

The edge gives it a request and an Exchange; what fails is answered in the protocol's own shape.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from secrets import token_bytes
from typing import final
from urllib.parse import parse_qsl

from msgspec.structs import replace

from tokenwire.core.answer_key import answer_key
from tokenwire.core.answer_record import relabel
from tokenwire.core.answers import AnswerCache
from tokenwire.core.call import Call, Embed, Identity
from tokenwire.core.config import MediaConfig
from tokenwire.core.detached import Detached
from tokenwire.core.embedding import Embeddings
from tokenwire.core.errors import CallError, ErrorKind, RequestError, ServiceError
from tokenwire.core.exchange import ClientGone, Exchange
from tokenwire.core.lookups import Lookups
from tokenwire.core.media_fetch import MediaFetcher
from tokenwire.core.model_table import ModelTable
from tokenwire.core.needs import Needs
from tokenwire.core.performer import Performer
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.observer import Observer
from tokenwire.core.recent import RecentPrompts
from tokenwire.core.routes import RouteTable
from tokenwire.core.run import RunSettings
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.served import AbsentModel, ServedModel
from tokenwire.core.shelf import Shelf
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import GetStored
from tokenwire.core.stream import CREDIT_WINDOW
from tokenwire.core.tokens import TokenDelta, TokenJob
from tokenwire.core.truncation import fitted
from tokenwire.core.wire import HttpReply, HttpRequest, Stamp
from tokenwire.core.work import IGNORED_HEADER, Work, listed, request_ids

__all__ = ("Flow",)

log = logging.getLogger("tokenwire.flow")

SCRIPT_HEADER = "x-mock-script"
MOST_PARAMETERS = 64
NOT_FOUND = b'{"error":{"message":"there is nothing at this path","type":"not_found"}}'


@final
class Flow:
    """Shared by all requests; holds no state of any."""

    def __init__(
        self,
        *,
        codecs: Sequence[Codec],
        models: Mapping[str, ServedModel],
        absent: Sequence[AbsentModel] = (),
        guards: Sequence[Guard] = (),
        observers: Sequence[Observer] = (),
        scripts: ScriptBook | None = None,
        recent: RecentPrompts | None = None,
        answers: AnswerCache | None = None,
        settings: RunSettings | None = None,
        keys: Keyring | None = None,
        media: MediaConfig | None = None,
        shelf: Shelf | None = None,
        max_background: int = 256,
    ) -> None:
        """`models` by name and alias; `recent` keeps prompts for debugging; `answers` keeps those
        of deterministic calls; `shelf` those that clients may ask for again."""
        self.routes = RouteTable(codecs)
        self._models = ModelTable(models, absent)
        keys = keys or Keyring([token_bytes(32)])
        self._settings = settings or RunSettings()
        self._performer = Performer(observers, self._settings, shelf)
        self._embeddings = Embeddings(self._models, observers, self._settings)
        self._detached: Detached | None = None
        if shelf is not None:
            self._detached = Detached(shelf, max_background, self._settings.keepalive_s)
        stored = self._detached.lookups if self._detached is not None else None
        self._needs = Needs(keys, MediaFetcher(media or MediaConfig()), shelf)
        self._lookups = Lookups(self._models, codecs, keys, self._needs, stored)
        self._guards = tuple(guards)
        self._scripts = scripts
        self._recent = recent
        self._answers = answers

    async def close(self, timeout_s: float) -> None:
        """What is made in the background ends and is stored. Engines are stopped before."""
        if self._detached is not None:
            await self._detached.background.close(timeout_s)

    async def handle(self, request: HttpRequest, exchange: Exchange) -> None:
        """Answer, whatever comes. Raises nothing but CancelledError."""
        stamp = Stamp(id="", time=time.time(), entropy=token_bytes(16))
        stamp = replace(stamp, id=f"req_{stamp.token(2**32 - 1)}")
        match = self.routes.match(request.method, request.path)
        if match.codec is None:
            await _reply(exchange, HttpReply(404, "application/json", NOT_FOUND), stamp.id)
            return
        codec = match.codec
        try:
            if request.method == "HEAD" and "GET" not in match.allowed:
                # Why: clients ask so whether the server is there at all.
                allow = {"allow": ", ".join(match.allowed)}
                await _reply(exchange, HttpReply(200, "application/json", b""), stamp.id, allow)
                return
            if request.method not in match.allowed:
                raise RequestError(
                    f"{request.path} takes {', '.join(match.allowed)}, not {request.method}",
                    kind=ErrorKind.METHOD_NOT_ALLOWED,
                )
            unread = _unread(request.query, match.query) if request.query else ()
            request = replace(request, path_params=match.params)
            await self._serve(codec, request, exchange, stamp, unread)
        except ClientGone:
            pass
        except CallError as error:
            allow = {"allow": ", ".join(match.allowed)} if error.status == 405 else {}
            await _reply(exchange, codec.encode_error(error, stamp.id), stamp.id, allow)
        except Exception:
            log.exception("request %s failed", stamp.id)
            await _reply(exchange, codec.encode_error(ServiceError(), stamp.id), stamp.id)

    async def _serve(
        self,
        codec: Codec,
        request: HttpRequest,
        exchange: Exchange,
        stamp: Stamp,
        unread: tuple[str, ...],
    ) -> None:
        """`unread`: parameters of the query string that nothing reads."""
        identity = await self._admit(request)
        asked = codec.decode(request)
        if isinstance(asked, GetStored) and asked.stream and self._detached is not None:
            await self._detached.lookups.follow(asked, identity, exchange, codec.answer)
            return
        if not isinstance(asked, Call | Embed):
            result = await self._lookups.answer(asked, identity, stamp)
            head = {IGNORED_HEADER: listed(unread)} if unread else {}
            await _reply(exchange, codec.answer(asked, result), stamp.id, head)
            return
        own = asked.identity
        identity = Identity(
            tenant=identity.tenant,
            user=own.user if own.user is not None else identity.user,
            session=own.session if own.session is not None else identity.session,
        )
        ignored = (*asked.ignored, *unread)
        try:
            if isinstance(asked, Embed):
                embed = replace(asked, identity=identity, ignored=ignored)
                vectors = await self._embeddings.answer(embed, exchange, stamp, codec.name)
                head = {IGNORED_HEADER: listed(ignored)} if ignored else {}
                await _reply(exchange, codec.answer(embed, vectors), stamp.id, head)
                return
            call = replace(asked, identity=identity, ignored=ignored)
            await self._run(codec, call, request, exchange, stamp)
        except RequestError as error:
            # Why: what is wrong for the model has the call's names, which are no protocol's.
            if error.param is None or (param := codec.spelled(error.param)) == error.param:
                raise
            raise error.renamed(param) from error

    async def _admit(self, request: HttpRequest) -> Identity:
        """All guards are asked; the first that names a tenant decides it."""
        identity = Identity()
        for guard in self._guards:
            before = identity.tenant
            identity = await guard.admit(request, identity)
            if before != Identity().tenant:
                identity = replace(identity, tenant=before)
        return identity

    async def _script(self, request: HttpRequest, model: ServedModel) -> tuple[str, str]:
        """The name and prompt tail of the script that the request asks for."""
        name = request.headers.get(SCRIPT_HEADER)
        if name is None or not model.is_mock or self._scripts is None:
            return "", ""
        script = await self._scripts.load(name)
        if script is None:
            raise RequestError(
                f"there is no mock script {name!r}: PUT it to /mock/scripts/{name} first",
                kind=ErrorKind.NOT_FOUND,
                param=SCRIPT_HEADER,
            )
        return name, script.prompt_tail

    async def _run(
        self, codec: Codec, call: Call, request: HttpRequest, exchange: Exchange, stamp: Stamp
    ) -> None:
        began = time.perf_counter()
        model = self._models.find(call.model)
        model.check(call)
        if call.needs:
            call = await self._needs.meet(call, model)
        call = model.shown(call, codec.words)
        card = model.able("generate").card
        name, tail = await self._script(request, model)
        if name:
            call = replace(call, annotations={**call.annotations, "script": name})
        elif SCRIPT_HEADER in request.headers:
            call = replace(call, ignored=(*call.ignored, SCRIPT_HEADER))
        keeps = self._recent is not None
        prompts = await model.raw.prompts(call) if call.prompts else ()
        prompt = (
            prompts[0] if prompts else await model.prompt(call, stamp.time, tail=tail, spans=keeps)
        )
        if call.truncate or call.last_tokens is not None:
            render = partial(model.prompt, now=stamp.time, tail=tail, spans=keeps)
            call, prompt = await fitted(call, prompt, model.jobs.context_length(card), render)
        if self._recent is not None:
            self._recent.keep(stamp.id, prompt, model.renderer.tokenizer)
        seed = int.from_bytes(stamp.entropy[:8], "little", signed=True)
        more: tuple[TokenJob, ...] = ()
        if prompts:
            planned, more = model.raw.plan(call, prompts, card, job=stamp.id, seed=seed)
        else:
            planned = model.jobs.plan(call, prompt, card, job=stamp.id, seed=seed)
        if call.output.stream and card.can("credit"):
            share = max(1, CREDIT_WINDOW // (1 + len(more)))
            planned = replace(planned, job=replace(planned.job, credit=share))
            more = tuple(replace(job, credit=share) for job in more)
        work = Work(
            codec, call, exchange, stamp, model, prompt, planned, began, prompts=prompts, more=more
        )
        if call.keeping is not None and call.keeping.background and self._detached is not None:
            await self._detached.start(work, partial(self._answer, scripted=bool(name)))
        else:
            await self._answer(work, codec.reply(call, stamp), scripted=bool(name))

    async def _answer(self, work: Work, reply: Reply, *, scripted: bool) -> None:
        """From the cache where it may be, else from the engine."""
        call, planned = work.call, work.planned
        key = None
        # Why not with a script: it may be replaced under the same name. Nor with several prompts:
        # what is kept is the answer to one job.
        if self._answers is not None and not scripted and not work.more:
            revision = work.model.revision or work.model.engine().card.revision
            key = answer_key(planned.job, call, work.prompt.fingerprint, revision=revision)
        if self._answers is None or key is None:
            await self._performer.perform(work, reply)
            return
        async with self._answers.flight(key, call.identity.tenant) as flight:
            if flight.answer is not None:
                await self._performer.perform(
                    work, reply, answer=relabel(flight.answer, planned.job.job)
                )
                return
            record: list[TokenDelta] = []
            if await self._performer.perform(work, reply, record=record):
                flight.keep(record, n=planned.job.n)


def _unread(query: str, known: Sequence[str]) -> tuple[str, ...]:
    """As the header names them: `?beta`."""
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return ("?",)
    return tuple(f"?{name}" for name, _ in given if name not in known)


async def _reply(
    exchange: Exchange,
    reply: HttpReply,
    request_id: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    head = {**reply.headers, **dict(request_ids(request_id)), **(headers or {})}
    try:
        await exchange.reply(replace(reply, headers=head))
    except ClientGone:
        log.debug("request %s: the client left before its answer", request_id)
