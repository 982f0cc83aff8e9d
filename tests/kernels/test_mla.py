"""Attention over a compressed cache: absorbed against unabsorbed, every head by itself in float64,
and the vendors' calls."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tokenwire.kernels.attention.cases import paged  # noqa: E402
from tokenwire.kernels.compare import distance  # noqa: E402
from tokenwire.kernels.mla import OPS, cpu, reference, splits  # noqa: E402
from tokenwire.kernels.op import Signature  # noqa: E402
from tokenwire.kernels.registry import preferred  # noqa: E402

HEADS, LATENT, ROTATED, NOPE, VALUE = 3, 32, 8, 20, 12
SCALE = (NOPE + ROTATED) ** -0.5
WRITE, DECODE, PREFILL = OPS
LENGTHS = [(1, length) for length in (1, 0, 16, 17, 90)]
ABSORBED = {torch.float64: 7e-16, torch.float32: 5e-7}
"""Relative to the length of the result."""
WAYS = [reference, cpu]


@dataclass
class Made:
    q: torch.Tensor
    cache: torch.Tensor
    w_uk: torch.Tensor
    w_uv: torch.Tensor
    batch: object

    @property
    def absorbed(self):
        inner = torch.einsum("thd,hdc->thc", self.q[..., :NOPE], self.w_uk)
        return torch.cat((inner, self.q[..., NOPE:]), -1)

    def prefill(self, way, **options):
        return way.mla_prefill(
            self.q, self.cache, self.w_uk, self.w_uv, self.batch, SCALE, **options
        )

    def decode(self, way, **options):
        return way.mla_decode(
            self.absorbed, self.cache, self.batch, SCALE, value_dim=LATENT, **options
        )


def made(lengths, dtype=torch.float32, cache_dtype=None, block_size=16) -> Made:
    """Slots that no sequence owns hold NaN."""
    generator = torch.Generator().manual_seed(0)
    batch = paged(lengths, block_size=block_size)
    blocks = int(batch.block_table.max()) + 1
    entries = torch.randn(blocks, block_size, 1, LATENT + ROTATED, generator=generator)
    owned = torch.zeros(blocks, block_size, dtype=torch.bool)
    for row, (_, length) in enumerate(lengths):
        for place in range(length):
            owned[batch.block_table[row, place // block_size], place % block_size] = True
    entries[~owned] = float("nan")
    shapes = (sum(n for n, _ in lengths), HEADS, NOPE + ROTATED), (HEADS, NOPE, LATENT), (
        HEADS, VALUE, LATENT,
    )  # fmt: skip
    q, w_uk, w_uv = (torch.randn(*shape, generator=generator).to(dtype) for shape in shapes)
    return Made(q, entries.to(cache_dtype or dtype), w_uk / 4, w_uv / 4, batch)


def by_hand(one: Made, scale_of_keys=1.0):
    """Each head of each query by itself, in float64."""
    out = torch.zeros(one.q.shape[0], HEADS, VALUE, dtype=torch.float64)
    row = 0
    counts = one.batch.cu_q.diff().tolist()
    for index, (queries, length) in enumerate(zip(counts, one.batch.kv_lens.tolist(), strict=True)):
        places = range(length)
        size = one.batch.block_size
        held = [
            one.cache[one.batch.block_table[index, p // size], p % size, 0].double() for p in places
        ]
        for query in range(queries):
            seen = held[: length - queries + query + 1]
            for head in range(HEADS if seen else 0):
                keys = [
                    torch.cat((one.w_uk[head].double() @ each[:LATENT], each[LATENT:]))
                    for each in seen
                ]
                values = [one.w_uv[head].double() @ each[:LATENT] for each in seen]
                scores = torch.stack(keys) @ one.q[row, head].double() * SCALE * scale_of_keys
                mixed = torch.softmax(scores, 0) @ torch.stack(values)
                out[row, head] = mixed * scale_of_keys
            row += 1
    return out


@pytest.mark.parametrize("dtype", ABSORBED)
def test_absorbed_and_unabsorbed_are_one(dtype) -> None:
    one = made(LENGTHS, dtype)
    whole = one.prefill(reference)
    parts = torch.einsum("thc,hvc->thv", one.decode(reference), one.w_uv)
    assert whole.dtype == dtype
    assert float((whole - parts).norm() / whole.norm()) <= ABSORBED[dtype]


@pytest.mark.parametrize("way", WAYS, ids=["reference", "cpu"])
@pytest.mark.parametrize("block_size", [1, 16])
def test_prefill_is_every_head_by_itself(way, block_size) -> None:
    lengths = [(0, 0), (5, 5), (3, 40), (2, 0), (1, 17)]
    one = made(lengths, block_size=block_size)
    apart = distance(one.prefill(way), by_hand(one))
    assert apart.max_abs < 1e-5


@pytest.mark.parametrize("way", WAYS, ids=["reference", "cpu"])
def test_decode_is_every_head_by_itself(way) -> None:
    one = made(LENGTHS)
    found = torch.einsum("thc,hvc->thv", one.decode(way), one.w_uv)
    assert distance(found, by_hand(one)).max_abs < 1e-5


@pytest.mark.parametrize("way", WAYS, ids=["reference", "cpu"])
def test_sequences_of_no_keys_give_zeros_and_no_nan_is_read(way) -> None:
    """What no sequence owns is NaN in all these tests."""
    one = made([(1, 0), (1, 3)])
    for found in (one.decode(way), one.prefill(way)):
        assert not found[0].any()
        assert bool(found.isfinite().all())
        assert bool(found[1].any())


@pytest.mark.parametrize("way", WAYS, ids=["reference", "cpu"])
def test_8_bit_entries_are_scaled(way) -> None:
    one = made(LENGTHS, cache_dtype=torch.float8_e4m3fn)
    wanted = by_hand(one, 0.5)
    assert distance(one.prefill(way, k_scale=0.5), wanted).max_abs < 1e-5
    found = torch.einsum("thc,hvc->thv", one.decode(way, k_scale=0.5), one.w_uv)
    assert distance(found, wanted).max_abs < 1e-5


@pytest.mark.parametrize("way", WAYS, ids=["reference", "cpu"])
def test_a_prompt_in_chunks_gives_the_rows_of_the_whole(way) -> None:
    whole = made([(300, 300)])
    rows = whole.prefill(way)
    for start, end in ((0, 7), (7, 270), (270, 300)):
        numbers = torch.tensor([0, end - start], dtype=torch.int32)
        batch = replace(whole.batch, cu_q=numbers, kv_lens=torch.tensor([end], dtype=torch.int32))
        part = replace(whole, q=whole.q[start:end], batch=batch).prefill(way)
        torch.testing.assert_close(part, rows[start:end], rtol=1e-5, atol=1e-5)


def test_writing_writes_the_slots_and_no_other() -> None:
    latent, cache = torch.randn(4, 5), torch.full((3, 4, 1, 5), torch.nan)
    reference.mla_write(latent, cache, torch.tensor([5, -1, 11, 0]))
    flat = cache.view(12, 5)
    assert torch.equal(flat[[5, 11, 0]], latent[[0, 2, 3]])
    assert int(flat.isnan().all(-1).sum()) == 9


def test_writing_8_bit_floats_divides_and_saturates() -> None:
    cache = torch.zeros(1, 2, 1, 3).to(torch.float8_e4m3fn)
    reference.mla_write(torch.tensor([[1.0, -3.0, 1e6]]), cache, torch.tensor([1]), 0.5)
    assert cache.float().flatten().tolist() == [0, 0, 0, 2.0, -6.0, 448.0]


# --- parts of a long sequence ---------------------------------------------------------------------


def part_of(length: int, most: int) -> int:
    """As the kernels have it."""
    return max(-(-length // (splits.SPLIT * most)), 1) * splits.SPLIT


@pytest.mark.parametrize("heads", [1, 16, 128, 4096])
def test_a_sequence_has_no_more_parts_than_there_is_room_for(heads: int) -> None:
    most = splits.most_splits(heads, 512)
    assert most * heads * 512 * 4 <= max(splits.TOKEN_BYTES, heads * 512 * 4)
    for longest in (0, 1, 1024, 1025, 32768, 32769, 163840, 1 << 20):
        room = splits.splits_of(longest, heads, 512)
        for length in {0, 1, longest // 2, longest - 1, longest} - {-1}:
            part = part_of(length, most)
            assert part % splits.SPLIT == 0
            assert -(-length // part) <= room <= most


@pytest.mark.parametrize("tokens", [1, 3, 64, 65, 256, 8192])
@pytest.mark.parametrize("longest", [0, 5000, 163840])
@pytest.mark.parametrize("heads", [16, 128])
def test_sums_of_parts_stay_within_their_room(tokens: int, longest: int, heads: int) -> None:
    count = splits.together(tokens, longest, heads, 512)
    assert 1 <= count <= tokens
    assert count == tokens or count % 4 == 0
    room = splits.parts_room(tokens, longest, heads, 512)
    assert room <= splits.ROOM * 513 / 512
    assert room >= count * heads * 512 * 4


def test_a_batch_of_64_of_v3_is_one_launch_at_any_length() -> None:
    assert splits.together(64, 163840, 128, 512) == 64
    assert splits.most_splits(128, 512) == 32
    assert splits.most_splits(16, 512) == 256


def test_what_does_not_fit_goes_a_token_at_a_time(monkeypatch) -> None:
    monkeypatch.setattr(splits, "ROOM", 1)
    assert splits.together(7, 9000, 128, 512) == 1


# --- which is taken ------------------------------------------------------------------------------

HOPPER = Signature(
    device="cuda", capability=(9, 0), dtype=torch.bfloat16, head_dim=576, heads=128, kv_heads=1,
    block_size=64,
)  # fmt: skip


def test_a_gpu_takes_triton_and_a_cpu_its_own() -> None:
    pytest.importorskip("triton", reason="no Triton for this platform")
    for op in OPS:
        assert preferred(op, HOPPER)[1].name == "triton"
    for op in (DECODE, PREFILL):
        assert preferred(op, Signature())[1].name == "cpu"
    steady = preferred(DECODE, HOPPER, objective="determinism")[1]
    assert (steady.name, steady.is_steady) == ("triton", True)
    wide = replace(HOPPER, head_dim=640)
    assert "up to 576" in DECODE.implementation("triton").supports(wide)
    other = replace(HOPPER, kv_dtype=torch.float16)
    assert "float8_e4m3fn" in WRITE.implementation("triton").supports(other)


@pytest.mark.parametrize(
    ("name", "module", "fits"),
    [
        ("flash_mla", "flash_mla", HOPPER),
        ("flashinfer", "flashinfer", replace(HOPPER, capability=(10, 0))),
    ],
)
def test_a_vendor_says_what_it_cannot_take(name, module, fits, monkeypatch) -> None:
    one = DECODE.implementation(name)
    assert "is not installed" in one.supports(fits)
    played = ModuleType(module)
    played.__spec__ = SimpleNamespace(name=module)
    monkeypatch.setitem(sys.modules, module, played)
    assert one.supports(fits) == ""
    for changed, said in (
        ({"block_size": 16}, "blocks of"),
        ({"head_dim": 512}, "entries of 576"),
        ({"capability": (12, 0)}, "alone"),
        ({"capability": (8, 0)}, "needs compute capability"),
        ({"kv_dtype": torch.float8_e4m3fn}, "activations' dtype"),
        ({"dtype": torch.float16}, "no kernel for float16"),
    ):
        assert said in one.supports(replace(fits, **changed))


# --- the vendors' calls: played by a few lines of torch; what they compute is proven on a GPU -----


def dense(q, cache, table, lengths, scale, value_dim):
    """[B, 1, H, value_dim]; NaN for a sequence of no keys."""
    out = torch.full((*q.shape[:3], value_dim), torch.nan)
    for row, length in enumerate(lengths.tolist()):
        if length:
            keys = cache[table[row].long()].reshape(-1, q.shape[3])[:length]
            weights = torch.softmax(q[row, 0] @ keys.T * scale, -1)
            out[row, 0] = weights @ keys[:, :value_dim]
    return out


def played_flash_mla():
    module, plan = ModuleType("flash_mla"), object()

    def decode(
        q, k_cache, block_table, cache_seqlens, head_dim_v, tile_scheduler_metadata,
        num_splits=None, softmax_scale=None, causal=False, is_fp8_kvcache=None, indices=None,
        use_legacy=False,
    ):  # fmt: skip
        assert tile_scheduler_metadata is plan
        assert (num_splits, indices, causal, use_legacy) == (None, None, False, True)
        assert block_table.dtype == cache_seqlens.dtype == torch.int32
        assert k_cache.shape[2] == 1
        out = dense(q, k_cache, block_table, cache_seqlens, softmax_scale, head_dim_v)
        return out, torch.zeros(q.shape[0], q.shape[2], 1)

    module.get_mla_metadata = lambda: (plan, None)
    module.flash_mla_with_kvcache = decode
    return {"flash_mla": module}


def played_flashinfer():
    package, module = ModuleType("flashinfer"), ModuleType("flashinfer.mla")

    def decode(
        query, kv_cache, workspace_buffer, qk_nope_head_dim, kv_lora_rank, qk_rope_head_dim,
        block_tables, seq_lens, max_seq_len, bmm1_scale=1.0, bmm2_scale=1.0,
    ):  # fmt: skip
        assert not workspace_buffer.any()
        assert qk_nope_head_dim == 128
        assert query.shape[3] == kv_cache.shape[3] == kv_lora_rank + qk_rope_head_dim
        assert kv_cache.shape[1] == 1
        assert int(seq_lens.max()) <= max_seq_len
        cache = kv_cache.transpose(1, 2)
        out = dense(query, cache, block_tables, seq_lens, bmm1_scale, kv_lora_rank)
        return out * bmm2_scale

    module.trtllm_batch_decode_with_kv_cache_mla = decode
    package.mla = module
    return {"flashinfer": package, "flashinfer.mla": module}


@pytest.mark.parametrize(
    ("name", "play"), [("flash_mla", played_flash_mla), ("flashinfer", played_flashinfer)]
)
def test_a_vendor_is_called_as_it_documents(name, play, monkeypatch) -> None:
    for module, played in play().items():
        monkeypatch.setitem(sys.modules, module, played)
    place = f"tokenwire.kernels.mla.{name}"
    monkeypatch.delitem(sys.modules, place, raising=False)
    adapter = import_module(place)
    monkeypatch.setattr(adapter, "WORKSPACE", 8, raising=False)
    one = made(LENGTHS)
    for k_scale in (1.0, 0.5):
        found = one.decode(adapter, k_scale=k_scale)
        torch.testing.assert_close(found, one.decode(reference, k_scale=k_scale))
    monkeypatch.delitem(sys.modules, place)
