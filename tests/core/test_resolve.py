"""Endpoints by name."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.resolve import Endpoint, addresses, parse_internal


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("internal://redis-svc:6379", Endpoint("redis-svc", 6379)),
        ("internal://redis.ns.svc.cluster.local:1/", Endpoint("redis.ns.svc.cluster.local", 1)),
        ("internal://[::1]:65535", Endpoint("::1", 65535)),
        ("internal://10.0.0.1:80", Endpoint("10.0.0.1", 80)),
    ],
)
def test_a_name_and_a_port(text, wanted):
    assert parse_internal(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "internal://",
        "internal://a",
        "internal://a:",
        "internal://a:0",
        "internal://a:65536",
        "internal://a:b",
        "internal://a:1/x",
        "internal://u@a:1",
        "internal://::1:80",
        "http://a:1",
        " internal://a:1",
        "internal://a:1\n",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="wanted internal://name:port"):
        parse_internal(text)


def test_an_endpoint_prints_as_urls_want_it():
    assert str(Endpoint("a", 1)) == "a:1"
    assert str(Endpoint("::1", 1)) == "[::1]:1"


def test_addresses_come_without_repeats():
    found = asyncio.run(addresses(Endpoint("127.0.0.1", 80)))
    assert found == (Endpoint("127.0.0.1", 80),)
