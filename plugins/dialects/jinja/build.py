"""Builds the template `jinja` finds its source and its special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.ports.dialect import Template
from tokenwire.plugins.dialects.jinja.settings import Settings

__all__ = ("build",)


def build(settings: Settings, services: Services) -> Template:
    """Raises ConfigError where there is no template, or one that does not compile."""
    from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

    return JinjaTemplate(_source(settings, services), settings, _special_tokens(services))


def _source(settings: Settings, services: Services) -> str:
    if settings.source is not None:
        return settings.source
    if settings.path is not None:
        try:
            return Path(settings.path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"chat_template: wanted a template file at {settings.path}, got {error}"
            ) from error
    found = services.checkpoint.chat_template() if services.checkpoint else None
    if found is None:
        where = services.checkpoint.folder if services.checkpoint else "this model"
        raise ConfigError(
            f"no chat template: {where} has neither chat_template.jinja nor a chat_template in"
            " tokenizer_config.json; set chat_template to a file, or dialect to a family that"
            " brings its own (plain, hermes)"
        )
    return found


def _special_tokens(services: Services) -> Mapping[str, str]:
    """bos_token and so on: as tokenizer_config.json spells them, then as the tokenizer does."""
    tokens: dict[str, str] = {}
    config = services.checkpoint.tokenizer_config() if services.checkpoint else {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    if services.tokenizer is not None:
        known = services.tokenizer.vocabulary
        for name in ("bos", "eos", "pad", "unk"):
            text = getattr(known, name)
            if text is not None:
                tokens[f"{name}_token"] = text
    return tokens
