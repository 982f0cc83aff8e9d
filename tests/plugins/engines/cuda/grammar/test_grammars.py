"""Answers of a random model that are held to a grammar: always of the kind that was asked for.

A model with random weights wants nothing, so what comes out is the grammar's alone. Both backends,
greedy and sampled, in a batch with an answer that is free.
"""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from tests.plugins.engines.cuda.driving import Answer, engine, job, run
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Constraint,
    FinishCause,
    FinishKind,
    JobSampling,
    JobStopping,
    ReasoningBudget,
)
from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer

pytestmark = pytest.mark.torch

BACKENDS = ("xgrammar", "llguidance")
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", "Rome"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "flags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
    "required": ["city", "count", "flags"],
    "additionalProperties": False,
}
CHOICES = ["yes", "no", 'may"be\n', "näh"]
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<call>",
        "content": {"type": "json_schema", "json_schema": SCHEMA},
        "end": "</call>",
    },
}
EBNF = 'root ::= "a" digit{2,3} "b"\ndigit ::= [0-9]'


def is_json(text: str) -> None:
    jsonschema.validate(json.loads(text), SCHEMA)


def is_tag(text: str) -> None:
    assert text.startswith("<call>")
    assert text.endswith("</call>")
    is_json(text.removeprefix("<call>").removesuffix("</call>"))


def matches(pattern: str):
    def check(text: str) -> None:
        assert re.fullmatch(pattern, text), text

    return check


def is_choice(text: str) -> None:
    assert text in CHOICES


KINDS = {
    "json_schema": (json.dumps(SCHEMA), is_json),
    "regex": (r"[a-c]{2}-\d{3}", matches(r"[a-c]{2}-\d{3}")),
    "grammar": (EBNF, matches(r"a\d{2,3}b")),
    "choice": (json.dumps(CHOICES), is_choice),
    "structural_tag": (json.dumps(TAG), is_tag),
}


def made(backend: str, **fields):
    pytest.importorskip(backend)
    return engine(tiny_llama(300), tokenizer=BytesTokenizer(), grammar=backend, **fields)


def held(name: str, kind: str, text: str, *, seed: int | None = None, **fields):
    sampling = JobSampling(temperature=0.0 if seed is None else 1.0, seed=seed or 0)
    stopping = JobStopping(max_tokens=fields.pop("max_tokens", 300))
    constraint = fields.pop("constraint", None) or Constraint(kind, text)
    return job(
        name, [65, 66], sampling=sampling, stopping=stopping, constraint=constraint, **fields
    )


def text_of(answer: Answer) -> str:
    return bytes(answer.ids).decode()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_of_its_kind(backend: str, kind: str) -> None:
    text, check = KINDS[kind]
    held_by = made(backend)
    if not held_by.status().card.can(f"grammar:{kind}"):
        assert (backend, kind) == ("llguidance", "structural_tag")
        return
    jobs = [held(f"h{seed}", kind, text, seed=seed or None) for seed in range(4)]
    free = job("free", [65, 66])
    found = run(held_by, *jobs, free)
    for each in jobs:
        answer = found[each.job, 0]
        check(text_of(answer))
        assert answer.finish.kind == FinishKind.STOP
    assert found["free", 0].ids == run(made(backend), free)["free", 0].ids


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_object(backend: str) -> None:
    """A random model hardly ever ends an object by itself: what there is must begin one."""
    answer = run(made(backend), held("j", "json_object", "", max_tokens=40))["j", 0]
    assert bytes(answer.ids).startswith(b"{")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_grammar_that_cannot_finish_is_cut_by_length(backend: str) -> None:
    answer = run(made(backend), held("j", "regex", "(ab){500}", max_tokens=20))["j", 0]
    assert text_of(answer) == "ab" * 10
    assert (answer.finish.kind, answer.finish.cause) == (FinishKind.LENGTH, FinishCause.MAX)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_ends_as_soon_as_nothing_may_follow(backend: str) -> None:
    answer = run(made(backend), held("j", "regex", "abc"))["j", 0]
    assert (answer.finish.kind, answer.finish.cause) == (FinishKind.STOP, FinishCause.GRAMMAR)
    assert text_of(answer) == "abc"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("regex", "(unclosed"),
        ("json_schema", '{"type": "sed"}'),
        ("json_schema", r'{"anyOf": [{"type": "string", "pattern": "^(?=a)b$"}]}'),
        ("json_schema", r'{"type": "object", "patternProperties": {"(?!a)b": {}}}'),
        ("grammar", "root ::= nowhere"),
        ("choice", "[]"),
        ("choice", '{"abc": 1}'),
        ("choice", "[1]"),
        ("choice", "abc"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_a_reason(
    backend: str, kind: str, text: str
) -> None:
    good = held("good", "regex", "abc")
    found = run(made(backend), held("bad", kind, text), good)
    finish = found["bad", 0].finish
    assert (finish.kind, finish.cause) == (FinishKind.ERROR, FinishCause.REFUSED)
    assert f"the {kind} constraint cannot be kept: " in finish.message
    assert ".cc:" not in finish.message, "a place in a library's source is no reason"
    assert text_of(found["good", 0]) == "abc"


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_only_looks_like_lookahead_is_kept(backend: str) -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": r"^[(?=]\(\?=$"}},
        "required": ["pattern"],
        "additionalProperties": False,
    }
    found = run(made(backend), held("a", "json_schema", json.dumps(schema), max_tokens=200))
    assert json.loads(text_of(found["a", 0]))["pattern"][1:] == "(?="


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_begins_after_reasoning(backend: str) -> None:
    """The thought is free; its budget ends it, the grammar holds from there on."""
    thought = ReasoningBudget(
        open=True,
        start_ids=TokenIds([*b"<t>"]),
        end_ids=TokenIds([*b"</t>"]),
        budget=7,
        on_budget="force",
    )
    later = Constraint("regex", "abc", start="after_reasoning")
    answer = run(made(backend), held("j", "", "", constraint=later, reasoning=thought))["j", 0]
    assert bytes(answer.ids[7:]) == b"</t>abc"
    assert bytes(answer.ids[:7]) != b"abc</t>"


@pytest.mark.parametrize("backend", BACKENDS)
def test_reasoning_that_has_not_begun_may_begin(backend: str) -> None:
    """Either the marker or the grammar: nothing else."""
    thought = ReasoningBudget(
        start_ids=TokenIds([*b"<t>"]), end_ids=TokenIds([*b"</t>"]), budget=3, on_budget="force"
    )
    later = Constraint("regex", "abc", start="after_reasoning")
    liked = JobSampling(temperature=0.0, logit_bias={ord("<"): 100.0})
    jobs = {
        "plain": held("plain", "", "", constraint=later, reasoning=thought),
        "liked": job(
            "liked",
            [65, 66],
            sampling=liked,
            stopping=JobStopping(max_tokens=60),
            constraint=later,
            reasoning=thought,
        ),
    }
    found = run(made(backend), *jobs.values())
    assert bytes(found["plain", 0].ids).endswith(b"abc")
    assert bytes(found["liked", 0].ids).startswith(b"<t>")
    assert bytes(found["liked", 0].ids).endswith(b"</t>abc")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("liked", "wanted"),
    [("c", rb"<call>"), ("t", rb"<t>.{3}</t><call>"), ("<", rb"<(t>.{3}</t>.*|call>)")],
)
def test_a_grammar_may_begin_as_the_marker_does(backend: str, liked: str, wanted: bytes) -> None:
    thought = ReasoningBudget(
        start_ids=TokenIds([*b"<t>"]), end_ids=TokenIds([*b"</t>"]), budget=3, on_budget="force"
    )
    later = Constraint("regex", "<call>", start="after_reasoning")
    asked = job(
        "j",
        [65, 66],
        sampling=JobSampling(temperature=0.0, logit_bias={ord(liked): 50.0}),
        stopping=JobStopping(max_tokens=60),
        constraint=later,
        reasoning=thought,
    )
    answer = bytes(run(made(backend), asked)["j", 0].ids)
    assert re.fullmatch(wanted, answer, re.DOTALL), answer


@pytest.mark.parametrize("backend", BACKENDS)
def test_choices_of_one_job_have_each_their_own_place(backend: str) -> None:
    text, check = KINDS["json_schema"]
    found = run(made(backend), held("j", "json_schema", text, seed=3, n=3))
    texts = [text_of(found["j", choice]) for choice in range(3)]
    for each in texts:
        check(each)
    assert len(set(texts)) > 1


def test_without_a_backend_or_bytes_nothing_is_declared() -> None:
    plain = engine(tiny_llama(300), tokenizer=BytesTokenizer(), grammar="none")
    assert not any(name.startswith("grammar:") for name in plain.status().card.capabilities)
    blind = engine(tiny_llama(300))
    assert not any(name.startswith("grammar:") for name in blind.status().card.capabilities)
