"""CPU of the per-token path in one process: delta -> detokenize -> parse -> order -> encode.

    python benchmarks/per_token.py [--tokens 20000] [--runs 5] [--model models/smollm2]

One delta and one event a token, no server and no connection. For each dialect and protocol, the
median of the runs in microseconds of user + system CPU a token. `delta` is the cost of making the
TokenDelta itself, which is the engine's side, and is not in the other rows.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from tokenwire.core.call import Call, Output
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.dialogue import Dialogue, Text, ToolSpec, Turn
from tokenwire.core.factory import Services
from tokenwire.core.generation import Generation
from tokenwire.core.host import Host
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.signing import Keyring
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, Finish, FinishCause, FinishKind, TokenDelta
from tokenwire.core.wire import Stamp

PROSE = (
    "Rivers carry water from high ground to the sea, and on their way they shape the land. "
    "A slow river meanders; a fast one cuts. Where two of them meet, towns grow. "
)
CALL = Call(
    "m",
    Dialogue((Turn("user", (Text("hi"),)),), tools=(ToolSpec("f"),)),
    output=Output(stream=True),
)
END = Finish(FinishKind.STOP, FinishCause.EOS)


def main() -> None:
    options = _options()
    host = Host()
    folder = Path(options.model)
    services = Services(Keyring([b"k" * 32]), checkpoint=Checkpoint(folder))
    name = "hf" if (folder / "tokenizer.json").is_file() else "bytes"
    settings = {"path": str(folder / "tokenizer.json")} if name == "hf" else {}
    tokenizer = host.tokenizers.build(name, settings, services)
    text = PROSE * (options.tokens // 20)
    ids = tokenizer.encode(text)[: options.tokens]
    print(f"python {platform.python_version()}, msgspec {version('msgspec')}, tokenizer {name}")
    print(f"{len(ids)} tokens a run, median of {options.runs} runs, us of CPU a token")
    print(f"  {'delta':<32}{_median(options.runs, lambda: _deltas(ids), len(ids)):8.2f}")
    deltas = _deltas(ids)
    for parser in ("plain", "hermes"):
        maker = host.parsers.build(parser, {}, services)
        for protocol in ("chat_completions", "messages"):
            codec = host.codecs.build(protocol, {}, services)

            def run(maker: ParserMaker = maker, codec: Codec = codec) -> int:
                return _stream(tokenizer, maker, codec, deltas)

            us = _median(options.runs, run, len(ids))
            print(f"  {f'{parser} {protocol}':<32}{us:8.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--model", default="models/smollm2")
    return parser.parse_args()


def _deltas(ids: TokenIds) -> list[TokenDelta]:
    first = TokenDelta("j", ids=TokenIds(ids[:1]), counts=Counts(prompt=4))
    rest = [TokenDelta("j", at=at, ids=TokenIds((ids[at],))) for at in range(1, len(ids))]
    return [first, *rest]


def _stream(
    tokenizer: Tokenizer, maker: ParserMaker, codec: Codec, deltas: list[TokenDelta]
) -> int:
    """Bytes written: what the connection would have been sent."""
    setup = DecoderSetup(tokenizer=tokenizer, pieces=PieceTable(tokenizer))
    parser = maker.parser(ParserSetup(tools=CALL.dialogue.tools))
    generation = Generation([Decoder(setup, 0, parser)], "fingerprint")
    push = codec.reply(CALL, Stamp("r", 0.0, b"x" * 16)).push
    written = 0
    for delta in deltas:
        for event in generation.push(delta):
            written += len(push(event))
    for event in generation.push(TokenDelta("j", at=len(deltas), finish=END)):
        written += len(push(event))
    return written


def _median(runs: int, work: Callable[[], object], tokens: int) -> float:
    figures = []
    for _ in range(runs):
        began = time.process_time()
        work()
        figures.append((time.process_time() - began) * 1e6 / tokens)
    return statistics.median(figures)


if __name__ == "__main__":
    sys.exit(main())
