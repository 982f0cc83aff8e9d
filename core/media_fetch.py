"""Media by URL, fetched under limits: http and https, public addresses, bounded in bytes and time.

An address is looked up once, checked, and connected to as it was checked, so that a name cannot
mean another machine the second time. Redirects are followed by hand, each checked alike.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final, final

from tokenwire.core.config import MediaConfig
from tokenwire.core.errors import RequestError

if TYPE_CHECKING:
    import httpx

__all__ = ("MediaFetcher",)

REDIRECTS: Final = (301, 302, 303, 307, 308)
AT_ONCE: Final = 4
LONGEST_ECHO: Final = 200
NAT64: Final = ip_network("64:ff9b::/96")
"""Its last 32 bits are the IPv4 address that is reached (RFC 6052)."""
INWARD: Final = tuple(
    ip_network(prefix)
    for prefix in ("::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10")
)
"""IPv6 that ipaddress takes as global, though it may lead to a private network: compatible with
IPv4, translated locally, Teredo, 6to4 and site-local."""


@final
class MediaFetcher:
    """Made once a server; connections are not kept."""

    def __init__(self, limits: MediaConfig) -> None:
        self._limits = limits

    async def fetch(self, urls: Iterable[str]) -> Mapping[str, bytes]:
        """Each URL's bytes. Raises RequestError that names the first that could not be had."""
        wanted = list(dict.fromkeys(urls))
        if not wanted:
            return {}
        limits = self._limits
        if not limits.fetch:
            raise _refused(wanted[0], "this server fetches nothing: send the bytes themselves")
        if len(wanted) > limits.max_files:
            raise _refused(
                wanted[limits.max_files], f"a request may name at most {limits.max_files} files"
            )
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(url: str) -> bytes:
            async with gate:
                return await self._timed(url)

        tasks = [asyncio.ensure_future(one(url)) for url in wanted]
        try:
            found = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return dict(zip(wanted, found, strict=True))

    async def _timed(self, url: str) -> bytes:
        import httpx  # Why here: few servers ever fetch, and it costs a tenth of the start.

        try:
            async with asyncio.timeout(self._limits.timeout):
                return await self._followed(url)
        except TimeoutError:
            raise _refused(url, f"it took longer than {self._limits.timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError, ValueError) as error:
            raise _refused(url, f"the request failed ({type(error).__name__})") from None

    async def _followed(self, url: str) -> bytes:
        import httpx

        at = httpx.URL(url)
        async with httpx.AsyncClient(trust_env=False, timeout=self._limits.timeout) as client:
            for _ in range(self._limits.redirects + 1):
                # Why identity: what is compressed has no bound until it is unpacked.
                headers = {"accept": "*/*", "accept-encoding": "identity"}
                request = client.build_request("GET", at, headers=headers)
                address = await self._address(url, at)
                # Why: the connection goes to the address that was checked; certificates are still
                # checked against the name.
                request.extensions["sni_hostname"] = at.host
                request.url = at.copy_with(host=address)
                response = await client.send(request, stream=True)
                try:
                    if response.status_code in REDIRECTS and "location" in response.headers:
                        at = at.join(response.headers["location"])
                        continue
                    if response.status_code != httpx.codes.OK:
                        raise _refused(url, f"its server answered {response.status_code}")
                    return await self._read(url, response)
                finally:
                    await response.aclose()
        raise _refused(url, f"it redirects more than {self._limits.redirects} times")

    async def _address(self, url: str, at: httpx.URL) -> str:
        """Of the host, checked."""
        if at.scheme not in ("http", "https") or not at.host:
            raise _refused(url, "only http and https are fetched")
        port = at.port or (443 if at.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(at.host, port, type=socket.SOCK_STREAM)
        addresses = [str(place[0]) for *_, place in found]
        for address in addresses:
            if not self._limits.private and not _is_public(address):
                raise _refused(url, "its host has a private address")
        if not addresses:
            raise _refused(url, "its host has no address")
        return addresses[0]

    async def _read(self, url: str, response: httpx.Response) -> bytes:
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise _refused(url, "it is sent compressed, which was not asked for")
        data = bytearray()
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self._limits.max_bytes:
                raise _refused(url, f"it has more than {self._limits.max_bytes} bytes")
        return bytes(data)


def _is_public(address: str) -> bool:
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if any(ip in network for network in INWARD):
            return False
        if ip in NAT64:
            ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.is_global and not ip.is_multicast


def _refused(url: str, reason: str) -> RequestError:
    return RequestError(
        f"{url[:LONGEST_ECHO]!r} could not be fetched: {reason}",
        param="messages",
        code="media_not_fetched",
    )
