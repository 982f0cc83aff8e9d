"""A stream saved after any id and restored in fresh machines: the same bytes, a small flat blob."""

from __future__ import annotations

import msgspec
import pytest

from tokenwire.core import answer_state
from tokenwire.core.call import Call, Output
from tokenwire.core.decoder import Decoder, DecoderSetup
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.dialogue import Dialogue, Text, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.generation import Generation
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Reply
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.signing import Keyring
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    IdLogprobs,
    TokenDelta,
)
from tokenwire.core.wire import Stamp

ANSWER = (
    "<think>two and\n two 🌊</think>\n\nI will look, ST but not STO yet. "
    '<tool_call>\n{"name": "get_tide", "arguments": {"port": "Bre\\"st", "day": [1, {"a": null}]}}'
    '\n</tool_call>\n<tool_call>\n{"arguments": {}, "name": "list"}\n</tool_call>'
)
STAMP = Stamp("req_1", 1_700_000_000.0, b"e" * 16)
TOOLS = (ToolSpec("get_tide"), ToolSpec("list"))
EOS = Finish(FinishKind.STOP, FinishCause.EOS)
HOST = Host()
SERVICES = lone_services()
TOKENIZER = HOST.tokenizers.build("bytes", {}, SERVICES)
PIECES = PieceTable(TOKENIZER)
MAKER = HOST.parsers.build("hermes", {}, SERVICES)


def machines(protocol: str, logprobs: bool) -> tuple[Generation, Reply]:
    call = Call(
        "m",
        Dialogue((Turn("user", (Text("hi"),)),), tools=TOOLS),
        output=Output(stream=True, logprobs=1 if logprobs else None),
    )
    setup = DecoderSetup(tokenizer=TOKENIZER, pieces=PIECES, stops=("STOP",), logprobs=logprobs)
    parser = MAKER.parser(ParserSetup(tools=TOOLS))
    reply = HOST.codecs.build(protocol, {}, SERVICES).reply(call, STAMP)
    return Generation([Decoder(setup, 0, parser)], "fp"), reply


def deltas(logprobs: bool) -> list[TokenDelta]:
    ids = TOKENIZER.encode(ANSWER)
    each = [
        TokenDelta(
            "j",
            at=at,
            ids=TokenIds((id,)),
            counts=Counts(prompt=3) if at == 0 else None,
            logprobs=(IdLogprobs(id, -0.5),) if logprobs else (),
        )
        for at, id in enumerate(ids)
    ]
    return [*each, TokenDelta("j", at=len(ids), finish=EOS)]


def play(generation: Generation, reply: Reply, delta: TokenDelta) -> bytes:
    return b"".join(reply.push(event) for event in generation.push(delta))


@pytest.mark.parametrize("protocol", ["chat_completions", "messages"])
@pytest.mark.parametrize("logprobs", [False, True])
def test_the_same_bytes_after_a_save_at_every_id(protocol: str, logprobs: bool) -> None:
    stream = deltas(logprobs)
    generation, reply = machines(protocol, logprobs)
    expected = [play(generation, reply, delta) for delta in stream]
    generation, reply = machines(protocol, logprobs)
    for delta, bytes_ in zip(stream, expected, strict=True):
        assert play(generation, reply, delta) == bytes_
        blob = answer_state.save(generation, reply, "fp")
        # Why twice: the header of an unfinished call may still turn out to be text, and then the
        # log probabilities of its ids (here one a byte) are sent.
        assert len(blob) < (2048 if logprobs else 1024)
        generation, reply = machines(protocol, logprobs)
        answer_state.restore(blob, generation, reply, "fp")


def test_the_blob_is_flat_in_the_length_of_the_answer() -> None:
    def size(words: int) -> int:
        generation, reply = machines("messages", False)
        ids = TOKENIZER.encode("word " * words)
        for at, id in enumerate(ids):
            play(generation, reply, TokenDelta("j", at=at, ids=TokenIds((id,)), counts=Counts(1)))
        return len(answer_state.save(generation, reply, "fp"))

    assert size(400) <= size(4) + 24


def test_a_blob_from_outside_must_be_ours() -> None:
    keys, others = Keyring([b"a" * 16]), Keyring([b"b" * 16])
    generation, reply = machines("messages", False)
    blob = answer_state.save(generation, reply, "fp")
    assert answer_state.unseal(answer_state.seal(blob, keys), keys) == blob
    sealed = answer_state.seal(blob, others)
    tampered = answer_state.seal(blob, keys)[:-1] + b"x"
    for bad in (sealed, tampered, b"", b"\xc1", blob, msgspec.msgpack.encode([blob, "x"])):
        with pytest.raises(RequestError) as refused:
            answer_state.unseal(bad, keys)
        assert refused.value.status == 400


def test_a_blob_of_another_render_call_or_version_is_refused() -> None:
    generation, reply = machines("messages", False)
    blob = answer_state.save(generation, reply, "fp")
    for bad, fingerprint in (
        (blob, "another"),
        (b"junk", "fp"),
        (msgspec.msgpack.encode([9, "fp", None, None]), "fp"),
        (msgspec.msgpack.encode([1, "fp", None, None]), "fp"),
        (msgspec.msgpack.encode([1, "fp", generation.save(), [1, 2]]), "fp"),
    ):
        with pytest.raises(RequestError):
            answer_state.restore(bad, *machines("messages", False), fingerprint)
