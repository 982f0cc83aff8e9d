"""Which families there are, and whose a checkpoint is. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.bert_config import BERT_ARCHITECTURES
from tokenwire.plugins.engines.cuda.models.checks import checked
from tokenwire.plugins.engines.cuda.models.config import ModelConfig
from tokenwire.plugins.engines.cuda.models.deepseek import DEEPSEEK_V2, DEEPSEEK_V3
from tokenwire.plugins.engines.cuda.models.document import Document
from tokenwire.plugins.engines.cuda.models.family import Family
from tokenwire.plugins.engines.cuda.models.gemma3 import GEMMA3
from tokenwire.plugins.engines.cuda.models.gpt_oss import GPT_OSS
from tokenwire.plugins.engines.cuda.models.llama import LLAMA
from tokenwire.plugins.engines.cuda.models.mistral import MISTRAL
from tokenwire.plugins.engines.cuda.models.mixtral import MIXTRAL
from tokenwire.plugins.engines.cuda.models.qwen2 import QWEN2
from tokenwire.plugins.engines.cuda.models.qwen3 import QWEN3
from tokenwire.plugins.engines.cuda.models.qwen3_moe import QWEN3_MOE

__all__ = ("FAMILIES", "family_of", "parse_config", "read_config")

FAMILIES: tuple[Family, ...] = (
    LLAMA,
    MISTRAL,
    QWEN2,
    QWEN3,
    QWEN3_MOE,
    MIXTRAL,
    GPT_OSS,
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    GEMMA3,
)


def family_of(document: Document) -> Family:
    """By the field `architectures`. Raises ConfigError that lists the known ones."""
    named = document.get("architectures", tuple[str, ...], ())
    for family in FAMILIES:
        if any(name in family.architectures for name in named):
            return family
    if any(name in BERT_ARCHITECTURES for name in named):
        raise ConfigError(
            f"{document.where}: architectures: {list(named)} is an encoder, "
            "which generates nothing: set the engine's `task: embed`, and it makes vectors"
        )
    known = ", ".join(name for family in FAMILIES for name in family.architectures)
    raise ConfigError(
        f"{document.where}: architectures: wanted one of {known}; "
        f"got {list(named)}: this engine cannot run it"
    )


def parse_config(fields: Mapping[str, object], where: str = "config.json") -> ModelConfig:
    """From a config.json's fields; `where` names it in errors (ConfigError)."""
    document = Document(fields, where)
    return checked(family_of(document).read(document), where)


def read_config(folder: Path) -> ModelConfig:
    """Of a Hugging Face folder; `eos_ids` are generation_config.json's, where it names any."""
    checkpoint = Checkpoint(folder)
    fields = dict(checkpoint.config())
    if not fields:
        raise ConfigError(f"{folder}: wanted a folder with a config.json, and it has none")
    generation = checkpoint.generation_config()
    if generation.get("eos_token_id") is not None:
        fields["eos_token_id"] = generation["eos_token_id"]
        text = fields.get("text_config")
        if isinstance(text, dict):
            fields["text_config"] = {**text, "eos_token_id": generation["eos_token_id"]}
    return parse_config(fields, str(folder / "config.json"))
