"""A causal model behind one question: which logits follow these ids? Knows no job, no sampling."""

from __future__ import annotations

import inspect
import logging
import time
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError

__all__ = ("Model", "load")

LOG = logging.getLogger("tokenwire.engine.reference")


@final
class Model:
    """A loaded model. Used from one thread."""

    def __init__(self, network: Any, device: torch.device) -> None:
        self._network = network
        self.device = device
        config = network.config.get_text_config()
        self.vocab_size = int(config.vocab_size)
        self.context_length = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.dtype = str(network.dtype).removeprefix("torch.")
        self.eos_ids = _eos_ids(network)
        # Why both names: transformers renamed it within major version 5.
        takes = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in takes else "past_key_values"

    def logits(self, ids: list[int], cache: Any, *, of_all: bool = False) -> tuple[Tensor, Any]:
        """(logits [1, V], or [len(ids), V] with `of_all`; the cache that now holds `ids` too).

        `cache` None: nothing came before. The same cache goes on and must not be used again.
        """
        batch = torch.tensor([ids], device=self.device)
        with torch.inference_mode():
            output = self._network(
                input_ids=batch,
                use_cache=True,
                logits_to_keep=0 if of_all else 1,
                **{self._cache_name: cache},
            )
        return output.logits[0].float(), output[self._cache_name]


def load(folder: Path, *, gguf: str | None, device: str, dtype: str) -> Model:
    """Raises ConfigError that says which path, and what should be there."""
    from transformers import AutoModelForCausalLM

    started = time.monotonic()
    if not folder.is_dir():
        raise ConfigError(
            f"engine reference: no folder {str(folder)!r}: set `path` (or the model's "
            "`checkpoint`) to a folder with config.json and weights, or with a .gguf file"
        )
    place = _device(device)
    file = _gguf_file(folder, gguf)
    options: dict[str, Any] = {"local_files_only": True, "dtype": _dtype(dtype, place, file)}
    if file is not None:
        from transformers import GgufConfig

        options["gguf_file"] = file
        options["quantization_config"] = GgufConfig(dequantize=True)
    LOG.info("loading %s on %s", folder / (file or ""), place)
    try:
        network = AutoModelForCausalLM.from_pretrained(folder, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ConfigError(
            f"engine reference: transformers cannot load {str(folder)!r}: {error}"
        ) from error
    moved = network.to(place)  # pyright: ignore[reportArgumentType]
    model = Model(moved.eval(), place)
    LOG.info(
        "loaded %s in %.1f s: %s, %.0f M parameters, %s on %s, vocabulary %d, context %d",
        folder.name,
        time.monotonic() - started,
        type(network).__name__,
        sum(each.numel() for each in network.parameters()) / 1e6,
        model.dtype,
        place,
        model.vocab_size,
        model.context_length,
    )
    return model


def _gguf_file(folder: Path, name: str | None) -> str | None:
    """The .gguf file to load; None: the folder holds weights that transformers knows by itself."""
    if name is not None:
        if not (folder / name).is_file():
            raise ConfigError(f"engine reference: no file {name!r} in {str(folder)!r}: see `gguf`")
        return name
    if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
        return None
    files = sorted(path.name for path in folder.glob("*.gguf"))
    if len(files) > 1:
        raise ConfigError(
            f"engine reference: {str(folder)!r} has {', '.join(files)}: name one with `gguf`"
        )
    if not files:
        raise ConfigError(
            f"engine reference: {str(folder)!r} has no weights: wanted *.safetensors or *.gguf"
        )
    return files[0]


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"engine reference: device {name!r}: {error}") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"engine reference: device {name!r}, but torch sees no GPU")
    return place


def _dtype(name: str, place: torch.device, gguf: str | None) -> Any:
    if name != "auto":
        return getattr(torch, name)
    if place.type == "cpu":
        return torch.float32
    return "auto" if gguf is None else torch.bfloat16


def _eos_ids(network: Any) -> tuple[int, ...]:
    """Those that the checkpoint's generation config names."""
    named = getattr(network.generation_config, "eos_token_id", None)
    if named is None:
        return ()
    return tuple(named) if isinstance(named, list) else (int(named),)
