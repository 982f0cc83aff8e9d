"""LoRA adapters from PEFT's folders into a network's slots. Knows no request."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.load.names import checkpoint_name
from tokenwire.plugins.engines.cuda.load.safetensors_source import SafetensorsSource
from tokenwire.plugins.engines.cuda.models.document import Document

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = ("Adapter", "put_adapter", "read_adapter", "remove_adapter")

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
WRAPPED = "base_model.model."


@dataclass(frozen=True, slots=True)
class Adapter:
    folder: str
    rank: int
    """The largest of its modules'."""
    modules: Mapping[str, tuple[Tensor, Tensor]]
    """The module's name in the checkpoint -> A [r, inputs] and B [outputs, r], B with the scale
    in it; on the CPU."""


def read_adapter(folder: Path) -> Adapter:
    """Raises ConfigError that names file and field for what is not plain LoRA of linear layers."""
    document = _config(folder)
    source = SafetensorsSource(folder, _adapter_name)
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, entry in source.entries.items():
        module, _, rest = name.rpartition(".lora_")
        if rest not in ("A.weight", "B.weight"):
            raise ConfigError(
                f"{entry.file}: tensor {entry.key!r}: wanted a module's lora_A.weight or "
                "lora_B.weight: embeddings, biases and whole modules cannot be adapted here"
            )
        pairs.setdefault(module, {})[rest[0]] = source.read(name)
    modules: dict[str, tuple[Tensor, Tensor]] = {}
    for module, pair in pairs.items():
        if set(pair) != {"A", "B"} or pair["A"].shape[0] != pair["B"].shape[1]:
            shapes = {side: list(tensor.shape) for side, tensor in pair.items()}
            raise ConfigError(
                f"{folder / WEIGHTS}: module {module!r}: wanted lora_A [r, inputs] and lora_B "
                f"[outputs, r], got {shapes}"
            )
        rank = pair["A"].shape[0]
        modules[module] = pair["A"], pair["B"].float() * _scale(document, module, rank)
    if not modules:
        raise ConfigError(f"{folder / WEIGHTS}: wanted lora_A and lora_B tensors, got none")
    return Adapter(str(folder), max(a.shape[0] for a, _ in modules.values()), modules)


def put_adapter(model: CausalModel, slot: int, adapter: Adapter) -> None:
    """Into slot 1 to `model.adapter_slots`, in place of what was there: buffers stay where they
    are, so that CUDA graphs go on. Raises ConfigError for a module or a size that does not fit."""
    linears = model.linears()
    for module, (a, b) in adapter.modules.items():
        if ".experts" in module:
            raise ConfigError(
                f"{adapter.folder}: module {module!r}: experts take no adapters in this engine: "
                "train the adapter without them, as on q_proj, k_proj, v_proj and o_proj alone"
            )
        if module not in linears:
            known = sorted({name.rpartition(".")[2] for name in linears})
            raise ConfigError(
                f"{adapter.folder}: module {module!r}: the model has no such linear layer; "
                f"those that can be adapted end in {', '.join(known)}"
            )
        linear, part = linears[module]
        lora = linear.lora
        if lora is None or not 1 <= slot <= lora.slots:
            raise ConfigError(f"adapter slot {slot}: wanted 1 to {model.adapter_slots}")
        wanted = list(linear.share.whole(part))
        if [a.shape[1], b.shape[0]] != wanted or a.shape[0] > lora.rank:
            raise ConfigError(
                f"{adapter.folder}: module {module!r}: wanted {wanted} inputs and outputs and a "
                f"rank up to {lora.rank}, got {[a.shape[1], b.shape[0]]} and {a.shape[0]}: "
                "it is an adapter of another model, or the engine reserves too small a rank"
            )
    remove_adapter(model, slot)
    for module, (a, b) in adapter.modules.items():
        linear, part = linears[module]
        linear.put_adapter(slot, part, a, b)


def remove_adapter(model: CausalModel, slot: int) -> None:
    """The slot then adds nothing."""
    for linear, part in model.linears().values():
        if part == 0 and linear.lora is not None:
            linear.lora.clear(slot)


def _adapter_name(key: str) -> str | None:
    return checkpoint_name(key.removeprefix(WRAPPED))


def _config(folder: Path) -> Document:
    file = folder / CONFIG
    try:
        fields = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{file}: wanted a PEFT adapter's configuration: {error}") from error
    document = Document(fields, str(file))
    kind = document.get("peft_type", str, "LORA")
    if kind != "LORA":
        raise ConfigError(f"{file}: peft_type: wanted 'LORA', got {kind!r}")
    for name in ("use_dora", "lora_bias", "modules_to_save", "fan_in_fan_out", "layer_replication"):
        if document.fields.get(name):
            raise ConfigError(
                f"{file}: {name}: wanted none, got {document.fields[name]!r}: "
                "this engine adapts linear layers by A and B alone"
            )
    bias = document.get("bias", str, "none")
    if bias != "none":
        raise ConfigError(f"{file}: bias: wanted 'none', got {bias!r}")
    return document


def _scale(document: Document, module: str, rank: int) -> float:
    """alpha / r, or alpha / sqrt(r) (rank-stabilised, arXiv:2312.03732)."""
    alpha = document.get("lora_alpha", float, 8.0)
    for pattern, value in document.get("alpha_pattern", dict[str, float], {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", module):
            alpha = value
            break
    stable = document.get("use_rslora", bool, False)
    return alpha / (math.sqrt(rank) if stable else rank)
