"""`call`: speaks to a server over HTTP, and shows the answer as it comes. Knows no pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from cyclopts import App
from msgspec import Struct
from rich.console import Console

from tokenwire.core.cli.shell import Shell
from tokenwire.core.wire import SseMessage, SseReader

__all__ = ("Shown", "add", "body", "read")

Protocol: TypeAlias = Literal["messages", "chat_completions"]
PATHS: Mapping[str, str] = {
    "messages": "/v1/messages",
    "chat_completions": "/v1/chat/completions",
}
WAIT_S = 600.0


class Shown(Struct, frozen=True):
    """What one event of a stream adds to the screen."""

    text: str = ""
    reasoning: str = ""
    error: str = ""


class Fault(Struct, frozen=True):
    message: str = "the server gave no reason"


class Delta(Struct, frozen=True):
    """Of either protocol: chat_completions has the first two, messages the others."""

    content: str | None = None
    reasoning_content: str | None = None
    text: str | None = None
    thinking: str | None = None


class ChatChoice(Struct, frozen=True):
    delta: Delta | None = None


class ChatEvent(Struct, frozen=True):
    choices: tuple[ChatChoice, ...] = ()
    error: Fault | None = None

    def shown(self) -> Delta | None:
        return self.choices[0].delta if self.choices else None


class MessagesEvent(Struct, frozen=True):
    delta: Delta | None = None
    error: Fault | None = None

    def shown(self) -> Delta | None:
        return self.delta


EVENTS: Mapping[str, msgspec.json.Decoder[ChatEvent | MessagesEvent]] = {
    "messages": msgspec.json.Decoder(MessagesEvent),
    "chat_completions": msgspec.json.Decoder(ChatEvent),
}


class Failure(Exception):
    """The call did not go well; its text says why."""


def add(app: App, shell: Shell) -> None:
    """Adds `call`."""

    @app.command
    def call(
        text: str,
        *,
        protocol: Protocol = "chat_completions",
        model: str | None = None,
        url: str = "http://127.0.0.1:8080",
        max_tokens: int = 1024,
    ) -> int:
        """Ask a running server, and show the answer as it comes.

        Parameters
        ----------
        text
            What to ask.
        protocol
            The protocol to speak.
        model
            Default: the first that the server lists.
        url
            The server.
        max_tokens
            How long the answer may get.
        """
        import httpx

        try:
            with httpx.Client(base_url=url, timeout=WAIT_S) as client:
                named = model or _first_model(client)
                _stream(client, protocol, body(protocol, named, text, max_tokens), shell)
        except httpx.InvalidURL as error:
            shell.complain(f"--url {url}: {error}")
            return 2
        except httpx.HTTPError as error:
            shell.complain(f"{url}: {error}: is a server there? `tokenwire serve` starts one")
            return 1
        except Failure as error:
            shell.complain(str(error))
            return 1
        return 0


def body(protocol: Protocol, model: str, text: str, max_tokens: int) -> dict[str, object]:
    """The request, streaming."""
    limit = "max_tokens" if protocol == "messages" else "max_completion_tokens"
    turn = {"role": "user", "content": text}
    return {"model": model, "messages": [turn], "stream": True, limit: max_tokens}


def read(protocol: Protocol, message: SseMessage) -> Shown:
    """What an event says; nothing for an event that only the protocol needs."""
    if not message.data or message.data == "[DONE]":
        return Shown()
    try:
        event = EVENTS[protocol].decode(message.data)
    except msgspec.ValidationError:
        return Shown()
    except msgspec.MsgspecError:
        return Shown(error=f"the server sent something that is no JSON: {message.data[:60]}")
    if event.error is not None:
        return Shown(error=event.error.message)
    delta = event.shown()
    if delta is None:
        return Shown()
    return Shown(
        text=delta.content or delta.text or "",
        reasoning=delta.reasoning_content or delta.thinking or "",
    )


def _first_model(client: Any) -> str:
    reply = client.get("/v1/models")
    try:
        models = msgspec.json.decode(reply.content)["data"]
        return str(models[0]["id"])
    except (msgspec.MsgspecError, LookupError, TypeError) as error:
        raise Failure(
            f"{reply.url}: lists no model (status {reply.status_code}): name one with --model"
        ) from error


def _stream(client: Any, protocol: Protocol, request: Mapping[str, object], shell: Shell) -> None:
    reader = SseReader()
    headers = {"anthropic-version": "2023-06-01"} if protocol == "messages" else {}
    with client.stream("POST", PATHS[protocol], json=request, headers=headers) as reply:
        if reply.status_code != 200:
            whole = SseMessage(reply.read().decode("utf-8", "replace"))
            reason = read(protocol, whole).error or "no reason given"
            raise Failure(f"{reply.url}: status {reply.status_code}: {reason}")
        for chunk in reply.iter_bytes():
            for message in reader.push(chunk):
                _show(read(protocol, message), shell.out)
    shell.out.print()


def _show(shown: Shown, console: Console) -> None:
    if shown.error:
        console.print()
        raise Failure(shown.error)
    if shown.reasoning and console.is_terminal:
        console.print(shown.reasoning, end="", style="dim", markup=False, highlight=False)
    if shown.text:
        console.print(shown.text, end="", markup=False, highlight=False, soft_wrap=True)
        console.file.flush()
