"""CPU of the whole server per streamed token and per request, over HTTP, on the mock engine.

    python benchmarks/gateway.py [--model models/smollm2] [--http granian] [--runs 5]

The server has one core and its own process; the client has another of each. Prompts are distinct
and random, caches of answers are off, one event a token. Figures are user + system CPU of the
server's process tree, its mock engine included; the median of the runs, with the least and most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import load_client
from server_process import ServerProcess

COMMON = """
the of and to in a is that for it as was with be by on not he his but at are this have
from or had an they which one you were her all she there would their we him been has when who will
more no if out so said what up its about into than them can only other new some could time these two
may then do first any my now such like our over man me even most made after also did many before
must through back years where much your way well down should because each just those people how too
little state good very make world still own see men work long get here between both life being under
never day same another know while last might us great old year off come since against go came right
used take three river mountain engine window paper garden copper signal harbour winter"""
WORDS = COMMON.split()


def main() -> None:
    options = _options()
    _print_versions(options)
    config = _config(Path(options.model), options.http)
    with ServerProcess(config) as server:
        if server.is_pinned and hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
            os.sched_setaffinity(0, range(1, os.cpu_count() or 2))
        asyncio.run(_measure(server, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/smollm2", help="a folder with a tokenizer.json")
    parser.add_argument("--http", default="granian", choices=["granian", "uvicorn"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--requests", type=int, default=256)
    return parser.parse_args()


def _print_versions(options: argparse.Namespace) -> None:
    names = ("tokenwire", "granian", "uvicorn", "uvloop", "msgspec", "tokenizers")
    found = ", ".join(f"{name} {version(name)}" for name in names)
    print(f"python {platform.python_version()}, {found}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, {options.http}, {options.runs} runs")


def _config(folder: Path, http: str) -> str:
    """JSON is YAML. The answer is long enough for any row, and of words: every token shows."""
    answer = " ".join(random.Random(1).choices(WORDS, k=3000))
    tokenizer = folder / "tokenizer.json"
    model: dict[str, object] = {
        "name": "bench",
        "engine": {"plugin": "mock", "answer": answer, "context_length": 8192},
        "tokenizer": str(tokenizer.resolve()) if tokenizer.is_file() else "bytes",
    }
    if not tokenizer.is_file():
        model["dialect"] = "plain"
        print(f"{tokenizer} is not there: measured with the bytes tokenizer", file=sys.stderr)
    return json.dumps({"server": {"http": http}, "models": [model]})


async def _measure(server: ServerProcess, options: argparse.Namespace) -> None:
    rng = random.Random(os.urandom(8))
    per_word = await _tokens_per_word(server, rng)

    def prompts(count: int, tokens: int) -> list[str]:
        words = max(1, round(tokens / per_word))
        return [" ".join(rng.choices(WORDS, k=words)) for _ in range(count)]

    def asks(count: int, prompt: int, tokens: int, *, stream: bool) -> list[bytes]:
        return [
            load_client.chat(server.host, text, "bench", tokens=tokens, stream=stream)
            for text in prompts(count, prompt)
        ]

    waves = 4
    await _row(
        f"streamed token ({options.streams} streams of {options.tokens}, prompts of 128), us",
        server,
        lambda: asks(options.streams * waves, 128, options.tokens, stream=True),
        options.streams,
        options.runs,
        lambda load: len(load.answers) * options.tokens / 1e6,
    )
    await _row(
        "request (32 at once, prompts of 1k tokens, 16 tokens out), ms",
        server,
        lambda: asks(options.requests, 1000, 16, stream=False),
        32,
        options.runs,
        lambda load: len(load.answers) / 1e3,
    )


async def _tokens_per_word(server: ServerProcess, rng: random.Random) -> float:
    text = " ".join(rng.choices(WORDS, k=800))
    ask = load_client.chat(server.host, text, "bench", tokens=1, stream=False)
    (answer,) = (await load_client.run(server.host, server.port, [ask], 1)).answers
    return int(json.loads(answer.body)["usage"]["prompt_tokens"]) / 800


async def _row(
    name: str,
    server: ServerProcess,
    make: Callable[[], list[bytes]],
    connections: int,
    runs: int,
    scale: Callable[[load_client.Load], float],
) -> None:
    """One line. `scale`: how many of the row's units a load was, in millions or thousands."""
    await load_client.run(server.host, server.port, make()[:connections], connections)
    figures, rates, events = [], [], 0.0
    for _ in range(runs):
        requests = make()
        before = server.cpu_s()
        load = await load_client.run(server.host, server.port, requests, connections)
        figures.append((server.cpu_s() - before) / scale(load))
        rates.append(len(load.answers) / load.wall_s)
        events = load.events / len(load.answers)
    middle, least, most = statistics.median(figures), min(figures), max(figures)
    shown = f"; {events:.0f} events an answer" if events else ""
    rate = statistics.median(rates)
    print(f"{middle:8.2f} [{least:.2f}, {most:.2f}]  CPU a {name}; {rate:.0f} answers/s{shown}")


if __name__ == "__main__":
    main()
