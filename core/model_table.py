"""The served models by name and alias, and what is said of a name that is not among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.served import AbsentModel, ServedModel

__all__ = ("ModelTable",)


@final
class ModelTable:
    """A view: models that are added to the mapping later are found too."""

    def __init__(
        self, models: Mapping[str, ServedModel], absent: Sequence[AbsentModel] = ()
    ) -> None:
        self._models = models
        self._absent = absent

    def each(self) -> tuple[ServedModel, ...]:
        """Every model once, whatever its aliases."""
        return tuple(dict.fromkeys(self._models.values()))

    def aliases(self, model: ServedModel) -> tuple[str, ...]:
        """Its other names."""
        return tuple(
            name for name, found in self._models.items() if found is model and name != model.name
        )

    def find(self, name: str) -> ServedModel:
        """Raises RequestError (404) that names what is served, ServiceError (503) for a model that
        is configured and cannot be served. "" finds the one model, where there is only one."""
        only = self.each() if name == "" else ()
        model = only[0] if len(only) == 1 else self._models.get(name)
        if model is not None:
            return model
        for absent in self._absent:
            if absent.name in ("", name):
                raise absent.refusal()
        served = ", ".join(map(repr, self._models))
        raise RequestError(
            f"model {name[:100]!r} is not served here; there is {served}",
            kind=ErrorKind.MODEL_NOT_FOUND,
            param="model",
            code="model_not_found",
        )
