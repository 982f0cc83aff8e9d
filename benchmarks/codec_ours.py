"""Our side of codec.py: what is timed, as functions without arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from codec_cases import compact
from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.events import Event, Finished, Order, Started, Usage
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.dialect import ParserSetup, Template
from tokenwire.core.prompt import Piece
from tokenwire.core.rendering import Renderer
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest, Stamp

__all__ = ("Ours",)

JINJA = "deepseek-ai-DeepSeek-V4.jinja"
STAMP = Stamp("r", 0.0, b"x" * 16)


class Ours:
    """`body`: a Chat Completions request."""

    def __init__(self, body: bytes, templates: Path, tokenizer: Path | None) -> None:
        self._host = Host()
        self._services = Services(Keyring([b"k" * 32]))
        self._maker = self._host.parsers.build("deepseek_v4", {}, self._services)
        self._request = HttpRequest("POST", "/v1/chat/completions", body=body)
        self._compact = HttpRequest("POST", "/v1/chat/completions", body=compact(body))
        self._chat = self._codec("chat_completions")
        decoded = self._chat.decode(self._request)
        assert isinstance(decoded, Call)
        self._call = decoded
        self._native = self._host.templates.build("deepseek_v4", {}, self._services)
        self._jinja: Template | None = None
        if (templates / JINJA).is_file():
            source = (templates / JINJA).read_text(encoding="utf-8")
            settings = {"source": source}
            self._jinja = self._host.templates.build("jinja", settings, self._services)
        self._renderer: Renderer | None = None
        if tokenizer is not None:
            path = {"path": str(tokenizer / "tokenizer.json")}
            built = self._host.tokenizers.build("hf", path, self._services)
            self._renderer = Renderer(built, self._native, self._maker, model="m")

    def absent(self) -> list[str]:
        """What was not measured, in sentences."""
        lacking = []
        if self._jinja is None:
            lacking.append(f"no Jinja rows: {JINJA} is not in the folder of --templates")
        if self._renderer is None:
            lacking.append("no row for ids: no --tokenizer was given")
        return lacking

    def request_work(self) -> dict[str, Callable[[], object] | None]:
        dialogue, renderer, jinja = self._call.dialogue, self._renderer, self._jinja
        return {
            "decode and convert": lambda: self._chat.decode(self._request),
            "decode and convert, compact": lambda: self._chat.decode(self._compact),
            "render, native": lambda: self._native.render(dialogue, 0.0),
            "render, Jinja": jinja and (lambda: jinja.render(dialogue, 0.0)),
            "render and encode, from scratch": renderer and (lambda: self._scratch(dialogue)),
            "render and encode, next turn": renderer and (lambda: renderer.prompt(dialogue, 0.0)),
        }

    def _scratch(self, dialogue: Dialogue) -> object:
        assert self._renderer is not None
        rendered = self._renderer.render(dialogue, 0.0)
        return self._renderer.tokenizer.encode(rendered.text)

    def _codec(self, name: str) -> Codec:
        return self._host.codecs.build(name, {}, self._services)

    def answer_work(
        self, protocol: str, pieces: Sequence[str], *, stream: bool = True
    ) -> Callable[[], object] | None:
        """An answer from its pieces of text to the bytes of its events, or of one body."""
        if protocol not in self._host.codecs:
            return None
        codec = self._codec(protocol)
        call = replace(self._call, output=replace(self._call.output, stream=stream))
        setup = ParserSetup(phase="reasoning", tools=self._call.dialogue.tools)
        special = {"</think>", "｜DSML｜"}

        def work() -> int:
            push = codec.reply(call, STAMP).push
            step = Order().step
            parser = self._maker.parser(setup)
            written = 0
            first: list[Event] = [Started(100)]
            for event in first:
                step(event)
                written += len(push(event))
            for text in pieces:
                for part in parser.push(Piece(text, text in special)):
                    step(part)
                    written += len(push(part))
            last = (*parser.flush(), Finished(0, "stop"), Usage(100, len(pieces)))
            for event in last:
                step(event)
                written += len(push(event))
            return written

        return work
