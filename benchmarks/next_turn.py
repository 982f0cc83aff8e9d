"""CPU of preparing a conversation's next turn, against preparing it from scratch.

    python benchmarks/next_turn.py [--model FOLDER ...] [--turns 20] [--runs 5]

A conversation of `turns` questions and answers grows by one turn. Rendering, looking for what was
kept, and encoding are timed (ServedModel.prompt): once in a process that has never seen it, once in
one that has prepared and answered its turns so far. The ids must be equal, for the answers are what
encoding their text gives. With the reference tokenizer, and with fastokens where it is installed.
Milliseconds of user + system CPU, the median of the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import random
import statistics
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from gateway import MODELS, WORDS
from gateway_parts import settle_heap

from tokenwire.core.call import Call
from tokenwire.core.config import ModelConfig, PluginUse
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.generation import Generation
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host
from tokenwire.core.jobs import Planned
from tokenwire.core.model_parts import assemble
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.served import ServedModel
from tokenwire.core.signing import Keyring
from tokenwire.core.token_history import TokenHistory
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)

ASKED, ANSWERED = 60, 180
"""Words of a question and of an answer."""
END = Finish(FinishKind.STOP, FinishCause.EOS)


def main() -> None:
    options = _options()
    names = ("tokenwire", "tokenizers", "fastokens", "jinja2")
    print(f"python {platform.python_version()}, {', '.join(map(_version, names))}")
    print(f"{options.turns} turns and one more; ms of CPU, median of {options.runs} runs")
    print(f"  {'':<26}{'tokens':>8}{'scratch':>10}{'next turn':>11}{'times':>7}")
    settle_heap()
    for folder in map(Path, options.model or MODELS):
        if (folder / "tokenizer.json").is_file():
            for fast in ("off", "auto"):
                asyncio.run(_row(folder, fast, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", nargs="*", help="folders with a tokenizer.json")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (absent)"


async def _row(folder: Path, fast: str, options: argparse.Namespace) -> None:
    conversation = _Conversation(folder, fast, options.turns)
    figures = [await conversation.measure() for _ in range(options.runs + 1)][1:]
    scratch = statistics.median(figure[0] for figure in figures) * 1e3
    later = statistics.median(figure[1] for figure in figures) * 1e3
    name = f"{folder.name}, {'reference' if fast == 'off' else 'fastokens'}"
    print(f"  {name:<26}{figures[0][2]:>8}{scratch:>10.2f}{later:>11.2f}{scratch / later:>7.1f}")


class _Conversation:
    """Questions and answers of words, the same for every model."""

    def __init__(self, folder: Path, fast: str, turns: int) -> None:
        self._services = Services(Keyring([b"k" * 32]))
        # Why once: to read its file takes seconds, and a server has read it long ago.
        settings = {"path": str(folder / "tokenizer.json"), "fast": fast}
        tokenizer = Host().tokenizers.build("hf", settings, self._services)
        self._host = Host({"ready": _plugin(Factory("ready", NoSettings, lambda *_: tokenizer))})
        self._config = ModelConfig(
            name="m",
            engine=PluginUse("mock"),
            checkpoint=str(folder),
            tokenizer=PluginUse("ready"),
        )
        rng = random.Random(3)
        self._said = [
            (" ".join(rng.choices(WORDS, k=ASKED)), " ".join(rng.choices(WORDS, k=ANSWERED)))
            for _ in range(turns + 1)
        ]

    def _call(self, turns: int) -> Call:
        """The first `turns` questions answered, and the next one."""
        said: list[Turn] = []
        for question, answer in self._said[:turns]:
            said += (Turn("user", (Text(question),)), Turn("assistant", (Text(answer),)))
        said.append(Turn("user", (Text(self._said[turns][0]),)))
        return Call("m", Dialogue(tuple(said)))

    async def measure(self) -> tuple[float, float, int]:
        """Seconds from scratch and of the next turn, and the prompt's tokens."""
        last = self._call(len(self._said) - 1)
        scratch_s, ids = await self._timed(self._model(), last)
        model = self._model()
        for turns in range(len(self._said) - 1):
            call = self._call(turns)
            prompt = await model.prompt(call, 0.0)
            job = TokenJob("j", "m", prompt.ids)
            generation = model.generation(call, prompt, Planned(job))
            _answer(generation, model.renderer.tokenizer.encode(self._said[turns][1]))
            model.keep(call, prompt, generation)
        later_s, again = await self._timed(model, last)
        if again != ids:
            raise RuntimeError("the next turn's ids are not those of the whole text")
        return scratch_s, later_s, len(ids)

    async def _timed(self, model: ServedModel, call: Call) -> tuple[float, TokenIds]:
        began = time.process_time()
        prompt = await model.prompt(call, 0.0)
        return time.process_time() - began, prompt.ids

    def _model(self) -> ServedModel:
        """One that has seen nothing."""
        model = assemble(self._config, self._host, self._services).model
        store = self._host.stores.build("memory", {}, self._services)
        model.remember(TokenHistory(store, 60.0))
        return model


def _plugin(factory: Factory[Tokenizer]) -> ModuleType:
    made = ModuleType("ready")
    made.register_tokenizers = impl(lambda: (factory,))  # type: ignore[attr-defined]
    return made


def _answer(generation: Generation, ids: TokenIds) -> None:
    generation.push(TokenDelta("j", ids=ids, counts=Counts(prompt=1)))
    generation.push(TokenDelta("j", at=len(ids), finish=END))


if __name__ == "__main__":
    main()
