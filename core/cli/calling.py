"""`call`: asks a server in any installed protocol that can ask, and shows the answer as it comes.

Knows no protocol, no pipeline.
"""

from __future__ import annotations

from typing import Any

import msgspec
from cyclopts import App
from msgspec.structs import replace
from rich.console import Console

from tokenwire.core.call import Call, Output, Stopping
from tokenwire.core.cli.painting import visible
from tokenwire.core.cli.shell import Shell
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ConfigError, ReplyError
from tokenwire.core.events import Event, Failed, Finished, PartDelta, PartStart
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import CodecClient

__all__ = ("Screen", "add", "client_of")

WAIT_S = 600.0


class Failure(Exception):
    """The call did not go well; its text says why."""


def add(app: App, shell: Shell) -> None:
    """Adds `call`."""

    @app.command
    def call(
        text: str,
        *,
        protocol: str = "chat_completions",
        model: str | None = None,
        url: str | None = None,
        max_tokens: int = 1024,
    ) -> int:
        """Ask a running server, and show the answer as it comes.

        Parameters
        ----------
        text
            What to ask.
        protocol
            The protocol to speak, as `tokenwire plugins` names it.
        model
            Default: the first that the server has.
        url
            The server. Default: this machine's, at TOKENWIRE_SERVER_PORT or 8080.
        max_tokens
            How long the answer may get.
        """
        import httpx

        if url is None:
            # Why only the port: the host is what a server listens on, which may be every address.
            url = f"http://127.0.0.1:{shell.environ.get('TOKENWIRE_SERVER_PORT') or 8080}"

        codec = client_of(shell.host(), protocol)
        try:
            with httpx.Client(base_url=url, timeout=WAIT_S) as client:
                asked = Call(
                    model or _first_model(client),
                    Dialogue((Turn("user", (Text(text),)),)),
                    stopping=Stopping(max_tokens=max_tokens),
                    output=Output(stream=True),
                )
                _stream(client, codec, asked, shell)
        except httpx.InvalidURL as error:
            shell.complain(f"--url {url}: {error}")
            return 2
        except httpx.HTTPError as error:
            shell.complain(f"{url}: {error}: is a server there? `tokenwire serve` starts one")
            return 1
        except (Failure, ReplyError) as error:
            shell.complain(str(error))
            return 1
        return 0


def client_of(host: Host, protocol: str) -> CodecClient:
    """Raises ConfigError for a protocol that is not installed, or that cannot ask."""
    host.codecs.find(protocol, "--protocol")
    client = _client(host, protocol)
    if client is None:
        able = [name for name in host.codecs if _client(host, name) is not None]
        raise ConfigError(
            f"--protocol {protocol}: it has no client side, so it cannot ask; these can: "
            f"{', '.join(able) or 'none'}"
        )
    return client


def _client(host: Host, protocol: str) -> CodecClient | None:
    return host.codecs.build(protocol, {}, lone_services(), f"codec.{protocol}").client()


def _first_model(client: Any) -> str:
    reply = client.get("/ready")
    try:
        return str(msgspec.json.decode(reply.content)["models"][0])
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError) as error:
        raise Failure(
            f"{reply.url}: lists no model (status {reply.status_code}): name one with --model"
        ) from error


def _stream(client: Any, codec: CodecClient, call: Call, shell: Shell) -> None:
    asked = codec.request(call)
    how = {"content": asked.body, "headers": dict(asked.headers)}
    screen = Screen(shell.out)
    with client.stream(asked.method, asked.path, **how) as reply:
        if reply.status_code != 200:
            reason = _refusal(codec, call, reply.read())
            raise Failure(f"{reply.url}: status {reply.status_code}: {reason}")
        reader = codec.reader(call)
        for chunk in reply.iter_bytes():
            screen.show(reader.push(chunk))
        screen.show(reader.flush())
    shell.out.print()
    if not screen.is_finished:
        raise Failure("the answer stopped before its end")


def _refusal(codec: CodecClient, call: Call, body: bytes) -> str:
    reader = codec.reader(replace(call, output=replace(call.output, stream=False)))
    try:
        events = [*reader.push(body), *reader.flush()]
    except ReplyError as error:
        return str(error)
    failed = [event.message for event in events if isinstance(event, Failed)]
    return failed[0] if failed else "no reason given"


class Screen:
    """Shows the parts of one answer: text as it is, but for what would steer the terminal, which is
    escaped; reasoning dimmed, and on terminals only."""

    def __init__(self, console: Console) -> None:
        self.is_finished = False
        self._console = console
        self._kind = ""

    def show(self, events: list[Event]) -> None:
        """Raises Failure for an answer that failed."""
        for event in events:
            match event:
                case PartStart(kind=kind, name=name):
                    self._kind = kind
                    if kind == "tool_call":
                        self._print(f"{name} ")
                case PartDelta(text=text) if self._kind != "reasoning":
                    self._print(text)
                case PartDelta(text=text) if self._console.is_terminal:
                    self._print(text, style="dim")
                case Finished():
                    self.is_finished = True
                case Failed(message=message):
                    self._console.print()
                    raise Failure(message)
                case _:
                    pass

    def _print(self, text: str, style: str | None = None) -> None:
        if style is None:
            self._console.file.write(visible(text))  # Why not `print`: it makes tabs spaces
        else:
            self._console.out(visible(text), end="", style=style, highlight=False)
        self._console.file.flush()
