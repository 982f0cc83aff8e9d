"""Lag of the event loop while prompts of 100k tokens arrive beside 32 streams.

    python benchmarks/loop_lag.py [--model FOLDER] [--tokens 100000] [--shape one|turns]

In one process, without sockets: the flow answers both. Lag is how much later than asked a timer of
one millisecond rings, sampled all the time; what is printed is its median, p99 and most, first with
the streams alone, then with the long prompts (distinct texts, so that no cache helps), and which of
the steps on the loop's own thread took longest for one of these prompts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import statistics
import time
from importlib.metadata import version
from pathlib import Path

import msgspec
from gateway_parts import settle_heap

from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.wire import HttpRequest

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PERIOD_S = 0.001
ENGINE = {"token_ms": 20.0, "context_length": 400_000, "kv_blocks": 0}
"""Without a block cache: to hash 6,000 blocks is an engine's work, and this one is in the loop."""


def main() -> None:
    options = _options()
    print(f"python {platform.python_version()}, tokenizers {version('tokenizers')}, {_fast()}")
    print(f"{platform.machine()}, {os.cpu_count()} cores")
    engine = PluginUse("mock", ENGINE)
    tokenizer = str((Path(options.model) / "tokenizer.json").resolve())
    model = ModelConfig("bench", engine, PluginUse("hf", {"path": tokenizer}), dialect="hermes")
    with LocalClient(Config(models=(model,))) as client:
        settle_heap()
        client.run(_measure(client.deployment.flow.handle, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/smollm2", help="a folder with a tokenizer.json")
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--shape", choices=["one", "turns"], default="one")
    return parser.parse_args()


def _fast() -> str:
    try:
        return f"fastokens {version('fastokens')}"
    except ModuleNotFoundError:
        return "without fastokens"


def _words(count: int) -> str:
    rng = random.Random(os.urandom(8))
    return " ".join("".join(rng.choices(LETTERS, k=rng.randint(2, 7))) for _ in range(count))


def _ask(messages: list[dict[str, str]], tokens: int, *, stream: bool) -> HttpRequest:
    body = {"model": "bench", "messages": messages, "max_tokens": tokens, "stream": stream}
    return HttpRequest("POST", "/v1/chat/completions", {}, body=msgspec.json.encode(body))


def _long(options: argparse.Namespace) -> HttpRequest:
    words = options.tokens // 2  # Such words are about two tokens each.
    if options.shape == "one":
        turns = [{"role": "user", "content": _words(words)}]
    else:
        names = ("user", "assistant")
        turns = [
            {"role": names[k % 2], "content": _words(words // 201)} for k in range(201)
        ]  # fmt: skip
    return _ask(turns, 1, stream=False)


async def _measure(handle, options) -> None:
    def start() -> asyncio.Task[None]:
        turns = [{"role": "user", "content": _words(50)}]
        return asyncio.ensure_future(handle(_ask(turns, 100_000, stream=True), Recording()))

    streams = [start() for _ in range(options.streams)]
    await asyncio.sleep(0.5)
    _print("streams alone", await _lags(asyncio.sleep(3.0)))
    prompts = [_long(options) for _ in range(options.prompts)]

    async def load() -> None:
        for prompt in prompts:
            exchange = Recording()
            await handle(prompt, exchange)
            assert exchange.status == 200, exchange.chunks
            await asyncio.sleep(0.05)

    began = time.perf_counter()
    _print(f"{options.prompts} prompts of {options.tokens} tokens too", await _lags(load()))
    print(f"{(time.perf_counter() - began) / options.prompts * 1e3:8.1f} ms a prompt, end to end")
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*streams, return_exceptions=True)


async def _lags(work) -> list[float]:
    """Milliseconds of lag, sampled until `work` is done."""
    lags: list[float] = []
    task = asyncio.ensure_future(work)
    while not task.done():
        asked = time.perf_counter()
        await asyncio.sleep(PERIOD_S)
        lags.append((time.perf_counter() - asked - PERIOD_S) * 1e3)
    await task
    return lags


def _print(name: str, lags: list[float]) -> None:
    ordered = sorted(lags)
    p99 = ordered[int(len(ordered) * 0.99)]
    middle = statistics.median(ordered)
    print(f"{middle:8.2f} p50 {p99:8.2f} p99 {ordered[-1]:8.2f} most, ms of lag: {name}")


if __name__ == "__main__":
    main()
