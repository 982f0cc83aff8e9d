"""What of a call a protocol cannot ask for, by name; and a call without it. Knows no wire.

`CALL_LOSSES` is the table of what a codec may declare in `Codec.call_losses`. Two protocols are
thereby bound: a call that crosses from one to the other is `without` what the other declares, no
more and no less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.call import Call, Identity, Keeping, RawPrompt
from tokenwire.core.custom_calls import as_functions
from tokenwire.core.dialogue import Dialogue, ReasoningSettings, ResponseFormat
from tokenwire.core.lost_turns import TURN_LOSSES, closes, text_of, without_own

__all__ = ("CALL_LOSSES", "CLOSED_LIMIT", "CallLoss", "bare", "without")

CLOSED_LIMIT: Final = 4096
"""Tokens of an answer, where a protocol wants a number and the call leaves it open."""
ANY_OBJECT: Final = '{"type":"object"}'
LEAST_BUDGET: Final = 1024
NO_NAME: Final = "answer"

Lose: TypeAlias = Callable[[Call], Call]


class CallLoss(Struct, frozen=True):
    """One row: what is lost, in plain words, and the call that is left."""

    what: str
    lose: Lose


def bare(call: Call) -> Call:
    """What of a call another protocol can be asked: without what is its own protocol's alone
    (fields and blocks that only that one knows), and without what was noted of how it was read."""
    keeping = None if call.keeping == Keeping() else call.keeping
    return Call(
        call.model,
        without_own(call.dialogue),
        call.sampling,
        call.stopping,
        call.output,
        call.identity,
        call.hints,
        call.prompts,
        annotations=call.annotations,
        keeping=keeping,
        truncate=call.truncate,
        last_tokens=call.last_tokens,
    )


def without(call: Call, losses: Set[str]) -> Call:
    """The call as a protocol with these losses says it. Raises KeyError for a name that is none."""
    for name in losses - CALL_LOSSES.keys():
        raise KeyError(f"{name!r} is not in the table of losses of calls")
    for name, loss in CALL_LOSSES.items():
        if name in losses:
            call = loss.lose(call)
    return call


def _fields(part: str, **lost: object) -> Lose:
    def lose(call: Call) -> Call:
        return replace(call, **{part: replace(getattr(call, part), **lost)})

    return lose


def _dialogue(lose: Callable[[Dialogue], Dialogue]) -> Lose:
    return lambda call: replace(call, dialogue=lose(call.dialogue))


def _raw(call: Call) -> Call:
    if call.prompts:
        return call
    wanted = call.dialogue.response_format
    dialogue = Dialogue((), reasoning=ReasoningSettings("off"), response_format=wanted)
    return replace(call, dialogue=dialogue, prompts=(RawPrompt(text_of(call.dialogue)),))


def _limited(call: Call) -> Call:
    limit = call.stopping.max_tokens or CLOSED_LIMIT
    return replace(call, stopping=replace(call.stopping, max_tokens=limit))


def _echoed_logprobs(call: Call) -> Call:
    output = call.output
    scores = output.logprobs if output.echo else None
    return replace(call, output=replace(output, prompt_logprobs=scores))


def _sign(call: Call) -> Call:
    sign = (call.hints.priority > 0) - (call.hints.priority < 0)
    return replace(call, hints=replace(call.hints, priority=sign))


def _any_object(dialogue: Dialogue) -> Dialogue:
    tools = tuple(
        replace(tool, parameters=ANY_OBJECT) if tool.parameters is None else tool
        for tool in dialogue.tools
    )
    return replace(dialogue, tools=tools)


def _all_tools(dialogue: Dialogue) -> Dialogue:
    choice = dialogue.tool_choice
    if choice.mode != "allowed":
        return dialogue
    mode = "required" if choice.required else "auto"
    return replace(dialogue, tool_choice=replace(choice, mode=mode, names=(), required=False))


def _formats(*kinds: str) -> Lose:
    def lose(dialogue: Dialogue) -> Dialogue:
        if dialogue.response_format.kind not in kinds:
            return dialogue
        return replace(dialogue, response_format=ResponseFormat())

    return _dialogue(lose)


def _format(**lost: object) -> Lose:
    def lose(dialogue: Dialogue) -> Dialogue:
        return replace(dialogue, response_format=replace(dialogue.response_format, **lost))

    return _dialogue(lose)


def _only_off(dialogue: Dialogue) -> Dialogue:
    wish = dialogue.reasoning
    left = replace(wish, effort=None) if wish.mode == "off" else replace(wish, mode=None)
    return replace(dialogue, reasoning=left)


def _no_budget(dialogue: Dialogue) -> Dialogue:
    return replace(dialogue, reasoning=replace(dialogue.reasoning, budget=None))


def _large_budget(dialogue: Dialogue) -> Dialogue:
    """Thinking is `on` with such a budget only."""
    wish = dialogue.reasoning
    if wish.mode == "on" and wish.budget is not None and wish.budget >= LEAST_BUDGET:
        return dialogue
    mode = "adaptive" if wish.mode == "on" else wish.mode
    return replace(dialogue, reasoning=replace(wish, mode=mode, budget=None))


def _named_format(dialogue: Dialogue) -> Dialogue:
    wanted = dialogue.response_format
    if wanted.kind != "json_schema" or wanted.name:
        return dialogue
    return replace(dialogue, response_format=replace(wanted, name=NO_NAME))


def _no_session(call: Call) -> Call:
    return replace(call, identity=Identity(call.identity.tenant, call.identity.user))


CALL_LOSSES: Final[Mapping[str, CallLoss]] = {
    "top_k": CallLoss("top_k", _fields("sampling", top_k=None)),
    "min_p": CallLoss("min_p", _fields("sampling", min_p=None)),
    "penalties": CallLoss(
        "penalties of repeated tokens",
        _fields("sampling", frequency_penalty=None, presence_penalty=None, repetition_penalty=None),
    ),
    "seed": CallLoss("the seed", _fields("sampling", seed=None)),
    "logit_bias": CallLoss("biases of single tokens", _fields("sampling", logit_bias={})),
    "allowed_ids": CallLoss("which tokens are allowed", _fields("sampling", allowed_ids=())),
    "bad_words": CallLoss("words that are not to be said", _fields("sampling", bad_words=())),
    "open_limit": CallLoss(
        f"that the answer may be as long as there is room: the limit becomes {CLOSED_LIMIT} tokens",
        _limited,
    ),
    "min_tokens": CallLoss("a least number of tokens", _fields("stopping", min_tokens=0)),
    "stop_strings": CallLoss("stop strings", _fields("stopping", strings=())),
    "stop_ids": CallLoss("stop tokens", _fields("stopping", ids=())),
    "stop_id_sequences": CallLoss("stop sequences of tokens", _fields("stopping", sequences=())),
    "ignore_eos": CallLoss(
        "to go on behind the model's own end", _fields("stopping", ignore_eos=False)
    ),
    "include_stop": CallLoss(
        "to leave the stop string in the answer", _fields("stopping", include_stop=False)
    ),
    "n": CallLoss("several answers", _fields("output", n=1)),
    "best_of": CallLoss("the best of several answers", _fields("output", best_of=None)),
    "ids": CallLoss("answers in token ids", _fields("output", ids=False)),
    "logprobs": CallLoss("log probabilities", _fields("output", logprobs=None)),
    "echo": CallLoss(
        "the prompt before the answer, and its log probabilities",
        _fields("output", echo=False, prompt_logprobs=None),
    ),
    "prompt_logprobs": CallLoss(
        "log probabilities of a prompt that is not echoed, or others than the answer's",
        _echoed_logprobs,
    ),
    "token_reports": CallLoss(
        "token ids beside the text, and log probabilities of tokens that are named",
        _fields("output", token_ids=False, logprob_ids=()),
    ),
    "inline_reasoning": CallLoss(
        "reasoning in the text of the answer", _fields("output", inline_reasoning=False)
    ),
    "no_usage": CallLoss(
        "a stream without usage: there always is one", _fields("output", usage=True)
    ),
    "continuous_usage": CallLoss(
        "usage while a stream runs", _fields("output", continuous_usage=False)
    ),
    "session": CallLoss("the session", _no_session),
    "priority": CallLoss("the priority", _fields("hints", priority=0)),
    "priority_size": CallLoss("of the priority all but its sign", _sign),
    "deadline": CallLoss("a deadline", _fields("hints", deadline_ms=None)),
    "expected_tokens": CallLoss(
        "how long an answer is expected", _fields("hints", expected_tokens=None)
    ),
    "cache_markers": CallLoss("marks of what to cache", _fields("hints", cache_markers=())),
    "cache_salt": CallLoss("a salt for the cache", _fields("hints", cache_salt=None)),
    "keeping": CallLoss(
        "whether the answer is kept, or made in the background",
        lambda call: replace(call, keeping=None),
    ),
    "truncate": CallLoss(
        "to leave out the oldest turns where the prompt is too long",
        lambda call: replace(call, truncate=False),
    ),
    "last_tokens": CallLoss(
        "to cut the prompt at its beginning", lambda call: replace(call, last_tokens=None)
    ),
    "annotations": CallLoss(
        "words to the engine beside the call", lambda call: replace(call, annotations={})
    ),
    "dialogue": CallLoss("turns, tools and formats: the text of the turns is one raw prompt", _raw),
    "template_args": CallLoss(
        "arguments of the chat template",
        _dialogue(lambda dialogue: replace(dialogue, template_args={})),
    ),
    "continue_final": CallLoss(
        "that the last turn is to be gone on with",
        _dialogue(lambda dialogue: replace(dialogue, continue_final=False)),
    ),
    "generation_prompt": CallLoss(
        "that the prompt ends with the last turn",
        _dialogue(lambda dialogue: replace(dialogue, generation_prompt=True)),
    ),
    **{name: CallLoss(what, _dialogue(lose)) for name, (what, lose) in TURN_LOSSES.items()},
    "custom": CallLoss(
        "free-form tools: they are asked as functions of one string", _dialogue(as_functions)
    ),
    "no_parameters": CallLoss(
        "that a tool has no parameters: it takes any object", _dialogue(_any_object)
    ),
    "allowed_tools": CallLoss("a choice among some of the tools", _dialogue(_all_tools)),
    "json_object": CallLoss("any JSON object as the format", _formats("json_object")),
    "free_formats": CallLoss(
        "formats but for JSON: patterns, grammars, choices, tags",
        _formats("regex", "grammar", "choice", "structural_tag"),
    ),
    "format_name": CallLoss("the name of a schema, and `strict`", _format(name=None, strict=None)),
    "nameless_format": CallLoss(
        f"that a schema has no name: it is called {NO_NAME!r}", _dialogue(_named_format)
    ),
    "small_budget": CallLoss(
        f"a reasoning budget under {LEAST_BUDGET} tokens, or without asking for reasoning; and"
        " reasoning without a budget is `adaptive`",
        _dialogue(_large_budget),
    ),
    "reasoning_mode": CallLoss(
        "whether to reason, but for `off`, which has no effort", _dialogue(_only_off)
    ),
    "reasoning_budget": CallLoss("a reasoning budget", _dialogue(_no_budget)),
    "open_final": CallLoss(
        "that an answer at the end is whole: it is gone on with where it ends with text and calls"
        " nothing",
        _dialogue(closes),
    ),
}
"""In the order in which they are taken out: some look at what others have left."""
