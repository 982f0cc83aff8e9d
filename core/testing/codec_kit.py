"""The codec kit: every law of the codec port, as a named check that any codec can be put through.

    def test_conforms():
        run_codec_kit(codec, {b'{"model":"m","say":"hi"}': HELLO}, read)

`codec` is the codec as the host has it. The examples are bodies (for the codec's first route; or
whole HttpRequests, in pairs) and the Call or Query that each must become. `read(call, chunks)` is
the author's reader of the wire: the events of a whole reply to `call`, from its bytes cut anyhow. A
codec with a `client` needs none, nor does one that gives queries only.

`conform` needs that client for examples and reader; without one it checks what needs neither.
Knows no codec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, cast

from tokenwire.core.call import Call, Query
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.events import Event
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.testing.codec_decode_laws import DECODE_LAWS
from tokenwire.core.testing.codec_probe import STAMP, CodecProbe, Example, Law, Read, reading
from tokenwire.core.testing.codec_reply_laws import REPLY_LAWS
from tokenwire.core.testing.laws import run_laws
from tokenwire.core.testing.strategies import Shape
from tokenwire.core.wire import HttpRequest

__all__ = ("LAWS", "conform", "run_codec_kit")

HELLO: Final = Call("m", Dialogue((Turn("user", (Text("hi"),)),)))

_ALL: tuple[Law, ...] = (*DECODE_LAWS, *REPLY_LAWS)

LAWS: tuple[str, ...] = tuple(law.name for law in _ALL)
"""Their names, in the order in which they are checked."""


def run_codec_kit(
    codec: Codec,
    examples: Mapping[bytes, Call | Query] | Iterable[tuple[HttpRequest, Call | Query]],
    read: Read | None = None,
    *,
    laws: Iterable[str] = LAWS,
    streams: int = 40,
) -> tuple[str, ...]:
    """The laws that hold; those about replies are left out where no example is a call.

    Raises LawBroken for the first that does not. `streams`: how many answers, and how many broken
    bodies an example, are tried; the same ones at every run.
    """
    client = codec.client()
    if read is None and client is not None:
        read = reading(client)
    if isinstance(examples, Mapping):
        route = codec.routes[0]
        examples = [
            (HttpRequest(route.method, route.path, body=body), asked)
            for body, asked in cast("Mapping[bytes, Call | Query]", examples).items()
        ]
    pairs = tuple(Example(request, asked) for request, asked in examples)
    call = next((pair.asked for pair in pairs if isinstance(pair.asked, Call)), None)
    return _run(codec, pairs, read, call, wanted=frozenset(laws), streams=streams)


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed codec with its default settings; the laws that hold."""
    codec = host.codecs.build(name, {}, lone_services(), f"codec.{name}")
    client = codec.client()
    read = None if client is None else reading(client)
    call = HELLO if _gives_calls(codec) else None
    examples: tuple[Example, ...] = ()
    if client is not None:
        # Why: a wire may have to say more than HELLO does; what it reads there must come back.
        asked = codec.decode(client.request(HELLO))
        if isinstance(asked, Call):
            examples, call = (Example(client.request(asked), asked),), asked
    laws = {law.name for law in _ALL if read is not None or not law.needs_read}
    if not examples:
        laws.remove("examples")
    return _run(codec, examples, read, call, wanted=laws, streams=40)


def _run(
    codec: Codec,
    examples: tuple[Example, ...],
    read: Read | None,
    call: Call | None,
    *,
    wanted: Set[str],
    streams: int,
) -> tuple[str, ...]:
    drawn: dict[Shape, list[list[Event]]] = {}

    def probe(law: str) -> CodecProbe:
        return CodecProbe(codec, examples, read, call=call, count=streams, drawn=drawn, law=law)

    laws = [law for law in _ALL if law.name in wanted and (call is not None or not law.needs_reply)]
    return run_laws([law.name for law in laws], {law.name: law.check for law in laws}, probe)


def _gives_calls(codec: Codec) -> bool:
    try:
        codec.reply(HELLO, STAMP)
    except NotImplementedError:
        return False
    return True
