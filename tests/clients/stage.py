"""A recording proxy before a live server: agents send one fixed script name, and it says which to
play at each turn. Knows where each protocol keeps its conversation, and nothing else of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
from msgspec import Struct

__all__ = ("Exchange", "Stage", "has_tools", "stage")

SCRIPT = "x-mock-script"
FINAL = "done"
"""The script that is played once a tool has answered."""
RESULTS = (
    "tool_result",
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
)
HOP = ("connection", "content-length", "date", "host", "server", "transfer-encoding")
WITHIN_S = 100.0


class Exchange(Struct, frozen=True):
    """One request as the client sent it, and how the server took it."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    status: int
    ignored: str


class Stage(Struct, frozen=True):
    """Where the proxy listens, and what has passed it so far."""

    url: str
    exchanges: list[Exchange]


def is_after_a_tool(body: Mapping[str, Any]) -> bool:
    """Whether the newest item of the conversation is a tool's result."""
    items = body.get("messages") or body.get("input") or []
    last = items[-1] if isinstance(items, list) and items else {}
    if last.get("role") == "tool" or last.get("type") in RESULTS:
        return True
    blocks = last.get("content")
    return isinstance(blocks, list) and any(block.get("type") in RESULTS for block in blocks)


def has_tools(body: Mapping[str, Any]) -> bool:
    """Whether the model is given any, by the request or by an item of its input."""
    given = body.get("input")
    items = given if isinstance(given, list) else []
    return bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in items)


def cue(headers: dict[str, str], body: Mapping[str, Any]) -> dict[str, str]:
    """The headers to send on: requests without tools (titles, summaries) play no script."""
    if SCRIPT not in headers:
        return headers
    if is_after_a_tool(body):
        return {**headers, SCRIPT: FINAL}
    if not has_tools(body):
        return {name: value for name, value in headers.items() if name != SCRIPT}
    return headers


class Handler(BaseHTTPRequestHandler):
    """One connection; `upstream` and `exchanges` are set by the class that stage() makes."""

    protocol_version = "HTTP/1.1"
    upstream = ""
    exchanges: list[Exchange]

    def handle(self) -> None:
        # Why: clients go away between requests and in the middle of streams.
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(data) if data else {}
        sent = {name.lower(): value for name, value in self.headers.items()}
        kept = {name: value for name, value in sent.items() if name not in HOP}
        url = self.upstream + self.path
        with httpx.stream(
            self.command, url, content=data, headers=cue(kept, body), timeout=WITHIN_S
        ) as reply:
            ignored = reply.headers.get("x-tokenwire-ignored", "")
            self.exchanges.append(Exchange(self.path, sent, body, reply.status_code, ignored))
            self._pass_on(reply)

    do_GET = do_POST

    def _pass_on(self, reply: httpx.Response) -> None:
        self.send_response(reply.status_code)
        for name, value in reply.headers.items():
            if name not in HOP:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in reply.iter_raw():
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the exchanges are the log."""


@contextmanager
def stage(upstream: str) -> Iterator[Stage]:
    """A proxy on a free loopback port, until this is left."""
    exchanges: list[Exchange] = []
    handler = type("Bound", (Handler,), {"upstream": upstream, "exchanges": exchanges})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield Stage(f"http://127.0.0.1:{proxy.server_address[1]}", exchanges)
        finally:
            proxy.shutdown()
            thread.join()
