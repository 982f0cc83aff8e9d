"""Builds the dialect `generic` and its parser from a checkpoint's response template."""

from __future__ import annotations

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects.generic.settings import GenericSettings

__all__ = ("build_dialect", "build_parser")

KEY = "response_template"


def build_parser(settings: GenericSettings, services: Services) -> ParserMaker:
    """Raises ConfigError where there is no template, or one that cannot be read."""
    from tokenwire.plugins.dialects.generic.maker import GenericMaker
    from tokenwire.plugins.dialects.generic.spec import read_template

    value = settings.response_template or _found(services)
    if value is None:
        raise ConfigError(
            "parser 'generic': wanted a response_template in the checkpoint's"
            " tokenizer_config.json or in the parser's settings, got none"
        )
    return GenericMaker(read_template(value), reasoning=settings.reasoning)


def build_dialect(settings: NoSettings, services: Services) -> Dialect:
    """Its sign is a response template that can be read."""
    sign = ""
    if services.checkpoint is not None and _found(services) is not None:
        try:
            build_parser(GenericSettings(), services)
        except ConfigError:
            pass
        else:
            sign = f"the checkpoint's tokenizer_config.json has a {KEY}"
    return Dialect("generic", "plain", parser="generic", sign=sign)


def _found(services: Services) -> object:
    return services.checkpoint.tokenizer_config().get(KEY) if services.checkpoint else None
