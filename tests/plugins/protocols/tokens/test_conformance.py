"""The codec kit over the codecs of the token routes; what they say is in tests/flow."""

from __future__ import annotations

import pytest

from tokenwire.core.call import Call, ListModels, Output, RawPrompt, Sampling, Stopping
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.host import Host
from tokenwire.core.queries import (
    Detokenize,
    ForeignRequest,
    Parse,
    ParseOptions,
    Render,
    Tokenize,
)
from tokenwire.core.testing.codec_kit import conform, run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols import tokens
from tokenwire.plugins.protocols.tokens.detokenize import DetokenizeCodec
from tokenwire.plugins.protocols.tokens.generate import NO_DIALOGUE, GenerateCodec
from tokenwire.plugins.protocols.tokens.parse import ParseCodec
from tokenwire.plugins.protocols.tokens.render import RenderCodec
from tokenwire.plugins.protocols.tokens.tokenize import TokenizeCodec

CHAT = b'{"model":"m","messages":[]}'
IDS = Call(
    "m",
    NO_DIALOGUE,
    sampling=Sampling(seed=1, logit_bias={3: 1.0}),
    stopping=Stopping(max_tokens=5, sequences=((1, 2),)),
    output=Output(n=2, ids=True, logprobs=0, stream=True),
    prompts=(RawPrompt(ids=(1, 2)),),
)
TOOLS = (
    b'{"text":"a","tools":[{"type":"function","function":{"name":"f","parameters":{"a":1}}},'
    b'{"name":"g","input_schema":true},{"type":"custom","custom":{"name":"h"}}]}'
)
SPECS = (ToolSpec("f", None, '{"a":1}'), ToolSpec("g", None, "true"), ToolSpec("h", custom=True))

EXAMPLES = (
    (
        TokenizeCodec(),
        {
            b'{"model":"m","prompt":"a","add_special_tokens":false}': Tokenize(
                model="m", text="a", add_special=False
            ),
            CHAT: Tokenize(request=ForeignRequest("chat_completions", CHAT)),
            b'{"request":{"protocol":"messages","body":{}},"return_token_strs":true}': Tokenize(
                request=ForeignRequest("messages", b"{}"), spell=True
            ),
        },
    ),
    (DetokenizeCodec(), {b'{"tokens":[1,2]}': Detokenize((1, 2))}),
    (
        RenderCodec(),
        {
            b'{"protocol":"responses","body":{"a":1}}': Render(
                ForeignRequest("responses", b'{"a":1}')
            ),
            CHAT: Render(ForeignRequest("chat_completions", CHAT)),
            b'{"prompt":1}': Render(ForeignRequest("completions", b'{"prompt":1}')),
            b'{"input":1}': Render(ForeignRequest("responses", b'{"input":1}')),
        },
    ),
    (
        ParseCodec(),
        {
            b'{"ids":[1],"incremental":true}': Parse(
                ids=(1,), options=ParseOptions(parse_tools=False), finish=None
            ),
            b'{"state":"AAAA","ids":[1]}': Parse(ids=(1,), state=b"\0\0\0", finish=None),
            TOOLS: Parse(text="a", options=ParseOptions(tools=SPECS)),
        },
    ),
    (
        GenerateCodec(),
        {
            b'{"model":"m","prompt":[1,2],"n":2,"logprobs":0,"stream":true,"sampling":{"seed":1,'
            b'"logit_bias":{"3":1}},"stopping":{"max_tokens":5,"sequences":[[1,2]]}}': IDS
        },
    ),
)
READING = {
    "faithful stream",
    "unary equals streamed",
    "any cut of the bytes",
    "declared losses only",
    "failure ends the wire",
}
"""Laws of a wire that carries text."""
LAWS = (
    "sans-IO",
    "examples",
    "total decode",
    "every error kind",
    "deterministic",
    "isolation",
    "nothing after the end",
    "saved state",
)


@pytest.mark.parametrize(
    ("codec", "examples"), EXAMPLES, ids=lambda value: getattr(value, "name", "")
)
def test_conforms(codec, examples):
    run_codec_kit(codec, examples, laws=LAWS)


@pytest.mark.parametrize("codec", [codec for codec, _ in EXAMPLES], ids=lambda codec: codec.name)
def test_conforms_by_name(codec):
    laws = conform(Host({"tokens": tokens}, entry_points=False), codec.name)
    assert not READING & set(laws)


@pytest.mark.parametrize(
    "codec", [codec for codec, _ in EXAMPLES if codec.name != "generate"], ids=lambda c: c.name
)
def test_they_answer_their_own_queries_alone(codec):
    with pytest.raises(TypeError, match="is not answered by"):
        codec.answer(ListModels(), ())


def test_headers_go_with_a_request_inside():
    asked = HttpRequest("POST", "/render", {"anthropic-version": "1"}, body=CHAT)
    wanted = Render(ForeignRequest("messages", CHAT, {"anthropic-version": "1"}))
    assert RenderCodec().decode(asked) == wanted
