"""Calls with everything in them that a call can have, made by hypothesis: what crossings are tried
with. All are such as some protocol's requests are read to."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tokenwire.core.call import (
    CacheMarker,
    Call,
    Hints,
    Identity,
    Keeping,
    Output,
    Sampling,
    Stopping,
)
from tokenwire.core.dialogue import (
    Audio,
    Dialogue,
    Document,
    Grammar,
    Image,
    Reasoning,
    ReasoningSettings,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)

__all__ = ("CALLS",)

WORD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
TEXT = st.one_of(WORD, st.just(""))
BYTES = st.binary(min_size=1, max_size=5)
SHARE = st.sampled_from([None, 0.25, 1.0])
IDS = st.lists(st.integers(0, 99), max_size=2, unique=True).map(tuple)
URL = st.sampled_from(["https://h/a.png", "http://h/b"])
MAYBE = st.one_of(st.none(), WORD)
NAMES = ("f", "g")
ROLES: tuple[Role, ...] = ("system", "developer", *("user", "assistant") * 2, "tool")


def maybe(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


SAMPLING = st.builds(
    Sampling,
    temperature=SHARE,
    top_p=SHARE,
    top_k=maybe(0, 5),
    min_p=SHARE,
    frequency_penalty=maybe(-1.5),
    presence_penalty=maybe(0.5),
    repetition_penalty=maybe(1.5),
    seed=maybe(0, -7),
    logit_bias=st.sampled_from([{}, {5: -1.5}]),
    allowed_ids=IDS,
    bad_words=st.sampled_from([(), ("tide",)]),
)
STOPPING = st.builds(
    Stopping,
    max_tokens=maybe(1500, 9000),
    min_tokens=st.sampled_from([0, 3]),
    strings=st.lists(WORD, max_size=2).map(tuple),
    ids=IDS,
    sequences=st.sampled_from([(), ((1, 2),)]),
    ignore_eos=st.booleans(),
    include_stop=st.booleans(),
)


@st.composite
def outputs(draw: st.DrawFn) -> Output:
    stream, n = draw(st.booleans()), draw(st.sampled_from([1, 2]))
    logprobs, echo = draw(maybe(0, 2)), draw(st.booleans())
    usage = draw(st.booleans()) or not stream
    return Output(
        n=n,
        ids=draw(st.booleans()),
        best_of=None if stream else draw(maybe(n + 1)),
        logprobs=logprobs,
        logprob_ids=() if logprobs is None else draw(IDS),
        prompt_logprobs=draw(maybe(0, 2)),
        echo=echo,
        token_ids=draw(st.booleans()),
        inline_reasoning=draw(st.booleans()),
        stream=stream,
        usage=usage,
        continuous_usage=usage and stream and draw(st.booleans()),
    )


MEDIA = st.one_of(
    st.builds(Image, url=URL, detail=maybe("low")),
    st.builds(Image, data=BYTES, media_type=st.just("image/png"), detail=maybe("high")),
    st.builds(Audio, data=BYTES, media_type=st.sampled_from(["audio/wav", "audio/mpeg"])),
    st.builds(Document, url=URL, name=MAYBE, title=MAYBE),
    st.builds(Document, data=BYTES, media_type=maybe("a/b"), name=MAYBE, title=MAYBE),
    st.builds(Document, text=WORD, media_type=maybe("text/plain"), name=MAYBE, title=MAYBE),
)
TEXTS = st.builds(Text, TEXT)
SPOKEN = st.one_of(TEXTS, TEXTS, MEDIA)
THOUGHTS = st.one_of(
    st.builds(Reasoning, TEXT),
    st.builds(Reasoning, TEXT, signature=WORD),
    st.builds(Reasoning, TEXT, redacted=WORD),
)
ARGUMENTS = st.sampled_from(['{"a": 1.0}', "{}", '{"a": {"b": [null, "ü"]}}', "[1]", "", "{oops"])


@st.composite
def turns(draw: st.DrawFn, customs: frozenset[str]) -> list[Turn]:
    """Of each role, in any order; results answer calls that were made before."""
    made: list[ToolCall] = []
    found: list[Turn] = [Turn("user", (Text(draw(WORD)),), draw(MAYBE))]
    if draw(st.booleans()):
        found.insert(0, Turn(draw(st.sampled_from(["system", "developer"])), (Text(draw(WORD)),)))
    for role in draw(st.lists(st.sampled_from(ROLES), max_size=4)):
        if role == "tool":
            if not made:  # Why: else few calls would have a result.
                made.append(ToolCall("call_0", NAMES[0], "{}", custom=NAMES[0] in customs))
                found.append(Turn("assistant", (made[0],)))
            answered = draw(st.lists(st.sampled_from(made), min_size=1, max_size=2))
            found.append(Turn("tool", tuple(draw(results(call)) for call in answered)))
        elif role == "assistant":
            parts: list[Any] = []
            for kind in draw(st.lists(st.sampled_from(["text", "thought", "call"]), max_size=3)):
                if kind == "call":
                    name = draw(st.sampled_from(NAMES))
                    custom = name in customs
                    arguments = draw(TEXT if custom else ARGUMENTS)
                    made.append(ToolCall(f"call_{len(made)}", name, arguments, custom=custom))
                    parts.append(made[-1])
                else:
                    parts.append(draw(TEXTS if kind == "text" else THOUGHTS))
            found.append(Turn("assistant", tuple(parts), draw(MAYBE)))
        else:
            # Why: no protocol takes pictures from the system.
            given = SPOKEN if role == "user" else TEXTS
            parts = draw(st.lists(given, max_size=2))
            found.append(Turn(role, tuple(parts), draw(MAYBE)))
    return found


def results(call: ToolCall) -> st.SearchStrategy[ToolResult]:
    return st.builds(
        ToolResult,
        st.just(call.id),
        st.lists(SPOKEN, max_size=2).map(tuple),
        is_error=st.booleans(),
        name=st.sampled_from([call.name, "another"]),
    )


SCHEMA = st.sampled_from(['{"type":"object"}', '{"type": "object", "x": 1.0}'])
GRAMMARS = maybe(Grammar("lark", "start: /a/"), Grammar("regex", "a+"))
FORMATS = st.one_of(
    st.just(ResponseFormat()),
    st.just(ResponseFormat("json_object")),
    st.builds(
        ResponseFormat, st.just("json_schema"), SCHEMA, name=MAYBE, strict=maybe(True, False)
    ),
    st.builds(ResponseFormat, st.sampled_from(["regex", "grammar"]), WORD),
    st.just(ResponseFormat("choice", choices=("a", "b"))),
)
WISHES = st.builds(
    ReasoningSettings,
    mode=maybe("on", "off", "adaptive"),
    effort=maybe("low", "high"),
    budget=maybe(100, 1024, 5000),
)


@st.composite
def tools(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    specs = []
    for name in NAMES[: draw(st.integers(0, 2))]:
        description = draw(MAYBE)
        if draw(st.booleans()):
            parameters, strict = draw(st.one_of(st.none(), SCHEMA)), draw(maybe(True, False))
            specs.append(ToolSpec(name, description, parameters, strict))
        else:
            specs.append(ToolSpec(name, description, custom=True, grammar=draw(GRAMMARS)))
    return tuple(specs)


@st.composite
def choices(draw: st.DrawFn, specs: tuple[ToolSpec, ...]) -> ToolChoice:
    parallel = draw(st.booleans())
    modes: list[Any] = ["auto", "none", *(["required", "named", "allowed"] if specs else [])]
    mode = draw(st.sampled_from(modes))
    names = tuple(spec.name for spec in specs)
    required = mode == "allowed" and draw(st.booleans())
    chosen = {"named": names[:1], "allowed": names[:1]}.get(mode, ())
    return ToolChoice(mode, chosen, required=required, parallel=parallel)


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    specs = draw(tools())
    customs = frozenset(spec.name for spec in specs if spec.custom)
    said = draw(turns(customs))
    goes_on = said[-1].role == "assistant" and draw(st.booleans())
    return Dialogue(
        tuple(said),
        tools=specs,
        tool_choice=draw(choices(specs)),
        response_format=draw(FORMATS),
        reasoning=draw(WISHES),
        template_args=draw(st.sampled_from([{}, {"x": 1}])),
        continue_final=goes_on,
        generation_prompt=goes_on or draw(st.booleans()),
    )


@st.composite
def calls(draw: st.DrawFn) -> Call:
    markers = draw(st.sampled_from([(), (CacheMarker(0, 0, None),), (CacheMarker(0, 0, 3600),)]))
    return Call(
        "m",
        draw(dialogues()),
        sampling=draw(SAMPLING),
        stopping=draw(STOPPING),
        output=draw(outputs()),
        identity=Identity(user=draw(MAYBE), session=draw(MAYBE)),
        hints=Hints(
            priority=draw(st.sampled_from([0, 3, -2])),
            deadline_ms=draw(maybe(100)),
            expected_tokens=draw(maybe(10)),
            cache_markers=markers,
            cache_salt=draw(MAYBE),
        ),
        keeping=draw(maybe(Keeping(), Keeping(store=False), Keeping(background=True))),
        annotations=draw(st.sampled_from([{}, {"a": "b"}])),
        truncate=draw(st.booleans()),
        last_tokens=draw(maybe(-1, 9)),
    )


CALLS = calls()
