"""The engine's settings, under the names that node files use. Knows no torch and no file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from tokenwire.core.cost.layout import Layout
from tokenwire.core.errors import ConfigError

__all__ = ("CudaSettings", "Rebalance", "Speculation")

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Size: TypeAlias = Annotated[int, Meta(ge=1)]


class Speculation(Struct, frozen=True, forbid_unknown_fields=True):
    """Drafts by prompt lookup (Saxena, Prompt Lookup Decoding, 2023): what followed the last
    n-gram the last time it occurred. Results are those without it."""

    tokens: Size = 4
    """How many ids are drafted at most."""
    longest: Size = 4
    """The n-gram that is looked for first, in ids."""
    shortest: Size = 2
    """The n-gram that is looked for last, in ids."""

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise ValueError(
                f"speculation: shortest is {self.shortest}, longest {self.longest}: "
                "wanted shortest up to longest"
            )


class Rebalance(Struct, frozen=True, forbid_unknown_fields=True):
    """Experts move between ranks as the load shows. Results stay what they are, but for the order
    of sums where rows are gathered (docs/experts.md)."""

    interval: Size = 3000
    """Steps between two looks; the first comes after a quarter of it."""
    window: Size = 100
    """The last steps, whose load is looked at."""
    bar: Annotated[float, Meta(ge=0, le=1)] = 0.9
    """Mean over most loaded rank: from this on, experts stay where they are."""
    step_mib: Size = 64
    """Of weights that a rank sends, or receives, in one stage of a move."""


class Slo(Struct, frozen=True, forbid_unknown_fields=True):
    """What users are promised. None: nothing. One of them is acted on."""

    ttft_ms: Annotated[float, Meta(gt=0)] | None = None
    """Until the first token. Nothing acts on it."""
    user_tokens_per_s: Annotated[float, Meta(gt=0)] | None = None
    """Of one answer, once it runs. `wide_ep` judges by it; None: 20."""
    requests_per_s: Annotated[float, Meta(gt=0)] | None = None
    """That all groups together take. Nothing acts on it."""


class CudaSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`{plugin = "cuda", ...}`, or a node file's top level."""

    path: str | None = None
    """A model folder of Hugging Face's kind, or a .gguf file. None: the model's checkpoint."""
    device: str = "auto"
    """"auto" (a GPU where torch sees one), "cpu", "cuda", "cuda:1", ..."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """"auto": float32 on a CPU; the checkpoint's own on a GPU."""
    kv_dtype: Literal["auto", "fp8"] = "auto"
    """"auto": as `dtype`; "fp8": e4m3, half the memory of bfloat16."""
    quantisation: Literal["auto", "fp8", "none"] = "auto"
    """Of checkpoints in fp8. "fp8": weights stay so in memory, and are multiplied so. "none": they
    are dequantised when they are read, and may be cut anywhere. "auto": fp8 on a GPU, none on a
    CPU."""
    max_model_len: Size | None = None
    """Tokens of prompt and answer. None: the model's context, or what the KV memory holds."""
    max_batch_size: Size | None = None
    """Sequences that run together. None: 64 on a CPU, 256 on a GPU."""
    max_batch_tokens: Size | None = None
    """Tokens of one step. None: 512 on a CPU, 8192 on a GPU."""
    max_waiting: Count = 1024
    """Choices that wait; more are refused as overloaded."""
    long_prefill_tokens: Count = 0
    """Tokens of one prompt in one step. 0: what the step holds."""
    block_size: Size = 16
    """Tokens of a KV block: a power of two."""
    gpu_memory_fraction: Annotated[float, Meta(gt=0, le=1)] = 0.88
    """Of the device's memory, for everything: KV gets what weights and activations leave."""
    kv_gib: Annotated[float, Meta(gt=0)] | None = None
    """KV memory in GiB. None: 1 on a CPU; what is left on a GPU."""
    prefix_cache: bool = True
    """Start a prompt from KV blocks that earlier sequences left."""
    threads: Size | None = None
    """Of torch on a CPU. None: torch's own choice."""
    overlap: bool | None = None
    """Schedule a step while the one before runs. None: on a GPU."""
    graphs: bool | None = None
    """CUDA graphs for decode steps. None: on a GPU, where its kernels allow them. On a CPU true
    pads as graphs would."""
    kernels: dict[str, str] = {}
    """Op -> implementation, where another than the preferred one is wanted."""
    kernel_lib: str | None = None
    """A folder that `tokenwire kernels build` wrote. None: where it writes unless told otherwise.
    What does not fit, or is not there, is compiled when first used."""
    objective: Literal["latency", "determinism"] = "latency"
    """What kernels are chosen for. "determinism": a request's bits do not hang on its company, or
    the engine does not start."""
    adapters: dict[str, str] = {}
    """Name -> folder of a LoRA adapter, as PEFT writes them."""
    grammar: Literal["auto", "xgrammar", "llguidance", "none"] = "auto"
    """What keeps answers to a grammar. "auto": the first that is installed."""
    speculation: Speculation | None = None
    """Drafts by prompt lookup. None: no drafts; an empty table: with its defaults."""
    task: Literal["generate", "embed"] = "generate"
    """What it does: an engine makes tokens, or vectors."""
    pooling: Literal["auto", "last", "mean", "cls"] = "auto"
    """Of `task: embed`: which hidden states make the vector. "auto": the checkpoint says."""
    trace: str | None = None
    """A file for a trace of every step, in Chrome's JSON."""
    forbid_waits: bool = False
    """For tests: a step whose launch waits for the GPU fails."""
    domain: Size | None = None
    """Ranks that share a fast link. None: those of one machine."""
    wide_ep: Literal["refuse", "warn", "fallback"] = "refuse"
    """Where experts would be reached over a network that is too slow for them: refuse to start,
    start all the same, or start the layout that suits."""
    dispatcher: Literal["auto", "gathered", "exchanged", "deep_ep"] = "auto"
    """How rows reach experts of other ranks: "gathered" to all ranks, "exchanged" with those that
    have the expert, or by DeepEP's kernels."""
    redundant_experts: Count = 0
    """Places for replicas of experts, in all ranks together."""
    replicas: Literal["nearest", "spread", "position"] = "nearest"
    """Which replica a token takes. "position": by its position alone, whatever shares its batch."""
    rebalance: Rebalance | None = None
    """None: experts stay where they are; an empty table: with its defaults."""
    credit_cap: Size = 1024
    """Tokens that a choice without credit runs ahead, before it waits."""
    node_role: Literal["full"] = "full"
    """Prefill and decode, in one place."""
    parallel_strategy: str = "TP_1"
    """How the model lies over the devices of a group: TP_n, DEP_m or TP_n x DEP_m."""
    instance_count: Size = 1
    """Groups that serve the model, each with devices of its own."""
    nodes: Size = 1
    """Machines over which the one group lies, evenly."""
    node: Count = 0
    """Which of them this is. 0 has the server; on the others `tokenwire ranks` runs."""
    rendezvous: str | None = None
    """Of several machines: HOST:PORT on machine 0, which all of them reach."""
    start_timeout: Annotated[float, Meta(gt=0)] = 600.0
    """Seconds for which a group that starts may say nothing, before it has failed."""
    silence_timeout: Annotated[float, Meta(gt=0)] = 60.0
    """Seconds for which a rank of a group that serves may say nothing, before its group is started
    again. Ranks speak once a second, whatever they do."""
    slow_link_gb_s: Annotated[float, Meta(gt=0)] | None = None
    """For tests: links between domains are measured as if they were so slow."""
    slo: Slo | None = None
    """What users are promised. None: nothing."""

    def __post_init__(self) -> None:
        self._check_layout()
        if self.block_size & (self.block_size - 1):
            raise ValueError(f"block_size: wanted a power of two, got {self.block_size}")
        size, tokens = self.max_batch_size, self.max_batch_tokens
        if size is not None and tokens is not None and tokens < size:
            raise ValueError(
                f"max_batch_tokens is {tokens} and max_batch_size {size}: wanted at least one "
                "token a sequence; raise the first or lower the second"
            )
        if self.speculation is not None and tokens is not None:
            need = self.speculation.tokens + 1
            if tokens < need:
                raise ValueError(
                    f"max_batch_tokens is {tokens}: drafts of {need - 1} tokens need {need}"
                )

    @property
    def layout(self) -> Layout:
        """`parallel_strategy`, read."""
        return Layout.named(self.parallel_strategy)

    @property
    def is_alone(self) -> bool:
        """One device, in the process of whoever builds it."""
        return self.layout.gpus == self.instance_count == self.nodes == 1

    def _check_layout(self) -> None:
        try:
            ranks = self.layout.gpus
        except ConfigError as error:
            raise ValueError(f"parallel_strategy: {error}") from error
        if self.nodes == 1:
            if self.node or self.rendezvous is not None:
                raise ValueError("node and rendezvous are of several machines: set nodes")
            return
        if self.instance_count > 1:
            raise ValueError(
                f"instance_count is {self.instance_count} and nodes {self.nodes}: wanted one group "
                "over several machines; or give each machine groups and a server of its own"
            )
        if ranks % self.nodes:
            raise ValueError(
                f"parallel_strategy {self.parallel_strategy} has {ranks} devices and nodes is "
                f"{self.nodes}: wanted as many devices on each machine"
            )
        if self.node >= self.nodes:
            raise ValueError(f"node is {self.node}: wanted 0 to {self.nodes - 1}")
        host, _, port = (self.rendezvous or "").rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(
                f"rendezvous is {self.rendezvous or 'not set'}: wanted HOST:PORT on machine 0, "
                "which all machines reach"
            )
