"""Records how many tokens each expert gets: a random Qwen3-MoE reads real text in the engine.

8 layers of 32 experts, of which a token takes 4, hidden size 512, as `engine.py --network qwen3moe`
has them, weights of a normal distribution. Text is of this repository, in four kinds: prose, code,
JSON, other scripts; it is cut by a real tokenizer. A step has 64 tokens: so many sequences read one
token each, as when they decode, but what comes next is the text's and not a random network's
choice. Counts are taken where a group of ranks takes them: by balance/table.py, after each pass.

Needs torch and tokenizers. A random router sends a token mostly by which token it is; trained ones
look further. So this is a load of real frequencies and not that of a trained model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from tokenwire.core.host import lone_services
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob
from tokenwire.plugins.engines.cuda.balance.table import Counter, ExpertTable
from tokenwire.plugins.engines.cuda.build import assemble, choose_ops
from tokenwire.plugins.engines.cuda.layers.moe import Moe
from tokenwire.plugins.engines.cuda.load import Loaded
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.models.config import Mixture, ModelConfig, Rope
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Layout,
    placement_of,
)
from tokenwire.plugins.engines.cuda.preflight import look
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import shape

__all__ = ("TOKENIZER", "record")

ROOT = Path(__file__).parent.parent
TOKENIZER = ROOT / ".cache" / "models" / "qwen3" / "tokenizer.json"
TEXTS = {
    "prose": ("docs/**/*.md",),
    "code": ("core/**/*.py",),
    "json": ("docs/*.json", "tests/compat/**/*.json", "tests/plugins/**/*.json"),
    "scripts": ("benchmarks/texts/*.txt",),
}
"""Kind -> files, below the repository's root."""
MOST_CHARACTERS = 200_000
"""Of a kind."""
LAYERS, EXPERTS, TOP_K, WIDE = 8, 32, 4, 64
"""`WIDE`: tokens of a step."""
RUN = 8
"""Tokens that each sequence of a wave reads."""
SPARE = 8
"""Steps recorded beyond those that are asked for: the first and last ones may be narrow."""


def record(steps: int, tokenizer: Path = TOKENIZER) -> Iterator[tuple[str, Floats]]:
    """Counts [steps, LAYERS, EXPERTS], by what the steps were made of:

    mixed: every sequence has its own kind of text, all the time. waves: all sequences read one
    kind, for RUN steps; then another. prompts: one text at a time, 64 tokens of it in a step, each
    RUN steps long.

    Raises FileNotFoundError where the tokenizer is not there."""
    if not tokenizer.is_file():
        raise FileNotFoundError(
            f"no tokenizer at {tokenizer}: name a tokenizer.json by --tokenizer"
        )
    kinds, words = _texts(Tokenizer.from_file(str(tokenizer)))
    random = np.random.default_rng(0)
    recorder = _Recorder(words)
    most, names = steps + SPARE, list(kinds)
    mixed = [_piece(kinds[names[row % len(names)]], most, random) for row in range(WIDE)]
    yield "mixed", recorder.run(mixed, each=1)[:steps]
    waves: list[TokenIds] = []
    for _ in range(-(-most // RUN)):
        kind = kinds[names[random.integers(len(names))]]
        waves += [_piece(kind, RUN, random) for _ in range(WIDE)]
    yield "waves", recorder.run(waves, each=1)[:steps]
    texts = [kinds[names[at % len(names)]] for at in range(-(-most // RUN))]
    prompts = [_piece(text, RUN * WIDE, random) for text in texts]
    yield "prompts", recorder.run(prompts, each=0)[:steps]


def _texts(tokenizer: Tokenizer) -> tuple[dict[str, Ints], int]:
    """Each kind's ids, and how many there are. Ids are numbered anew, those that occur: a random
    embedding is none the wiser."""
    ids = {}
    for kind, patterns in TEXTS.items():
        files = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)[:MOST_CHARACTERS]
        ids[kind] = np.array(tokenizer.encode(text, add_special_tokens=False).ids)
    known = np.unique(np.concatenate(list(ids.values())))
    return {kind: np.searchsorted(known, each) for kind, each in ids.items()}, len(known)


def _piece(ids: Ints, length: int, random: np.random.Generator) -> TokenIds:
    """From anywhere on; from the start again where the text ends."""
    return TokenIds(np.take(ids, random.integers(len(ids)) + np.arange(length), mode="wrap"))


class _Recorder:
    """The model in an engine whose steps are counted."""

    def __init__(self, words: int) -> None:
        self._config = _config(words)
        layout = Layout(EXPERTS, EXPERTS, 1)
        self._placement = placement_of(layout, np.tile(np.arange(EXPERTS), (LAYERS, 1)))
        self._counter = Counter(LAYERS, EXPERTS, 1, torch.device("cpu"))
        self._counts: list[Ints] = []

    def run(self, prompts: list[TokenIds], *, each: int) -> Floats:
        """`each`: tokens that a sequence reads in a step; 0: as many as there is room for. Steps
        that are not full are left out."""
        settings = CudaSettings(
            device="cpu",
            grammar="none",
            prefix_cache=False,
            max_batch_size=WIDE,
            max_batch_tokens=WIDE,
            long_prefill_tokens=each,
            max_waiting=len(prompts),
        )
        found = shape(settings, self._config, None, is_cpu=True)
        # Why a new one: an engine lays a model's weights out anew, which can be done once.
        model = _random(self._config)
        mixtures = [block.mlp for block in model.blocks if isinstance(block.mlp, Moe)]
        for layer, (moe, row) in enumerate(zip(mixtures, self._counter.now, strict=True)):
            moe.table = ExpertTable(self._placement, layer, 0, row)
        loaded = Loaded(model, self._config, model.weight_bytes, 0.0)
        built = assemble(settings, lone_services(), loaded, found, between=self._count)
        engine = ThreadedEngine(built.worker, built.card, len(prompts), "cuda")
        self._counts.clear()
        asyncio.run(_read(engine, prompts))
        every = np.array(self._counts, dtype=np.float32)
        return every[every[:, 0].sum(axis=1) == WIDE * TOP_K]

    def _count(self) -> None:
        self._counter.push()
        self._counts.append(self._counter.take()[0][0].numpy())


async def _read(engine: ThreadedEngine, prompts: list[TokenIds]) -> None:
    """Until every prompt is read; a token is made of each."""
    engine.submit(
        [
            TokenJob(
                job=str(at),
                model="",
                prompt=prompt,
                sampling=JobSampling(temperature=0.0),
                stopping=JobStopping(max_tokens=1, ignore_eos=True),
                credit=1,
            )
            for at, prompt in enumerate(prompts)
        ]
    )
    ending = None
    left = len(prompts)
    async for batch in engine.batches():
        left -= sum(delta.finish is not None for delta in batch)
        if not left and ending is None:
            ending = asyncio.ensure_future(engine.drain(0))
    if ending is not None:
        await ending


def _config(words: int) -> ModelConfig:
    return ModelConfig(
        family="qwen3_moe",
        hidden=512,
        intermediate=1536,
        layers=LAYERS,
        heads=8,
        kv_heads=2,
        head_dim=64,
        vocab_size=words,
        context_length=1024,
        rms_eps=1e-6,
        ropes=(Rope(64, 1e6),),
        rope_of_layer=(0,) * LAYERS,
        windows=(0,) * LAYERS,
        attention_scale=64**-0.5,
        tie=True,
        qk_norm=True,
        dtype="float32",
        mixture=Mixture(EXPERTS, TOP_K, 384, tuple(range(LAYERS))),
    )


def _random(config: ModelConfig) -> CausalModel:
    """Weights as transformers begins with."""
    ops = choose_ops(CudaSettings(), config, "cpu", torch.float32, look("cpu"))
    model = CausalModel(config, ops)
    generator = torch.Generator().manual_seed(0)
    for name, place in model.places.items():
        if name.endswith("norm.weight"):
            place.fill_(1.0)
        else:
            place.normal_(std=0.02, generator=generator)
    return model
