"""Queries to their results: one method a kind of query. Knows no wire and generates nothing."""

from __future__ import annotations

from typing import final

from tokenwire.core.call import (
    Count,
    GetModel,
    Identity,
    ListModels,
    ModelInfo,
    Query,
    QueryResult,
)
from tokenwire.core.model_table import ModelTable
from tokenwire.core.wire import Stamp

__all__ = ("Lookups",)


@final
class Lookups:
    """Made once; holds no state of any request."""

    def __init__(self, models: ModelTable) -> None:
        self._models = models

    async def answer(self, query: Query, identity: Identity, stamp: Stamp) -> QueryResult:
        """Raises CallError for what cannot be answered."""
        match query:
            case ListModels():
                return self._list_models()
            case GetModel(name):
                return self._get_model(name)
            case Count():
                return await self._count(query, stamp)

    def _list_models(self) -> tuple[ModelInfo, ...]:
        return tuple(model.info() for model in self._models.each())

    def _get_model(self, name: str) -> ModelInfo:
        return self._models.find(name).info()

    async def _count(self, query: Count, stamp: Stamp) -> int:
        prompt = await self._models.find(query.call.model).prompt(query.call, stamp.time)
        return len(prompt.ids)
