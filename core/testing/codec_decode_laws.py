"""The codec's laws about requests and errors, and about what its modules import. Knows no codec."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.call import Call, Query
from tokenwire.core.errors import CallError, ErrorKind, RequestError, ServiceError
from tokenwire.core.testing.codec_probe import CodecProbe, Law
from tokenwire.core.testing.imports import impurities
from tokenwire.core.testing.strategies import sample
from tokenwire.core.wire import HttpReply, HttpRequest

__all__ = ("DECODE_LAWS",)

FIRST_OF_OURS: Final = 500
NESTED: Final = b"[" * 100_000
ODD: Final[tuple[object, ...]] = (
    None, True, -1, 0, 1.5, 1e300, 2**70, "", "x", "\x00", [], {}, [None], [[]], [{}], {"": None},
)  # fmt: skip


def sans_io(probe: CodecProbe) -> None:
    kinds: list[type] = [type(probe.codec)]
    if probe.gives_calls:
        for stream in (False, True):
            output = replace(probe.call.output, stream=stream)
            kinds.append(type(probe.reply(replace(probe.call, output=output))))
    modules = {base.__module__ for kind in kinds for base in kind.__mro__}
    found = sorted(impurities(module for module in modules if module != "builtins"))
    if found:
        probe.broken("; ".join(found))


def examples(probe: CodecProbe) -> None:
    for example in probe.examples:
        before = deepcopy(example.request)
        for attempt in ("first", "second"):
            got = probe.codec.decode(example.request)
            if got != example.asked:
                probe.broken(
                    f"{example.request.body[:200]!r} the {attempt} time\n  wanted:"
                    f" {example.asked}\n  got:    {got}"
                )
        if example.request != before:
            probe.broken("decode changed the request it was given")


def total_decode(probe: CodecProbe) -> None:
    for request in _odd_requests(probe):
        try:
            got = probe.codec.decode(request)
        except RequestError as error:
            _check_reply(probe, probe.codec.encode_error(error, "req_kit"), error)
        except Exception as error:
            probe.broken(f"{request.body[:200]!r} raised {type(error).__name__}: {error}")
        else:
            if not isinstance(got, Call | Query):
                probe.broken(f"{request.body[:200]!r} gave {got!r}")


def every_error_kind(probe: CodecProbe) -> None:
    message = 'said "so"\u2028'
    for kind in ErrorKind:
        error: CallError
        if kind.status < FIRST_OF_OURS:
            error = RequestError(message, kind=kind, param="a.b", code="c", retry_after=1.5)
        else:
            error = ServiceError(kind, message, retry_after=1.5)
        reply = probe.codec.encode_error(error, "req_kit")
        _check_reply(probe, reply, error)
        if (reply.status < FIRST_OF_OURS) != (kind.status < FIRST_OF_OURS):
            probe.broken(f"{kind} has status {reply.status}: it blames the wrong side")
        names = {name.lower() for name in reply.headers}
        if "retry-after" not in names:
            probe.broken(f"{kind} with retry_after has no Retry-After header")


def _check_reply(probe: CodecProbe, reply: HttpReply, error: CallError) -> None:
    if not 400 <= reply.status <= 599:
        probe.broken(f"{error.kind} has status {reply.status}, wanted 4xx or 5xx")
    if not reply.body or not reply.content_type:
        probe.broken(f"{error.kind} has no body or no content type")
    said = json.dumps(error.message).strip('"')
    raw = json.dumps(error.message, ensure_ascii=False).strip('"')
    body = reply.body.decode()
    if not any(spelling in body for spelling in (error.message, said, raw)):
        probe.broken(f"the body of {error.kind} does not say {error.message!r}: {body}")


def _odd_requests(probe: CodecProbe) -> Iterator[HttpRequest]:
    route = probe.codec.routes[0]
    requests = [example.request for example in probe.examples]
    for request in requests or [HttpRequest(route.method, route.path)]:
        yield replace(request, headers={}, query="%ff=%00&&=&limit=x&limit=-1")
        for body in _odd_bodies(request.body, probe.count):
            yield replace(request, body=body)


def _odd_bodies(body: bytes, count: int) -> Iterator[bytes]:
    yield from (b"", b"null", b"[]", b'"', b"\xff\xfe", b"\xef\xbb\xbf" + body, body + b"x", NESTED)
    yield from sample(st.binary(max_size=24), count)
    step = max(1, len(body) // count)
    yield from (body[:end] for end in range(0, len(body), step))
    for at, byte in sample(st.tuples(st.integers(0, len(body)), st.binary(max_size=2)), count):
        yield body[:at] + byte + body[at + 1 :]
    try:
        value = json.loads(body)
    except ValueError:
        return
    yield from (json.dumps(odd).encode() for odd in _mutated(value))
    yield body.replace(b":", b":" + NESTED, 1)
    yield body.replace(b'"', b'"\\ud800', 1)


def _mutated(value: object) -> Iterator[object]:
    """`value` with each part of it replaced by each odd thing, and with each key left out."""
    yield from ODD
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: kept for name, kept in value.items() if name != key}
            yield value | {key + "?": item}
            yield from (value | {key: odd} for odd in _mutated(item))
    elif isinstance(value, list):
        yield value + value
        for k, item in enumerate(value):
            yield from ([*value[:k], odd, *value[k + 1 :]] for odd in _mutated(item))


DECODE_LAWS: Final = (
    Law("sans-IO", sans_io),
    Law("examples", examples),
    Law("total decode", total_decode),
    Law("every error kind", every_error_kind),
)
