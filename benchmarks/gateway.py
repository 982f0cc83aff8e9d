"""CPU of the whole server per streamed token and per request, over HTTP, on the mock engine.

    python benchmarks/gateway.py [--model FOLDER ...] [--http granian] [--runs 5] [--no-parts]

The server has one core and its own process; the client has another of each. Prompts are distinct
and random, caches of answers are off, one event a token. Figures are user + system CPU of the
server's process tree, its mock engine included; the median of the runs, with the least and most.
What a part of it costs alone is measured in one process (gateway_parts.py): the table under them.
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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import load_client
from gateway_parts import WHOLE, Parts, Shape
from server_process import ServerProcess

MODELS = ("models/smollm2", ".cache/models/qwen3")
"""Those that are there are measured: tokenizers differ tenfold in what a prompt costs."""

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
FLUSH_S = 0.005
"""The default of server.flush_interval."""


def main() -> None:
    options = _options()
    _print_versions(options)
    folders = [Path(folder) for folder in options.model or MODELS]
    found = [folder for folder in folders if (folder / "tokenizer.json").is_file()]
    for folder in found or folders[:1]:
        _measure_model(folder, options)


def _measure_model(folder: Path, options: argparse.Namespace) -> None:
    print(f"\n{folder.name}")
    per_word, together = 1.0, 1
    wholes: dict[str, float] = {}
    wholly = _config(folder, options.http, None)
    for flush_s, shows in ((None, "writes up to 5 ms apart (the default)"), (0, "a write a token")):
        config = json.dumps(_config(folder, options.http, flush_s))
        with ServerProcess(config) as server:
            if server.is_pinned and hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
                os.sched_setaffinity(0, range(1, os.cpu_count() or 2))
            load = _Load(server, options)
            per_word = asyncio.run(load.tokens_per_word())
            told = asyncio.run(load.measure(shows, requests=flush_s is None))
        if not wholes:
            wholes, together = told, load.together
    if not options.no_parts:
        parts = Parts(json.dumps(wholly), WORDS, options.runs)
        for shape, unit, scale in (
            (
                Shape(options.streams, options.tokens, round(128 / per_word), True, together),
                "us a token",
                1e6,
            ),
            (Shape(32, 16, round(1000 / per_word), False), "ms a request", 1e3),
        ):
            of = shape.requests * (shape.tokens if shape.stream else 1) / scale
            _show_parts(
                unit, parts.measure(shape), of, wholes["token" if shape.stream else "request"]
            )


def _show_parts(unit: str, found: dict[str, float], of: float, server: float) -> None:
    """`server`: what the whole server took, in the same unit."""
    whole = found.pop(WHOLE) / of
    engine = found["mock engine"] / of
    print(f"  where it goes, {unit}:")
    for name, seconds in sorted(found.items(), key=lambda part: -part[1]):
        print(f"{seconds / of:8.3f}  {name}")
    print(f"{server - whole:8.3f}  HTTP: kernel, server, edge (the whole server less {whole:.3f})")
    print(f"{server - engine:8.3f}  the whole server less the mock engine")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="*", help="folders with a tokenizer.json")
    parser.add_argument("--http", default="granian", choices=["granian", "uvicorn"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--no-parts", action="store_true", help="the whole server alone")
    return parser.parse_args()


def _print_versions(options: argparse.Namespace) -> None:
    names = ("tokenwire", "granian", "uvicorn", "uvloop", "msgspec", "tokenizers", "fastokens")
    found = ", ".join(f"{name} {_version(name)}" for name in names)
    print(f"python {platform.python_version()}, {found}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, {options.http}, {options.runs} runs")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(absent)"


def _config(folder: Path, http: str, flush_s: float | None) -> dict[str, Any]:
    """The answer is long enough for any row, and of words: every token shows. The engine has no KV
    cache: to hash its blocks is no gateway's work."""
    answer = " ".join(random.Random(1).choices(WORDS, k=3000))
    tokenizer = folder / "tokenizer.json"
    engine = {"plugin": "mock", "answer": answer, "context_length": 8192, "kv_blocks": 0}
    model: dict[str, object] = {
        "name": "bench",
        "engine": engine,
        "tokenizer": str(tokenizer.resolve()) if tokenizer.is_file() else "bytes",
    }
    if not tokenizer.is_file():
        model["dialect"] = "plain"
        print(f"{tokenizer} is not there: measured with the bytes tokenizer", file=sys.stderr)
    server = {"http": http} | ({} if flush_s is None else {"flush_interval": flush_s})
    return {"server": server, "models": [model]}


class _Load:
    """What is asked of one server."""

    def __init__(self, server: ServerProcess, options: argparse.Namespace) -> None:
        self._server = server
        self._options = options
        self._rng = random.Random(os.urandom(8))
        self._per_word = 1.0
        self.together = 1
        """Tokens that come between two writes, in the last streamed row."""

    async def tokens_per_word(self) -> float:
        server = self._server
        text = " ".join(self._rng.choices(WORDS, k=800))
        ask = load_client.chat(server.host, text, "bench", tokens=1, stream=False)
        (answer,) = (await load_client.run(server.host, server.port, [ask], 1)).answers
        self._per_word = int(json.loads(answer.body)["usage"]["prompt_tokens"]) / 800
        return self._per_word

    def _asks(self, count: int, prompt: int, tokens: int, *, stream: bool) -> list[bytes]:
        words = max(1, round(prompt / self._per_word))
        texts = [" ".join(self._rng.choices(WORDS, k=words)) for _ in range(count)]
        host = self._server.host
        return [
            load_client.chat(host, text, "bench", tokens=tokens, stream=stream) for text in texts
        ]

    async def measure(self, shows: str, *, requests: bool) -> dict[str, float]:
        """The medians: us a streamed token, ms a request."""
        options, waves = self._options, 4
        found = {}
        found["token"] = await self._row(
            f"streamed token ({options.streams} streams of {options.tokens}, prompts of 128), us;"
            f" {shows}",
            lambda: self._asks(options.streams * waves, 128, options.tokens, stream=True),
            options.streams,
            lambda load: len(load.answers) * options.tokens / 1e6,
        )
        if requests:
            found["request"] = await self._row(
                "request (32 at once, prompts of 1k tokens, 16 tokens out), ms",
                lambda: self._asks(options.requests, 1000, 16, stream=False),
                32,
                lambda load: len(load.answers) / 1e3,
            )
        return found

    async def _row(
        self,
        name: str,
        make: Callable[[], list[bytes]],
        connections: int,
        scale: Callable[[load_client.Load], float],
    ) -> float:
        """One line. `scale`: how many of the row's units a load was, in millions or thousands."""
        server = self._server
        await load_client.run(server.host, server.port, make()[:connections], connections)
        figures, rates, events, writes = [], [], 0.0, 0.0
        for _ in range(self._options.runs):
            requests = make()
            before = server.cpu_s()
            load = await load_client.run(server.host, server.port, requests, connections)
            figures.append((server.cpu_s() - before) / scale(load))
            rates.append(len(load.answers) / load.wall_s)
            events = load.events / len(load.answers)
            writes = sum(answer.writes for answer in load.answers) / len(load.answers)
            if events:
                lasted = statistics.fmean(answer.total_s for answer in load.answers)
                self.together = max(1, round(events * FLUSH_S / lasted))
        middle, least, most = statistics.median(figures), min(figures), max(figures)
        shown = f"; {events:.0f} events in {writes:.0f} reads an answer" if events else ""
        rate = statistics.median(rates)
        print(f"{middle:8.2f} [{least:.2f}, {most:.2f}]  CPU a {name}; {rate:.0f} answers/s{shown}")
        return middle


if __name__ == "__main__":
    main()
