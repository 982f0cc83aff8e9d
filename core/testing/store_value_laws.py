"""The store port's laws about values, one function each; its name is the law's. Knows no store.

From plain to subtle, so that a broken store is named by the plainest law that it breaks.
"""

from __future__ import annotations

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Incr
from tokenwire.core.testing.store_probe import StoreProbe

__all__ = ("LATER_S", "LONG_S", "SHORT_S", "VALUES")

SHORT_S = 0.2
LATER_S = 0.3
LONG_S = 600.0
"""Far enough away that a slow machine does not reach it."""

BINARY = (b"", b"\0", b"\xff\xfe", b"text", bytes(range(256)), b"x" * 300_000)

ODD_KEYS = (
    "", " ", "a", "A", ":", "::", "a:b", "a:b:c", "\0", "a\0b", "\r\n", "*", "?", "[a]", "\\", "%s",
    "{a}", "'", '"', "../a", "é", "e\u0301", "日本語", "\U0001f600", "\u200b", "0", "-1",
    "k" * 2000,
)  # fmt: skip


async def missing_key(probe: StoreProbe) -> None:
    """A key that nobody set: get None, delete False, keys ()."""
    async with probe.open() as store:
        space = probe.space()
        probe.equal("get", await store.get(space, "absent"), None)
        probe.equal("delete", await store.delete(space, "absent"), False)
        probe.equal("keys", await store.keys(space), ())


async def binary_values(probe: StoreProbe) -> None:
    """A value comes back byte for byte; setting replaces it."""
    async with probe.open() as store:
        space = probe.space()
        for value in BINARY:
            await store.set(space, "value", value)
            probe.equal(
                f"get after set of {len(value)} bytes", await store.get(space, "value"), value
            )


async def delete(probe: StoreProbe) -> None:
    """True the first time, False after, and the key is gone."""
    async with probe.open() as store:
        space = probe.space()
        await store.set(space, "key", b"value")
        probe.equal("first delete", await store.delete(space, "key"), True)
        probe.equal("second delete", await store.delete(space, "key"), False)
        probe.equal("get after delete", await store.get(space, "key"), None)
        probe.equal("keys after delete", await store.keys(space), ())


async def expiry(probe: StoreProbe) -> None:
    """A value lives until its TTL and not beyond; with a TTL of zero or less it is gone at once."""
    async with probe.open() as store:
        space = probe.space()
        await store.set(space, "long", b"value", ttl_s=LONG_S)
        await store.set(space, "short", b"value", ttl_s=SHORT_S)
        await store.set(space, "gone", b"value")
        await store.set(space, "gone", b"value", ttl_s=0)
        probe.equal("get after set with ttl_s=0", await store.get(space, "gone"), None)
        probe.equal("get long before the TTL", await store.get(space, "long"), b"value")
        await probe.advance(LATER_S)
        probe.equal("get after the TTL", await store.get(space, "short"), None)
        probe.equal("delete after the TTL", await store.delete(space, "short"), False)
        probe.equal("keys after the TTL", await store.keys(space), ("long",))


async def overwrite_replaces_ttl(probe: StoreProbe) -> None:
    """A second set brings its own TTL, or none."""
    async with probe.open() as store:
        space = probe.space()
        await store.set(space, "kept", b"first", ttl_s=SHORT_S)
        await store.set(space, "kept", b"second")
        await store.set(space, "lost", b"first")
        await store.set(space, "lost", b"second", ttl_s=SHORT_S)
        await probe.advance(LATER_S)
        probe.equal("get after set without TTL", await store.get(space, "kept"), b"second")
        probe.equal("get after set with a TTL", await store.get(space, "lost"), None)


async def odd_keys(probe: StoreProbe) -> None:
    """Any text is a key, and no two are the same one."""
    async with probe.open() as store:
        space = probe.space()
        for number, key in enumerate(ODD_KEYS):
            await store.set(space, key, b"%d" % number)
        for number, key in enumerate(ODD_KEYS):
            probe.equal(f"get of the key {key[:20]!r}", await store.get(space, key), b"%d" % number)
        probe.equal("keys", sorted(await store.keys(space)), sorted(ODD_KEYS))


async def namespaces_apart(probe: StoreProbe) -> None:
    """Namespaces never see each other, whatever their names and keys look like."""
    async with probe.open() as store:
        stem = probe.space()
        spaces = tuple(stem + end for end in ("", ":", ":1", "*", "?", ":1:", "\0", "\\", "[1]"))
        keys = ("1", ":1", "1:1", "", ":", "*")
        for space in spaces:
            for key in keys:
                await store.set(space, key, f"{space}|{key}".encode())
        for space in spaces:
            probe.equal(f"keys of {space!r}", sorted(await store.keys(space)), sorted(keys))
            for key in keys:
                wanted = f"{space}|{key}".encode()
                probe.equal(f"get of ({space!r}, {key!r})", await store.get(space, key), wanted)
        await store.delete(spaces[0], "1")
        probe.equal("keys of a neighbour", len(await store.keys(spaces[1])), len(keys))


async def reopen(probe: StoreProbe) -> None:
    """Where durability is "shared", another store of the same kind sees what this one set."""
    async with probe.open() as first:
        space = probe.space()
        await first.set(space, "key", b"value")
        await first.apply(Incr(), space, "count")
        if first.durability == "shared":
            async with probe.open() as second:
                probe.equal("get by another", await second.get(space, "key"), b"value")
                probe.equal("incr by another", await second.apply(Incr(), space, "count"), 2)
    if first.durability == "shared":
        async with probe.open() as third:
            probe.equal("get after close and open", await third.get(space, "key"), b"value")


async def close_twice(probe: StoreProbe) -> None:
    """The second close does nothing; what is called after it is answered or StoreError."""
    async with probe.open() as store:
        space = probe.space()
        await store.set(space, "key", b"value")
        await store.close()
        await store.close()
        try:
            await store.get(space, "key")
            await store.apply(Incr(), space, "count")
        except StoreError:
            pass
        await store.close()


VALUES = (
    missing_key,
    binary_values,
    delete,
    expiry,
    overwrite_replaces_ttl,
    odd_keys,
    namespaces_apart,
    reopen,
    close_twice,
)
