"""What is fetched and what is refused, from servers on loopback."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from msgspec.structs import replace

from tokenwire.core.config import MediaConfig
from tokenwire.core.errors import RequestError
from tokenwire.core.media_fetch import MediaFetcher

OPEN = MediaConfig(private=True, timeout=5.0, max_bytes=1000, redirects=2, max_files=3)


def reply(body: bytes, *, status: str = "200 OK", head: str = "") -> bytes:
    return (f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{head}\r\n").encode() + body


class Server:
    """Answers by path; what it was asked is kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.replies: dict[str, bytes] = {}
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1]
        self.asked.append(head)
        if path == "/silent":
            await reader.read()
        writer.write(self.replies.get(path, reply(b"", status="404 Not Found")))
        writer.close()

    def url(self, path: str) -> str:
        return f"http://localhost:{self.port}{path}"


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    made = Server()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


@contextmanager
def refused(reason: str) -> Iterator[None]:
    with pytest.raises(RequestError, match=reason) as caught:
        yield
    assert caught.value.code == "media_not_fetched"


async def get(limits: MediaConfig, *urls: str) -> list[bytes]:
    return list((await MediaFetcher(limits).fetch(urls)).values())


def test_bytes_come_as_they_are_each_url_once_and_under_its_own_name() -> None:
    async def go() -> None:
        async with serving() as server:
            server.replies["/a"] = reply(b"\x89PNG\x00")
            server.replies["/b?q=1"] = reply(b"b")
            urls = [server.url(path) for path in ("/a", "/b?q=1", "/a")]
            assert await get(OPEN, *urls) == [b"\x89PNG\x00", b"b"]
            assert len(server.asked) == 2
            assert f"localhost:{server.port}" in server.asked[0].lower()

    asyncio.run(go())


def test_redirects_are_followed_and_bounded() -> None:
    async def go() -> None:
        async with serving() as server:
            server.replies["/a"] = reply(b"a")
            server.replies["/1"] = reply(b"", status="302 Found", head="location: /a\r\n")
            server.replies["/2"] = reply(b"", status="307 T", head="location: /1\r\n")
            server.replies["/3"] = reply(b"", status="301 M", head="location: /2\r\n")
            assert await get(OPEN, server.url("/2")) == [b"a"]
            with refused("redirects more than 2 times"):
                await get(OPEN, server.url("/3"))

    asyncio.run(go())


def test_size_number_status_and_time_are_bounded() -> None:
    async def go() -> None:
        async with serving() as server:
            server.replies["/big"] = reply(b"x" * 1001)
            with refused("more than 1000 bytes"):
                await get(OPEN, server.url("/big"))
            with refused("answered 404"):
                await get(OPEN, server.url("/none"))
            with refused("at most 3 files"):
                await get(OPEN, *(server.url(f"/{k}") for k in range(4)))
            with refused(r"took longer than 0\.05 s"):
                await get(replace(OPEN, timeout=0.05), server.url("/silent"))

    asyncio.run(go())


def test_private_addresses_and_other_schemes_are_refused() -> None:
    async def go() -> None:
        async with serving() as server:
            closed = replace(OPEN, private=False)
            for host in ("127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.1.1"):
                with refused("private address"):
                    await get(closed, f"http://{host}:{server.port}/a")
            away = "location: file:///etc/passwd\r\n"
            server.replies["/away"] = reply(b"", status="302 Found", head=away)
            for url in ("ftp://localhost/a", "file:///etc/passwd", server.url("/away")):
                with refused("only http and https"):
                    await get(OPEN, url)
            with refused("fetches nothing"):
                await get(replace(OPEN, fetch=False), server.url("/a"))
            assert len(server.asked) == 1

    asyncio.run(go())


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "0x7f.1",
        "2130706433",
        "224.0.0.1",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[2001:0:7f00:1::]",
        "[2002:7f00:1::]",
        "[fec0::1]",
        "[fe80::1]",
        "[ff02::1]",
    ],
)
def test_no_spelling_of_an_inner_address_is_connected_to(host: str) -> None:
    with refused("private address|request failed"):
        asyncio.run(get(replace(OPEN, private=False), f"http://{host}:9/a"))


def test_what_is_compressed_is_refused_before_it_is_unpacked() -> None:
    async def go() -> None:
        async with serving() as server:
            bomb = zlib.compress(bytes(900_000))
            server.replies["/bomb"] = reply(bomb, head="content-encoding: deflate\r\n")
            server.replies["/plain"] = reply(b"x", head="content-encoding: identity\r\n")
            with refused("sent compressed"):
                await get(OPEN, server.url("/bomb"))
            assert await get(OPEN, server.url("/plain")) == [b"x"]
            assert "accept-encoding: identity" in server.asked[0].lower()

    asyncio.run(go())


@pytest.mark.parametrize(
    "url", ["http://", "http://[", "http://a b/", "http://%zz/", "http://\x00"]
)
def test_whatever_the_url_it_is_refused_in_words(url: str) -> None:
    with refused("could not be fetched"):
        asyncio.run(get(OPEN, url))


def test_nothing_is_fetched_for_nothing() -> None:
    assert asyncio.run(get(replace(OPEN, fetch=False))) == []
