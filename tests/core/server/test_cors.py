"""Who may read answers across origins."""

from __future__ import annotations

from tokenwire.core.config import CorsConfig
from tokenwire.core.server.cors import Cors

ASKED = {"origin": "https://a.example", "access-control-request-method": "POST"}


def test_without_origins_nothing_is_said_and_preflights_are_refused():
    cors = Cors(CorsConfig())
    assert cors.extra({"origin": "https://a.example"}) == ()
    reply = cors.preflight("OPTIONS", ASKED, ("POST",))
    assert reply is not None
    assert reply.status == 403


def test_any_origin():
    cors = Cors(CorsConfig(origins=("*",)))
    assert dict(cors.extra({"origin": "https://a.example"}))["access-control-allow-origin"] == "*"
    assert cors.extra({}) == ()


def test_listed_origins_are_echoed_and_vary():
    cors = Cors(CorsConfig(origins=("https://a.example",)))
    extra = dict(cors.extra({"origin": "https://a.example"}))
    assert extra["access-control-allow-origin"] == "https://a.example"
    assert extra["vary"] == "Origin"
    assert cors.extra({"origin": "https://b.example"}) == (("vary", "Origin"),)
    assert cors.extra({}) == (("vary", "Origin"),)


def test_only_preflights_are_preflights():
    cors = Cors(CorsConfig(origins=("*",)))
    assert cors.preflight("POST", ASKED, ("POST",)) is None
    assert cors.preflight("OPTIONS", {"origin": "https://a.example"}, ("POST",)) is None
    assert cors.preflight("OPTIONS", {"access-control-request-method": "POST"}, ()) is None


def test_configured_headers_are_named():
    cors = Cors(CorsConfig(origins=("*",), headers=("authorization", "x-api-key"), max_age=5))
    reply = cors.preflight("OPTIONS", ASKED, ("GET", "POST"))
    assert reply is not None
    assert reply.headers["access-control-allow-headers"] == "authorization, x-api-key"
    assert reply.headers["access-control-allow-methods"] == "GET, POST"
    assert reply.headers["access-control-max-age"] == "5"
