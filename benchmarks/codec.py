"""CPU of the codec in one process, beside deepseek-recipe and transformers where there are these.

    python benchmarks/codec.py [--runs 5] [--templates FOLDER] [--tokenizer FOLDER]

A chat request of 42 messages and 21 kB is decoded and converted, rendered and encoded to ids; an
answer of 2,000 tokens is parsed and written from text, as events, one a token, and as one body.
Figures are user + system CPU in microseconds, the median of the runs, and how many times the
rival's ours is.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import codec_ours
import codec_rivals
from codec_cases import ANSWERS, TOKENS, chat_body

PROTOCOLS = ("chat_completions", "messages", "responses")
Work = Callable[[], object]


def main() -> None:
    options = _options()
    body = chat_body()
    packages = ("msgspec", "deepseek-recipe", "transformers", "jinja2", "tokenizers")
    found = ", ".join(f"{name} {_version(name)}" for name in packages)
    print(f"python {platform.python_version()}, {found}")
    print(f"{len(body)} bytes; us of CPU, median of {options.runs} runs")
    print(f"  {'':<34}{'tokenwire':>11}{'recipe':>11}{'ratio':>7}{'transformers':>14}{'ratio':>7}")
    ours = codec_ours.Ours(body, options.templates, options.tokenizer)
    recipe = codec_rivals.recipe(body, options.tokenizer)
    transformers = codec_rivals.transformers(body, options.templates)
    for name, work in ours.request_work().items():
        _row(options.runs, name, work, recipe.get(name), transformers.get(name), repeat=50)
    print(f"  streams of {TOKENS} tokens, a token:")
    for protocol in PROTOCOLS:
        for kind, pieces in ANSWERS.items():
            work = ours.answer_work(protocol, pieces)
            rival = codec_rivals.recipe_stream(protocol, pieces, body)
            _row(options.runs, f"{protocol} {kind}", work, rival, None, units=TOKENS)
    print("  the same in one piece, to one body:")
    for protocol in PROTOCOLS:
        for kind, pieces in ANSWERS.items():
            text = "".join(pieces)
            work = ours.answer_work(protocol, [text], stream=False)
            rival = codec_rivals.recipe_unary(protocol, text, body)
            _row(options.runs, f"{protocol} {kind}", work, rival, None, repeat=20)
    for sentence in (*codec_rivals.absent(), *ours.absent()):
        print(f"  {sentence}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--templates", type=Path, default=Path("../shared/templates"))
    parser.add_argument("--tokenizer", type=Path, help="a folder with a tokenizer.json")
    return parser.parse_args()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(absent)"


def _row(
    runs: int,
    name: str,
    work: Work | None,
    recipe: Work | None,
    transformers: Work | None,
    *,
    repeat: int = 1,
    units: int = 1,
) -> None:
    if work is None:
        return
    works = [each for each in (work, recipe, transformers) if each is not None]
    medians = dict(zip(works, _medians(runs, works, repeat), strict=True))
    mine = medians[work] / units
    line = f"  {name:<34}{mine:11.2f}"
    for rival, width in ((recipe, 11), (transformers, 14)):
        if rival is None:
            line += f"{'':>{width}}{'':>7}"
        else:
            other = medians[rival] / units
            line += f"{other:{width}.2f}{mine / other:7.2f}"
    print(line.rstrip())


def _medians(runs: int, works: list[Work], repeat: int) -> list[float]:
    """Microseconds of CPU of each once; the first call is not counted.

    Strategy: runs take turns, so that a machine that does other work slows all of them.
    """
    for work in works:
        work()
    gc.collect()
    figures = [[_once(work, repeat) for work in works] for _ in range(runs)]
    return [statistics.median(of_one) for of_one in zip(*figures, strict=True)]


def _once(work: Work, repeat: int) -> float:
    began = time.process_time()
    for _ in range(repeat):
        work()
    return (time.process_time() - began) * 1e6 / repeat


if __name__ == "__main__":
    sys.exit(main())
