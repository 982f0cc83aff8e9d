"""One model's parts from its configuration: tokenizer, template, parser. Loads no weights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields, replace

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.config import ModelConfig, PluginUse
from tokenwire.core.dialect_names import NO_SIGNS, Signs, misfit, model_types, pick
from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.gguf_checkpoint import checkpoint_at
from tokenwire.core.host import Host
from tokenwire.core.jobs import JobBuilder
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.raw_calls import RawCalls
from tokenwire.core.raw_prompts import RawPrompts
from tokenwire.core.registry import Registry
from tokenwire.core.rendering import Renderer
from tokenwire.core.served import ServedModel

__all__ = ("ModelParts", "assemble", "misfit_of")


class ModelParts(Struct, frozen=True):
    """A model without its engine, the services to build that with, and which dialect and why."""

    model: ServedModel
    services: Services
    dialect: str
    why: str
    misfit: str = ""
    """A warning, where the dialect that is configured does not fit the chat template."""


def misfit_of(config: ModelConfig, host: Host, services: Services) -> str:
    """The same of a model that is not to be assembled: reads its chat template, as far as there is
    one. Raises ConfigError for a template that cannot be read."""
    checkpoint = _checkpoint(config)
    services = replace(services, model=config.name, checkpoint=checkpoint)
    return _misfit(config, host, services, _template_source(config, checkpoint))


def _misfit(config: ModelConfig, host: Host, services: Services, source: str | None) -> str:
    # Why not with a parser: whoever names it knows what answers look like.
    if config.dialect == "auto" or config.parser is not None or source is None:
        return ""
    where = f"models.{config.name}.dialect"
    built = [host.dialects.build(name, {}, services, where) for name in host.dialects]
    name, _ = pick(config.dialect, installed=frozenset(host.dialects))
    configured = [dialect for dialect in built if dialect.name == name]
    return misfit(configured[0], source, built) if configured else ""


def assemble(config: ModelConfig, host: Host, services: Services) -> ModelParts:
    """Raises ConfigError or PluginError that names the model."""
    where = f"models.{config.name}"
    checkpoint = _checkpoint(config)
    services = replace(
        services,
        model=config.name,
        checkpoint=checkpoint,
        context_length=config.context_length,
    )
    use = config.tokenizer or _own_tokenizer(config, checkpoint)
    spelling = {"sentencepiece": True} if config.dialect == "sentencepiece" else {}
    tokenizer: Tokenizer = _build(host.tokenizers, use, spelling, services, where)
    services = replace(services, tokenizer=tokenizer)
    source = _template_source(config, checkpoint)
    dialect, why = _dialect(config, host, services, source)
    own = "jinja" if checkpoint is not None and checkpoint.chat_template() else dialect.template
    given: Mapping[str, object] = {
        "reasoning": config.reasoning,
        "merge_system": config.parse.merge_system,
        "roles": config.parse.roles,
    }
    template: Template = _build(
        host.templates, config.chat_template or PluginUse(own), given, services, where
    )
    parser: ParserMaker = _build(
        host.parsers, config.parser or PluginUse(dialect.parser), given, services, where
    )
    renderer = Renderer(
        tokenizer,
        template,
        parser,
        model=config.name,
        revision=config.revision,
        media=dialect.media,
    )
    jobs = JobBuilder(
        config.name,
        tokenizer,
        parser,
        defaults=checkpoint.generation_config() if checkpoint else {},
        context_length=config.context_length,
    )
    raw = RawCalls(
        model=config.name,
        tokenizer=tokenizer,
        parser=_build(host.parsers, PluginUse("plain"), given, services, where),
        jobs=jobs,
        texts=RawPrompts(
            tokenizer,
            model=config.name,
            fingerprint=renderer.fingerprint,
            takes_specials=config.parse.prompt_specials == "tokens",
        ),
    )
    model = ServedModel(
        name=config.name,
        created=int(time.time()),
        tokenizer=tokenizer,
        renderer=renderer,
        parser=parser,
        jobs=jobs,
        raw=raw,
        mock=config.engine.plugin == "mock",
        revision=config.revision,
        unknown_fields=config.parse.unknown_fields,
        describes_media=config.parse.media == "describe",
        dialect=(dialect.name, why),
    )
    wrong = _misfit(config, host, services, source)
    return ModelParts(model, services, dialect.name, why, wrong)


def _dialect(
    config: ModelConfig, host: Host, services: Services, source: str | None
) -> tuple[Dialect, str]:
    """The dialect that is configured, or that the template asks for, and why."""
    where = f"models.{config.name}.dialect"
    built: list[Dialect] = []
    signs = NO_SIGNS
    if config.dialect == "auto":
        built = [host.dialects.build(name, {}, services, where) for name in host.dialects]
        found = services.checkpoint.config() if services.checkpoint else {}
        signs = Signs(source, model_types(found))
    installed = frozenset(host.dialects)
    name, why = pick(config.dialect, signs, dialects=built, installed=installed)
    return host.dialects.build(name, {}, services, where), why


def _checkpoint(config: ModelConfig) -> Checkpoint | None:
    """The folder named, or the one that the tokenizer's file lies in."""
    if config.checkpoint is not None:
        return checkpoint_at(Path(config.checkpoint))
    path = config.tokenizer.settings.get("path") if config.tokenizer else None
    return Checkpoint(Path(path).parent) if isinstance(path, str) else None


def _own_tokenizer(config: ModelConfig, checkpoint: Checkpoint | None) -> PluginUse:
    if checkpoint is None:
        raise ConfigError(
            f"models.{config.name}: wanted a tokenizer or a checkpoint folder that holds one,"
            " got neither"
        )
    return PluginUse("hf", {"path": str(checkpoint.tokenizer_json)})


def _template_source(config: ModelConfig, checkpoint: Checkpoint | None) -> str | None:
    """The text of the chat template that will be used, as far as a file holds it."""
    if config.chat_template is not None:
        path = config.chat_template.settings.get("path")
        if isinstance(path, str) and Path(path).is_file():
            return Path(path).read_text(encoding="utf-8")
        return None
    return checkpoint.chat_template() if checkpoint else None


def _build(
    registry: Registry[Any],
    use: PluginUse,
    given: Mapping[str, object],
    services: Services,
    where: str,
) -> Any:
    """Build it; `given` goes to plugins that have such a setting; the use itself wins over it."""
    known = {field.name for field in fields(registry.find(use.plugin, where).settings)}
    settings = {key: value for key, value in given.items() if key in known} | dict(use.settings)
    return registry.build(use.plugin, settings, services, f"{where}.{registry.kind}")
