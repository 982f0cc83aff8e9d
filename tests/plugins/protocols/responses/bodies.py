"""Strategies for Responses bodies: the typed grammar of a request, unknown fields included."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

__all__ = ("bodies", "items")

Json = dict[str, Any]

WORDS = st.sampled_from(["tide", "a\nb", '"q"', "潮🌊", "<|im_end|>", "\u2028", "x y"])
NAMES = st.sampled_from(["get_tide", "patch", "look"])
IDS = st.sampled_from(["c1", "c2", "c-3"])
STATUS = st.sampled_from(["completed", "incomplete", "in_progress"])
ODD = st.one_of(st.none(), st.integers(-5, 2**60), st.booleans(), WORDS, st.just({"a": [1.5, {}]}))


def record(required: Json, optional: Json | None = None) -> st.SearchStrategy[Json]:
    """An object, with a field now and then that nobody knows."""
    fields = st.fixed_dictionaries(required, optional=optional or {})
    unknown = st.dictionaries(st.sampled_from(["x_new", "x_other"]), ODD, max_size=1)
    return st.tuples(fields, unknown).map(lambda pair: pair[0] | pair[1])


def text_part(kind: str) -> st.SearchStrategy[Json]:
    return record({"type": st.just(kind), "text": WORDS})


DATA = st.binary(max_size=6).map(lambda data: b64encode(data).decode())
IMAGE = record(
    {
        "type": st.just("input_image"),
        "image_url": DATA.map(lambda data: f"data:image/png;base64,{data}"),
    },
    {"detail": st.sampled_from(["auto", "low", None]), "file_id": st.none()},
)
FILE = record(
    {"type": st.just("input_file"), "file_data": DATA}, {"filename": st.just("notes.txt")}
)
AUDIO = record(
    {
        "type": st.just("input_audio"),
        "input_audio": st.fixed_dictionaries(
            {"data": DATA, "format": st.sampled_from(["wav", "mp3", "ogg"])}
        ),
    }
)
USER_PARTS = st.lists(
    st.one_of(text_part("input_text"), text_part("input_text"), IMAGE, FILE, AUDIO),
    min_size=1,
    max_size=3,
)
SAID = st.lists(
    st.one_of(
        record(
            {"type": st.just("output_text"), "text": WORDS},
            {"annotations": st.just([]), "logprobs": st.just([])},
        ),
        record({"type": st.just("refusal"), "refusal": WORDS}),
    ),
    max_size=2,
)
USER = record(
    {
        "role": st.sampled_from(["user", "system", "developer"]),
        "content": st.one_of(WORDS, USER_PARTS),
    },
    {"type": st.just("message"), "id": st.just("msg_1"), "status": STATUS},
)
ASSISTANT = record(
    {"role": st.just("assistant"), "content": st.one_of(WORDS, SAID)},
    {"type": st.just("message"), "id": st.just("msg_2"), "status": STATUS},
)
REASONING = record(
    {
        "type": st.just("reasoning"),
        "summary": st.lists(text_part("summary_text"), max_size=2),
    },
    {
        "id": st.just("rs_1"),
        "content": st.one_of(st.none(), st.lists(text_part("reasoning_text"), max_size=2)),
        "encrypted_content": st.one_of(st.none(), st.just("gAAAsealed")),
        "status": st.one_of(st.none(), STATUS),
    },
)
HOSTED = record({"type": st.sampled_from(["web_search_call", "mcp_call"]), "id": st.just("ws_1")})
REFERENCE = st.just({"type": "item_reference", "id": "msg_abcdefghijklmnopqrstuvwx0000"})


@st.composite
def exchanges(draw: st.DrawFn) -> list[Json]:
    """Calls, then a result for each."""
    calls: list[Json] = []
    results: list[Json] = []
    for k in range(draw(st.integers(1, 2))):
        custom = draw(st.booleans())
        kind = "custom_tool_call" if custom else "function_call"
        field, text = ("input", WORDS) if custom else ("arguments", st.just('{"at": "Brest"}'))
        ids = {"type": st.just(kind), "call_id": st.just(f"c{k}"), "name": NAMES, field: text}
        more = {"id": st.just(f"fc_{k}"), "status": STATUS, "namespace": NAMES}
        calls.append(draw(record(ids, more)))
        output = st.one_of(WORDS, st.lists(text_part("input_text"), max_size=2))
        answered = {"type": st.just(f"{kind}_output"), "call_id": st.just(f"c{k}")}
        results.append(draw(record({**answered, "output": output}, {"status": STATUS})))
    return [*calls, *results]


def items() -> st.SearchStrategy[list[Json]]:
    """Non-empty input, with something to say."""
    one = st.one_of(USER, ASSISTANT, REASONING, HOSTED).map(lambda item: [item])
    groups = st.lists(st.one_of(one, one, exchanges()), max_size=4)
    return st.tuples(groups, USER).map(
        lambda pair: [*(item for group in pair[0] for item in group), pair[1]]
    )


FUNCTION = record(
    {"type": st.just("function"), "name": NAMES},
    {
        "description": WORDS,
        "parameters": st.sampled_from([None, {}, {"type": "object", "properties": {}}]),
        "strict": st.sampled_from([None, True, False]),
    },
)
CUSTOM = record(
    {"type": st.just("custom"), "name": NAMES},
    {
        "format": st.sampled_from(
            [{"type": "text"}, {"type": "grammar", "syntax": "lark", "definition": 'start: "a"'}]
        )
    },
)
HOSTED_TOOL = record({"type": st.sampled_from(["web_search", "local_shell"])})
NAMESPACE = record(
    {
        "type": st.just("namespace"),
        "name": NAMES,
        "description": WORDS,
        "tools": st.lists(st.one_of(FUNCTION, CUSTOM), max_size=2),
    }
)
FORMAT = st.sampled_from(
    [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True},
    ]
)


def bodies() -> st.SearchStrategy[Json]:
    return record(
        {"model": st.just("m"), "input": st.one_of(WORDS, items())},
        {
            "instructions": st.one_of(st.none(), WORDS),
            "tools": st.lists(st.one_of(FUNCTION, CUSTOM, HOSTED_TOOL, NAMESPACE), max_size=3),
            "tool_choice": st.sampled_from(["auto", "none", None]),
            "parallel_tool_calls": st.booleans(),
            "text": record({}, {"format": FORMAT, "verbosity": st.just("low")}),
            "reasoning": record(
                {}, {"effort": st.sampled_from(["none", "high", None]), "summary": st.just("auto")}
            ),
            "include": st.just(["reasoning.encrypted_content"]),
            "metadata": st.just({"a": "b"}),
            "store": st.booleans(),
            "stream": st.just(True),
            "temperature": st.sampled_from([None, 0, 1.5]),
            "top_p": st.just(0.5),
            "max_output_tokens": st.integers(1, 99),
            "max_tool_calls": st.just(3),
            "truncation": st.sampled_from(["auto", "disabled"]),
            "service_tier": st.sampled_from(["auto", "flex"]),
            "prompt_cache_key": st.just("k"),
            "safety_identifier": st.just("s"),
            "top_logprobs": st.just(2),
        },
    )


def encoded(body: Json) -> bytes:
    return json.dumps(body).encode()
