"""Plays the package deep_ep by a few lines over torch.distributed, as its documentation has it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.parallel.group import Group

__all__ = ("PlayedBuffer", "PlayedConfig")


class PlayedConfig:
    def __init__(self, near: int, far: int) -> None:
        self._near, self._far = near, far

    def get_nvl_buffer_size_hint(self, row_bytes: int, ranks: int) -> int:
        return self._near * row_bytes * ranks

    def get_rdma_buffer_size_hint(self, row_bytes: int, ranks: int) -> int:
        return self._far * row_bytes


class PlayedBuffer:
    """Its high-throughput half. What it is given is checked as the package checks it."""

    def __init__(self, group: Any, num_nvl_bytes: int = 0, num_rdma_bytes: int = 0) -> None:
        self.group, self.bytes = group, (num_nvl_bytes, num_rdma_bytes)

    @staticmethod
    def get_dispatch_config(num_ranks: int) -> PlayedConfig:
        return PlayedConfig(2, 0)

    @staticmethod
    def get_combine_config(num_ranks: int) -> PlayedConfig:
        return PlayedConfig(1, 3)

    def get_dispatch_layout(self, topk_idx: Tensor, num_experts: int) -> tuple[Any, ...]:
        assert topk_idx.dtype == torch.int64
        assert isinstance(self.group, Group)
        ranks = self.group.size
        known = topk_idx >= 0
        rank = torch.where(known, topk_idx // (num_experts // ranks), ranks)
        goes = (rank[..., None] == torch.arange(ranks)).any(1)
        per_expert = torch.bincount(topk_idx[known], minlength=num_experts)
        return goes.sum(0).int(), None, per_expert.int(), goes, "event"

    def dispatch(
        self,
        x: Tensor,
        *,
        topk_idx: Tensor,
        topk_weights: Tensor,
        num_tokens_per_rank: Tensor,
        num_tokens_per_rdma_rank: Tensor | None,
        is_token_in_rank: Tensor,
        num_tokens_per_expert: Tensor,
    ) -> tuple[Any, ...]:
        group = self.group
        assert topk_weights.dtype == torch.float32
        assert x.is_contiguous()
        assert topk_idx.is_contiguous()
        slots = num_tokens_per_expert.numel() // group.size
        sent = num_tokens_per_rank.tolist()
        received = group.all_to_all(num_tokens_per_rank).tolist()
        tokens = is_token_in_rank.T.nonzero()[:, 1]
        came, ids, weights = (
            group.all_to_all(each[tokens], sent, received) for each in (x, topk_idx, topk_weights)
        )
        first = group.index * slots
        here = (ids >= first) & (ids < first + slots)
        local = torch.where(here, ids - first, -1)
        counts = torch.bincount(local[here], minlength=slots).tolist()
        weights = torch.where(here, weights, 0.0)
        return came, local, weights, counts, (tokens, sent, received, len(x)), "event"

    def combine(self, x: Tensor, handle: Any) -> tuple[Any, ...]:
        tokens, sent, received, count = handle
        back = self.group.all_to_all(x, received, sent)
        total = x.new_zeros(count, x.shape[1])
        return total.index_add_(0, tokens, back), None, "event"
