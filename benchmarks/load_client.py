"""A lean HTTP/1.1 client for benchmarks: raw asyncio protocols, no library, nothing per byte.

Knows just enough of chat completions to ask, and of SSE to count events.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

END = b"0\r\n\r\n"


@dataclass
class Answer:
    """One request's answer. Times in seconds from when it was sent."""

    status: int = 0
    body: bytes = b""
    events: int = 0
    writes: int = 0
    first_s: float = 0.0
    total_s: float = 0.0


@dataclass
class Load:
    """What a run of requests gave."""

    answers: list[Answer] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def events(self) -> int:
        return sum(answer.events for answer in self.answers)


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionError(f"lost in mid-answer: {self._head!r}"))

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None
        self._head, self._tail, self._parts = b"", b"", []
        self._left = -1  # Of a body with a length; -1: chunked.
        self._answer = Answer()
        self._sent = time.perf_counter()
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._done

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if not answer.status:
            self._head += data
            head, separator, data = self._head.partition(b"\r\n\r\n")
            if not separator:
                return
            answer.status = int(head[9:12])
            answer.first_s = time.perf_counter() - self._sent
            length = head.lower().partition(b"content-length:")[2]
            self._left = int(length.split(b"\r\n")[0]) if length else -1
        answer.writes += 1
        if self._left < 0:
            # Events never span a cut of more than this tail.
            answer.events += (self._tail + data).count(b"data: ") - self._tail.count(b"data: ")
            self._tail = (self._tail + data)[-8:]
            if self._tail.endswith(END):
                self._finish()
            return
        self._parts.append(data)
        self._left -= len(data)
        if self._left <= 0:
            answer.body = b"".join(self._parts)
            self._finish()

    def _finish(self) -> None:
        self._answer.total_s = time.perf_counter() - self._sent
        assert self._done is not None
        self._done.set_result(self._answer)


def chat(host: str, prompt: str, model: str, *, tokens: int, stream: bool) -> bytes:
    """A whole request for one answer of exactly `tokens` tokens."""
    body = json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": tokens,
            "temperature": 0.5,
            "stream": stream,
        }
    ).encode()
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def run(host: str, port: int, requests: list[bytes], connections: int) -> Load:
    """All requests over that many connections. Raises when one does not get its 200."""
    load = Load()
    waiting = iter(requests)
    began = time.perf_counter()
    await asyncio.gather(*(_worker(host, port, waiting, load) for _ in range(connections)))
    load.wall_s = time.perf_counter() - began
    return load


async def _worker(host: str, port: int, waiting: Iterator[bytes], load: Load) -> None:
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(Connection, host, port)
    for request in waiting:
        answer = await connection.ask(request)
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {answer.body[:500]!r}")
        load.answers.append(answer)
    transport.close()
