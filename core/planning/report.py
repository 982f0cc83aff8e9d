"""A summary as lines of text. Knows no terminal: columns are aligned with blanks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tokenwire.core.cost.gpus import Figure
from tokenwire.core.cost.links import Way
from tokenwire.core.planning.summary import GpuRow, LinkRows, PoolRow, Row, Summary

__all__ = ("report",)

WAYS: Final[dict[Way, str]] = {
    "within": "all-to-all in a domain",
    "across": "all-to-all between domains",
    "sums": "all-reduce in a domain",
}


def report(found: Summary) -> Iterator[str]:
    """The plan for people, whether it fits first."""
    yield _fit(found)
    yield (
        f"Weights {found.precision} {found.weights_gb:,.1f} GB, KV {found.kv_dtype} "
        f"{found.kv_kb_token:,.1f} KB a token"
    )
    if found.weights_note:
        yield found.weights_note
    yield (
        f"{found.gpus} {found.gpu} in domains of {found.domain}, {found.nic_gb_s:.4g} GB/s beyond "
        f"({found.nic_mark}); at most {found.tpot_ms:g} ms a token; prompts of {found.input:,}, "
        f"answers of {found.output:,}, {found.context:,} tokens of KV a sequence"
    )
    yield from (_figures(each) for each in found.figures)
    if found.links is not None:
        yield ""
        yield from _links(found.links)
    if not found.fits:
        return
    yield ""
    yield from _layouts([row for row in found.layouts if row.room > 0])
    yield from _left_out(found)
    if found.pick is None:
        yield ""
        yield f"No layout keeps {found.tpot_ms:g} ms a token: even a batch of 1 takes longer."
        return
    yield ""
    yield from _curve(found)
    if found.pools is None:
        yield ""
        yield "No layout of the GPUs for prefill holds the model."
    else:
        yield ""
        yield from _pools(found, found.pools)
    yield ""
    yield from _caveats(found)


def _figures(gpu: GpuRow) -> str:
    fp8 = "no fp8" if gpu.fp8 is None else f"fp8 {_tera(gpu.fp8, 'TFLOP/s')}"
    return (
        f"{gpu.name}: {gpu.memory_gb:g} GB at {_tera(gpu.bandwidth, 'TB/s')}, "
        f"bf16 {_tera(gpu.bf16, 'TFLOP/s')}, {fp8}, NVLink {gpu.nvlink_gb_s:.4g} GB/s "
        f"({gpu.nvlink_mark})"
    )


def _tera(figure: Figure, unit: str) -> str:
    return f"{figure.value / 1e12:,.4g} {unit} ({figure.mark})"


def _fit(found: Summary) -> str:
    if found.smallest_gpus is None:
        return f"{found.model} fits on no number of {found.gpu}: each would hold too much whole."
    fewest = f"the fewest that hold it: {found.smallest_gpus} ({found.smallest_layout})"
    does = "fits" if found.fits else "does not fit"
    return f"{found.model} {does} on {found.gpus} {found.gpu}; {fewest}."


def _links(found: LinkRows) -> Iterator[str]:
    yield (
        f"Measured with {found.ranks} ranks in domains of {found.domain}, {found.device}, rows of "
        f"{found.row_bytes:,} bytes; the smallest message takes {found.latency_us:,.0f} us:"
    )
    cells = [
        (WAYS[row.way], f"{row.rows:,}", f"{row.bytes:,}", f"{row.ms:,.3f}", f"{row.gb_s:,.3f}")
        for row in found.samples
    ]
    yield from _table([("", "rows", "bytes a rank", "ms", "GB/s a rank"), *cells], left=(0,))
    if found.across_gb_s is None:
        yield "All ranks are of one domain: the link beyond is not measured."


def _layouts(rows: Sequence[Row]) -> Iterator[str]:
    head = ("layout", "groups", "GB/GPU", "room", "batch", "tok/s/GPU", "tok/s/user", "limit")
    cells = [
        (
            row.layout,
            str(row.groups),
            f"{row.weights_gb:.1f}",
            f"{row.room:,}",
            f"{row.batch:,}" if row.batch else "-",
            f"{row.tokens_per_s_gpu:,.0f}" if row.batch else "-",
            f"{row.tokens_per_s_user:.1f}" if row.batch else "-",
            "refused" if row.refused else row.limit or "too slow",
        )
        for row in rows
    ]
    return _table([head, *cells], left=(0, 7))


def _left_out(found: Summary) -> Iterator[str]:
    small = [row.layout for row in found.layouts if row.room == 0]
    if small:
        yield f"Too small for the model: {', '.join(small)}"
    for row in found.layouts:
        if row.refused:
            yield f"Refused: {row.layout}: {row.refused}"


def _curve(found: Summary) -> Iterator[str]:
    yield f"The best of a GPU against the best of a user; * is the pick ({found.objective}):"
    points = list(found.curve)
    if found.pick is not None and found.pick not in points:
        points = sorted([*points, found.pick], key=lambda each: -each.tokens_per_s_user)
    cells = [
        (
            "*" if point.picked else "",
            f"{point.tokens_per_s_user:.1f}",
            f"{point.tokens_per_s_gpu:,.0f}",
            point.layout,
            f"{point.batch:,}",
        )
        for point in points
    ]
    yield from _table([("", "tok/s/user", "tok/s/GPU", "layout", "batch"), *cells], left=(0, 3))


def _pools(found: Summary, pools: PoolRow) -> Iterator[str]:
    yield (
        f"Prefill: {pools.prefill_layout} on {pools.prefill_gpu}, "
        f"{pools.prefill_tokens_per_s_gpu:,.0f} tokens/s/GPU; a prompt's KV is "
        f"{pools.kv_mb:,.1f} MB, {pools.kv_ms:.1f} ms to hand over"
    )
    yield (
        f"Prefill : decode GPUs = 1 : {pools.decode_gpus_per_prefill_gpu:.2f} keeps both busy, "
        f"{pools.requests_per_s_balanced:,.1f} requests/s of {found.gpus} GPUs; "
        f"1 : 1 gives {pools.requests_per_s_even:,.1f}"
    )
    beside = f"{pools.prefill_groups_beside} groups of prefill beside all {found.gpus} of decode"
    if pools.split is None:
        yield f"In whole groups: {beside}; both do not fit on {found.gpus}"
    else:
        yield (
            f"In whole groups: {beside}; or {pools.split.prefill_groups} of prefill and "
            f"{pools.split.decode_groups} of decode on {found.gpus}, "
            f"{pools.split.requests_per_s:,.1f} requests/s"
        )
    if (costs := pools.costs_per_million) is not None:
        yield (
            f"A million tokens cost {costs.input:.3f} in prompts, {costs.output:.3f} in answers, "
            f"{costs.blended:.3f} in both together"
        )


def _caveats(found: Summary) -> Iterator[str]:
    if found.efficiency == 1:
        yield (
            "These are bounds: with DeepSeek-V3, published engines reach 37 to 56 % of them in "
            "decode and 20 to 32 % in prefill (--efficiency says what yours does)."
        )
    yield "The engine has no pools yet: what decodes does its prompts too, and gives less."


def _table(rows: Sequence[tuple[str, ...]], *, left: tuple[int, ...]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
