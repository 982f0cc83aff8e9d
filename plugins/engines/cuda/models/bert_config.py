"""BERT encoders: read from config.json. Knows no torch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.models.document import Document

__all__ = ("BERT_ARCHITECTURES", "BertConfig", "read_bert")

BERT_ARCHITECTURES = ("BertModel", "BertForMaskedLM")
ACTIVATIONS: dict[str, Literal["erf", "tanh"]] = {
    "gelu": "erf",
    "gelu_new": "tanh",
    "gelu_pytorch_tanh": "tanh",
}


class BertConfig(Struct, frozen=True):
    hidden: int
    intermediate: int
    layers: int
    heads: int
    vocab_size: int
    context_length: int
    token_types: int
    eps: float
    gelu: Literal["erf", "tanh"]
    dtype: str = "float32"

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


def read_bert(document: Document) -> BertConfig:
    """Raises ConfigError for positions that are not absolute, and other activations than GELU."""
    positions = document.get("position_embedding_type", str, "absolute")
    if positions != "absolute":
        raise ConfigError(
            f"{document.where}: position_embedding_type: wanted 'absolute', got {positions!r}"
        )
    activation = document.get("hidden_act", str, "gelu")
    if activation not in ACTIVATIONS:
        raise ConfigError(
            f"{document.where}: hidden_act: wanted one of {', '.join(ACTIVATIONS)}, "
            f"got {activation!r}"
        )
    return BertConfig(
        hidden=document.need("hidden_size", int),
        intermediate=document.need("intermediate_size", int),
        layers=document.need("num_hidden_layers", int),
        heads=document.need("num_attention_heads", int),
        vocab_size=document.need("vocab_size", int),
        context_length=document.need("max_position_embeddings", int),
        token_types=document.get("type_vocab_size", int, 2),
        eps=document.get("layer_norm_eps", float, 1e-12),
        gelu=ACTIVATIONS[activation],
        dtype=document.get("dtype", str, document.get("torch_dtype", str, "float32")),
    )
