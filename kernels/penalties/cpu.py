"""Penalties on the CPU: only ids that were seen are touched, only rows that are penalised."""

from __future__ import annotations

from torch import Tensor

__all__ = ("penalties",)


def penalties(
    logits: Tensor,
    prompt: Tensor,
    output: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    """See reference.penalties."""
    vocabulary = logits.shape[1]
    repeated = (repetition != 1).tolist()
    counted = ((frequency != 0) | (presence != 0)).tolist()
    for row, scores in enumerate(logits):
        if not (repeated[row] or counted[row]):
            continue
        ids, counts = output[row][output[row] < vocabulary].unique(return_counts=True)
        if repeated[row]:
            before = prompt[row][prompt[row] < vocabulary]
            seen = before.new_zeros(vocabulary, dtype=bool)
            seen[before] = True
            seen[ids] = True
            places = seen.nonzero().flatten()
            values, factor = scores[places], repetition[row]
            scores[places] = (values / factor).where(values > 0, values * factor)
        if counted[row]:
            values = scores[ids] - frequency[row] * counts.float()
            scores[ids] = values - presence[row]
