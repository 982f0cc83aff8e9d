"""What a call becomes as a job: whose value counts, what stops it, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tokenwire.core.call import Call, Hints, Identity, Output, Sampling, Stopping
from tokenwire.core.dialogue import (
    Dialogue,
    ReasoningSettings,
    ResponseFormat,
    Text,
    ToolChoice,
    Turn,
)
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.jobs import JobBuilder, Planned
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup
from tokenwire.core.prompt import Prompt
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Constraint, EngineCard, LogprobSettings, ReasoningBudget

TOKENIZER = Host().tokenizers.build("bytes", {}, lone_services())
BOS, EOS, PAD = 256, 257, 258
ALL = (
    "logprobs",
    "prompt_logprobs",
    "logit_bias",
    "allowed_ids",
    "penalties",
    "min_p",
    "seed",
    "reasoning_budget",
    "grammar:json_schema",
    "grammar:choice",
)
CARD = EngineCard(model="e", vocab_size=259, context_length=100, capabilities=ALL)
LAME = replace(CARD, capabilities=())
DIALOGUE = Dialogue((Turn("user", (Text("hi"),)),))
PROMPT = Prompt(TokenIds(range(10)), "0123456789", "content", "fp")


class Maker(ParserMaker):
    """Of a family whose answers end with <pad>, and that thinks between brackets."""

    stop_strings = ("<pad>", "<|not a token|>")
    reasoning_start, reasoning_end = "[", "]"

    def parser(self, setup: ParserSetup) -> Parser:
        raise NotImplementedError


class Plain(Maker):
    reasoning_start = reasoning_end = ""


def builder(**more: Any) -> JobBuilder:
    parser: ParserMaker = more.pop("parser", Maker())
    return JobBuilder("m", TOKENIZER, parser, **({"defaults": {}} | more))


def plan(
    card: EngineCard = CARD, prompt: Prompt = PROMPT, made: JobBuilder | None = None, **call: Any
) -> Planned:
    asked = Call("m", **({"dialogue": DIALOGUE} | call))
    return (made or builder()).plan(asked, prompt, card, job="j", seed=7)


CONFIG = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.1}


def test_the_checkpoints_defaults_count_where_the_client_is_silent() -> None:
    sampling = plan(made=builder(defaults=CONFIG)).job.sampling
    found = {name: getattr(sampling, name) for name in CONFIG}
    assert found == CONFIG


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 1.5),
        ("top_p", 0.1),
        ("top_k", 0),
        ("top_k", 5),
        ("repetition_penalty", 1.0),
    ],
)
def test_the_clients_own_values_win_and_0_is_one(name: str, value: float) -> None:
    made = builder(defaults=CONFIG)
    sampling = plan(made=made, sampling=Sampling(**{name: value})).job.sampling
    found = {each: getattr(sampling, each) for each in CONFIG}
    assert found == CONFIG | {name: value}


def test_without_either_the_interfaces_defaults_hold() -> None:
    sampling = plan().job.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0)
    assert sampling.repetition_penalty == 1.0


@pytest.mark.parametrize(
    "config",
    [
        {"do_sample": False, **CONFIG},
        {"temperature": None, "top_k": "20", "top_p": True},
        {"top_k": -1},
    ],
)
def test_a_configuration_that_says_nothing_useful_changes_nothing(config: dict[str, Any]) -> None:
    assert plan(made=builder(defaults=config)).job.sampling == plan().job.sampling


OPTIONAL = [
    ("min_p", 0.1, 0.0),
    ("frequency_penalty", 0.5, 0.0),
    ("presence_penalty", -0.5, 0.0),
    ("logit_bias", {5: 1.0}, {}),
    ("allowed_ids", (1, 2), ()),
]


@pytest.mark.parametrize(("name", "value", "nothing"), OPTIONAL)
def test_what_an_engine_may_lack_is_used_or_listed(name: str, value: Any, nothing: Any) -> None:
    asked = Sampling(**{name: value})
    planned = plan(sampling=asked)
    found = getattr(planned.job.sampling, name)
    assert (tuple(found) if name == "allowed_ids" else found) == value
    assert planned.ignored == ()
    without = plan(LAME, sampling=asked)
    assert without.job.sampling == plan().job.sampling
    assert without.ignored == (name,)
    assert plan(LAME, sampling=Sampling(**{name: nothing})).ignored == ()


def test_a_seed_is_the_clients_or_the_gateways() -> None:
    assert plan().job.sampling.seed == 7
    assert plan(sampling=Sampling(seed=0)).job.sampling.seed == 0
    assert plan(LAME).ignored == ()
    assert plan(LAME, sampling=Sampling(seed=0)).ignored == ("seed",)


# --- stopping ------------------------------------------------------------------------------------


def stop_ids(**stopping: Any) -> list[int]:
    return list(plan(stopping=Stopping(**stopping)).job.stopping.stop_ids)


def test_an_answer_ends_with_the_vocabularys_and_the_dialects_tokens() -> None:
    assert stop_ids() == [EOS, PAD]


def test_ignore_eos_leaves_them_out_but_not_the_clients_own() -> None:
    assert stop_ids(ignore_eos=True) == []
    assert stop_ids(ignore_eos=True, ids=(65, PAD)) == [65, PAD]
    assert plan(stopping=Stopping(ignore_eos=True)).job.stopping.ignore_eos


def test_the_clients_ids_and_sequences_are_added_once() -> None:
    assert stop_ids(ids=(65, EOS)) == [EOS, PAD, 65]
    sequences = plan(stopping=Stopping(sequences=((1, 2), (3,)))).job.stopping.sequences
    assert [list(ids) for ids in sequences] == [[1, 2], [3]]


def test_a_stop_string_that_spells_one_token_goes_as_its_id() -> None:
    planned = plan(stopping=Stopping(strings=("<bos>", "stop", "<bos><bos>")))
    assert list(planned.job.stopping.stop_ids) == [EOS, PAD, BOS]
    assert planned.stop_spellings == {BOS: "<bos>"}
    assert planned.stop_strings == ("stop", "<bos><bos>")
    # Why: an engine keeps the id that ended an answer, so its text could not be shown.
    shown = plan(stopping=Stopping(strings=("<bos>",), include_stop=True))
    assert list(shown.job.stopping.stop_ids) == [EOS, PAD]
    assert shown.stop_strings == ("<bos>",)


@pytest.mark.parametrize(("wanted", "given"), [(None, 90), (5, 5), (90, 90), (10**6, 90)])
def test_a_limit_is_lowered_to_what_the_context_leaves(wanted: int | None, given: int) -> None:
    assert plan(stopping=Stopping(max_tokens=wanted)).job.stopping.max_tokens == given


def test_min_tokens_goes_on() -> None:
    assert plan(stopping=Stopping(min_tokens=3)).job.stopping.min_tokens == 3


@pytest.mark.parametrize(("configured", "length"), [(None, 100), (40, 40), (1000, 100)])
def test_the_context_is_the_smaller_of_configuration_and_engine(
    configured: int | None, length: int
) -> None:
    made = builder(context_length=configured)
    assert made.context_length(CARD) == length
    assert plan(made=made).job.stopping.max_tokens == length - 10


def test_a_prompt_that_leaves_no_room_is_refused_in_words() -> None:
    made = builder(context_length=10)
    with pytest.raises(RequestError, match="10 tokens > 9 maximum") as caught:
        plan(made=made)
    assert caught.value.kind is ErrorKind.CONTEXT_LENGTH
    assert caught.value.code == "context_length_exceeded"
    made = builder(context_length=11)
    assert plan(made=made).job.stopping.max_tokens == 1


# --- the rest ------------------------------------------------------------------------------------


def thinking(budget: int | None) -> Dialogue:
    return replace(DIALOGUE, reasoning=ReasoningSettings(budget=budget))


@pytest.mark.parametrize("phase", ["content", "reasoning"])
def test_a_reasoning_budget_is_said_in_ids(phase: Any) -> None:
    planned = plan(prompt=replace(PROMPT, phase=phase), dialogue=thinking(50))
    start, end = TokenIds([ord("[")]), TokenIds([ord("]")])
    assert planned.job.reasoning == ReasoningBudget(
        open=phase == "reasoning",
        start_ids=start,
        end_ids=end,
        budget=50,
        on_budget="force",
        force_ids=end,
    )
    assert planned.ignored == ()
    assert plan(dialogue=thinking(None)).job.reasoning is None


def test_a_budget_that_nobody_can_keep_is_listed() -> None:
    for planned in (
        plan(LAME, dialogue=thinking(50)),
        plan(made=builder(parser=Plain()), dialogue=thinking(50)),
    ):
        assert planned.job.reasoning is None
        assert planned.ignored == ("reasoning_budget",)


def test_a_shape_is_a_constraint_where_the_engine_has_that_grammar() -> None:
    def shaped(card: EngineCard, **wanted: Any) -> Planned:
        return plan(card, dialogue=replace(DIALOGUE, response_format=ResponseFormat(**wanted)))

    planned = shaped(CARD, kind="json_schema", text="{}")
    assert planned.job.constraint == Constraint("json_schema", "{}", "after_reasoning")
    planned = shaped(CARD, kind="choice", choices=("a", "b"))
    assert planned.job.constraint == Constraint("choice", '["a","b"]', "after_reasoning")
    for planned in (shaped(LAME, kind="json_schema", text="{}"), shaped(CARD, kind="regex")):
        assert planned.job.constraint is None
        assert planned.ignored == ("response_format",)
    assert shaped(LAME, kind="text").ignored == ()


@pytest.mark.parametrize(
    ("mode", "listed"),
    [("auto", ()), ("none", ()), ("required", ("tool_choice",)), ("named", ("tool_choice",))],
)
def test_forced_calls_are_listed(mode: Any, listed: tuple[str, ...]) -> None:
    choice = ToolChoice(mode, names=("f",) if mode == "named" else ())
    assert plan(dialogue=replace(DIALOGUE, tool_choice=choice)).ignored == listed


def test_log_probabilities_are_given_or_refused() -> None:
    assert plan().job.logprobs is None
    planned = plan(output=Output(logprobs=0))
    assert planned.job.logprobs == LogprobSettings(top=0)
    planned = plan(output=Output(logprobs=3, prompt_logprobs=2))
    assert planned.job.logprobs == LogprobSettings(top=3, prompt=2)
    with pytest.raises(RequestError, match="'m' cannot give log probabilities") as caught:
        plan(LAME, output=Output(logprobs=0))
    assert caught.value.param == "logprobs"


def salt(tenant: str, wish: str | None, **identity: str) -> str:
    who = Identity(tenant=tenant, **identity)
    return plan(identity=who, hints=Hints(cache_salt=wish)).job.kv.salt


def test_the_salt_is_the_tenants_and_then_the_clients() -> None:
    assert salt("default", None) == ""
    assert salt("a", None) == salt("a", None, user="u", session="s")
    assert salt("default", None, user="a", session="a") == ""


def test_no_two_tenants_share_a_salt_whatever_the_client_wishes() -> None:
    wishes = [None, "s", "a", "a/", "a/s", "b", "/", "b/s"]
    pairs = [(tenant, wish) for tenant in ("default", "a", "a/b", "b") for wish in wishes]
    salts = {salt(tenant, wish) for tenant, wish in pairs}
    assert len(salts) == len(pairs)


def test_what_is_passed_on_as_it_is() -> None:
    job = plan(
        output=Output(n=3),
        hints=Hints(priority=2, deadline_ms=5, expected_tokens=6),
        annotations={"script": "x"},
    ).job
    assert (job.job, job.model, job.prompt, job.n) == ("j", "m", PROMPT.ids, 3)
    assert (job.priority, job.deadline_ms, job.expected_tokens) == (2, 5, 6)
    assert job.annotations == {"script": "x"}
