"""The Embeddings codec: the kit, what a body may be, and what its client reads."""

from __future__ import annotations

import json
import struct
from base64 import b64decode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.call import Call, Embed, Embedded, Hints, Identity, ListModels, RawPrompt
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.events import Failed, PartDelta
from tokenwire.core.host import Host
from tokenwire.core.testing.codec_kit import conform, run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols import embeddings
from tokenwire.plugins.protocols.embeddings.codec import EmbeddingsCodec, Packed
from tokenwire.plugins.protocols.embeddings.schema import KNOWN

CODEC = EmbeddingsCodec()
EXAMPLES = {
    b'{"model":"m","input":"a"}': Embed("m", (RawPrompt("a"),)),
    b'{"input":["a","b"],"encoding_format":"float"}': Embed("", (RawPrompt("a"), RawPrompt("b"))),
    b'{"input":[1,2],"dimensions":3,"user":"u"}': Embed(
        "", (RawPrompt(ids=(1, 2)),), dimensions=3, identity=Identity(user="u")
    ),
    b'{"input":[[1],[2,3]],"truncate_prompt_tokens":-1,"priority":2}': Embed(
        "",
        (RawPrompt(ids=(1,)), RawPrompt(ids=(2, 3))),
        first_tokens=-1,
        hints=Hints(priority=2),
    ),
    b'{"input":"a","encoding_format":"base64","add_special_tokens":false,"x":1,"y":null}': Packed(
        "", (RawPrompt("a", begin=False),), ignored=("x",), unknown=("x",)
    ),
}


def decode(**body):
    return CODEC.decode(HttpRequest("POST", "/v1/embeddings", body=json.dumps(body).encode()))


def test_conforms():
    run_codec_kit(CODEC, EXAMPLES)


def test_conforms_by_name():
    laws = conform(Host({"embeddings": embeddings}, entry_points=False), "embeddings")
    assert {"sans-IO", "total decode", "every error kind"} <= set(laws)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": ["a", 1]}, "input"),
        ({"input": ["a", [1]]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": [[1]] * 2049}, "input"),
        ({"input": [-1]}, "input[0]"),
        ({"input": [[1, 2**32]]}, "input[0][1]"),
        ({"input": None}, "input"),
        ({}, "input"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"input": "a", "truncate_prompt_tokens": -2}, "truncate_prompt_tokens"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_what_is_refused(body, param):
    with pytest.raises(RequestError) as refused:
        decode(**body)
    assert refused.value.param == param


def test_one_text_may_have_many_ids():
    assert len(decode(input=list(range(5000))).inputs[0].ids) == 5000


NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_both_formats_hold_the_same_numbers_in_order(rows):
    result = Embedded("m", tuple(map(tuple, rows)), 7)
    plain, packed = (
        json.loads(CODEC.answer(asked, result).body)
        for asked in (decode(input="a"), decode(input="a", encoding_format="base64"))
    )
    for index, row in enumerate(rows):
        assert plain["data"][index]["index"] == packed["data"][index]["index"] == index
        assert plain["data"][index]["embedding"] == row
        data = b64decode(packed["data"][index]["embedding"])
        assert list(struct.unpack("<3f", data)) == row
    assert plain["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert plain["model"] == "m"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**33) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from((*sorted(KNOWN), "z")), JSON))
def test_any_body_is_read_or_refused_by_name(body):
    found, param = None, None
    try:
        found = decode(**body)
    except RequestError as error:
        param = error.param
    assert (param is None) == (found is not None)
    assert found is None or all(raw.text or raw.ids for raw in found.inputs)


def test_it_answers_its_own_queries_alone():
    with pytest.raises(TypeError, match="is not answered by"):
        CODEC.answer(ListModels(), ())


def test_its_client_asks_and_reads():
    client = CODEC.client()
    call = Call("m", Dialogue((Turn("user", (Text("hi"),)),)))
    assert CODEC.decode(client.request(call)) == Embed("m", (RawPrompt("hi"),))
    reader = client.reader(call)
    body = CODEC.answer(decode(input="hi"), Embedded("m", ((0.5, 1.0),), 2)).body
    events = [*reader.push(body), *reader.flush()]
    assert [event.text for event in events if isinstance(event, PartDelta)] == ["[0.5,1.0]"]
    reader = client.reader(call)
    error = CODEC.encode_error(RequestError("no such", kind=ErrorKind.MODEL_NOT_FOUND), "r")
    assert [*reader.push(error.body), *reader.flush()] == [
        Failed(ErrorKind.MODEL_NOT_FOUND, "no such")
    ]
