"""Queries to their results: one method a kind of query. Knows no wire and generates nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import final

from msgspec.structs import replace

from tokenwire.core.call import (
    Call,
    Count,
    Embed,
    GetModel,
    Identity,
    ListModels,
    ModelInfo,
    Query,
    QueryResult,
)
from tokenwire.core.capabilities import capabilities_of
from tokenwire.core.echo import spelled
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.model_table import ModelTable
from tokenwire.core.needs import Needs
from tokenwire.core.parsing import parse
from tokenwire.core.ports.codec import Codec
from tokenwire.core.prompt import Prompt
from tokenwire.core.queries import (
    Capabilities,
    CapabilityTable,
    Detokenize,
    Detokenized,
    ForeignRequest,
    Parse,
    Render,
    RenderedCall,
    Tokenize,
    Tokenized,
)
from tokenwire.core.signing import Keyring
from tokenwire.core.stored_lookups import StoredLookups
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.truncation import fitted
from tokenwire.core.wire import HttpRequest, Stamp

__all__ = ("Lookups",)


@final
class Lookups:
    """Made once; holds no state of any request."""

    def __init__(
        self,
        models: ModelTable,
        codecs: Sequence[Codec],
        keys: Keyring,
        needs: Needs,
        stored: StoredLookups | None = None,
    ) -> None:
        """`stored` None: nothing is stored."""
        self._stored = stored
        self._models = models
        self._needs = needs
        self._codecs = {codec.name: codec for codec in codecs}
        self._keys = keys

    async def answer(self, query: Query, identity: Identity, stamp: Stamp) -> QueryResult:
        """Raises CallError for what cannot be answered."""
        match query:
            case ListModels():
                return self._list_models()
            case GetModel(name):
                return self._get_model(name)
            case Count():
                return await self._count(query, identity, stamp)
            case Tokenize():
                return await self._tokenize(query, identity, stamp)
            case Detokenize():
                return self._detokenize(query)
            case Render():
                return await self._render(query, identity, stamp)
            case Parse():
                return parse(query, self._models.find, self._keys)
            case Capabilities():
                return self._capabilities(query)
            case Embed():
                raise TypeError("an engine answers this, by way of Embeddings")
            case _:
                if self._stored is None:
                    raise RequestError("nothing is stored here", kind=ErrorKind.NOT_FOUND)
                return await self._stored.answer(query, identity, stamp)

    def _list_models(self) -> tuple[ModelInfo, ...]:
        return tuple(model.info() for model in self._models.each())

    def _get_model(self, name: str) -> ModelInfo:
        return self._models.find(name).info()

    async def _count(self, query: Count, identity: Identity, stamp: Stamp) -> int:
        prompts = await self._prompts(query.call, identity, stamp)
        return sum(len(prompt.ids) for prompt in prompts)

    async def _tokenize(self, query: Tokenize, identity: Identity, stamp: Stamp) -> Tokenized:
        if query.request is not None:
            call = self._call(query.request)
            model = self._models.find(call.model)
            prompts = await self._prompts(call, identity, stamp)
            ids = TokenIds(id_ for prompt in prompts for id_ in prompt.ids)
        else:
            model = self._models.find(query.model)
            ids = await model.raw.encode(
                query.text or "", add_special=query.add_special, parse_special=query.parse_special
            )
        spelled_ids = spelled(model.renderer.tokenizer, ids) if query.spell else ()
        return Tokenized(ids, model.info().context_length, spelled_ids)

    def _detokenize(self, query: Detokenize) -> Detokenized:
        texts = self._models.find(query.model).raw.texts
        texts.check(query.ids, "tokens")
        return Detokenized(texts.spell(query.ids))

    async def _render(self, query: Render, identity: Identity, stamp: Stamp) -> RenderedCall:
        call = self._call(query.request)
        model = self._models.find(call.model)
        model.check(call)
        prompts = await self._prompts(call, identity, stamp, spans=True)
        tokenizer = model.renderer.tokenizer
        each = tuple(spelled(tokenizer, prompt.ids) for prompt in prompts)
        unread = () if call.prompts else model.renderer.powers.unread(call.dialogue)
        spell = self._codecs[query.request.protocol].spelled
        ignored = dict.fromkeys((*call.ignored, *map(spell, unread)))
        return RenderedCall(model.name, prompts, each, tuple(ignored))

    async def _prompts(
        self, call: Call, identity: Identity, stamp: Stamp, *, spans: bool = False
    ) -> tuple[Prompt, ...]:
        """What the call would ask its model, with its needs met."""
        model = self._models.find(call.model)
        if call.prompts:
            return await model.raw.prompts(call)
        asked = replace(call.identity, tenant=identity.tenant)
        call = await self._needs.meet(replace(call, identity=asked), model)
        call = model.shown(call, {})
        render = partial(model.prompt, now=stamp.time, spans=spans)
        prompt = await render(call)
        if call.truncate or call.last_tokens is not None:
            prompt = (await fitted(call, prompt, model.info().context_length, render))[1]
        return (prompt,)

    def _call(self, request: ForeignRequest) -> Call:
        """What another protocol reads in a request of its own."""
        codec = self._codecs.get(request.protocol)
        if codec is None:
            raise RequestError(
                f"protocol {request.protocol[:64]!r} is not served here; there is"
                f" {', '.join(map(repr, self._codecs))}",
                param="protocol",
            )
        for route in codec.routes:
            if route.method == "POST" and "{" not in route.path:
                asked = codec.decode(
                    HttpRequest("POST", route.path, request.headers, body=request.body)
                )
                if isinstance(asked, Count):
                    return asked.call
                if isinstance(asked, Call):
                    return asked
                break
        raise RequestError(
            f"protocol {request.protocol!r} has no prompts that a model goes on from",
            param="protocol",
        )

    def _capabilities(self, query: Capabilities) -> CapabilityTable:
        models = self._models
        asked = models.each() if query.model is None else (models.find(query.model),)
        codecs = self._codecs.values()
        return CapabilityTable(
            tuple(capabilities_of(each, models.aliases(each), codecs) for each in asked)
        )
