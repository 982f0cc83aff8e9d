"""A dialogue to a prompt: documents, history, the tail, the phase, spans, the fingerprint."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tokenwire.core.dialogue import (
    Audio,
    Dialogue,
    Document,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.core.rendering import Renderer
from tokenwire.core.token_ids import TokenIds

TOKENIZER = Host().tokenizers.build("bytes", {}, lone_services())


@dataclass
class Seen(Template):
    """Writes every part's text after its role's first letter, and keeps what it was given."""

    source: str = "seen"
    end: str = ""
    asked: list[Dialogue] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        self.asked.append(dialogue)
        self.times.append(now)
        texts = [
            f"{turn.role[0]}:{getattr(part, 'text', '')};"
            for turn in dialogue.turns
            for part in turn.parts
        ]
        return Segments((Segment("".join(texts) + self.end, "unknown"),))


class Maker(ParserMaker):
    markers = ("<m>",)
    reasoning_start, reasoning_end = "<think>", "</think>"

    def parser(self, setup: ParserSetup) -> Parser:
        raise NotImplementedError


class Silent(Maker):
    reasoning_start = reasoning_end = ""


def renderer(template: Template, parser: ParserMaker | None = None, **more: Any) -> Renderer:
    return Renderer(TOKENIZER, template, parser or Maker(), **({"model": "m"} | more))


def said(*parts: Any, role: Any = "user") -> Dialogue:
    return Dialogue((Turn(role, parts),))


def shown(*parts: Any, role: Any = "user") -> tuple[Any, ...]:
    """The parts that reach the template."""
    template = Seen()
    renderer(template).prompt(said(*parts, role=role), 0.0)
    return template.asked[-1].turns[0].parts


def test_documents_that_are_text_become_text() -> None:
    assert shown(Document(text="body", title="Title")) == (Text("Title\nbody"),)
    assert shown(Document(text="body")) == (Text("body"),)
    assert shown(Text("a"), Document(text="b")) == (Text("a"), Text("b"))
    result = ToolResult("c", (Document(text="b", title="T"),))
    assert shown(result, role="tool") == (ToolResult("c", (Text("T\nb"),)),)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Image(data=b"x"), "image"),
        (Audio(data=b"x"), "audio"),
        (Document(data=b"x"), "document"),
        (ToolResult("c", (Image(data=b"x"),)), "image"),
    ],
)
def test_media_is_refused_in_words(part: Any, kind: str) -> None:
    dialogue = Dialogue((Turn("user", (Text("a"),)), Turn("user", (part,))))
    with pytest.raises(RequestError, match=f"'m' takes no {kind} input.*a user message") as caught:
        renderer(Seen()).prompt(dialogue, 0.0)
    assert caught.value.param == "messages"
    assert caught.value.code == "unsupported_content"


def test_reasoning_that_comes_back_in_text_is_lifted() -> None:
    history = Text("<think>\nhm\n</think>\n\nyes")
    assert shown(history, role="assistant") == (Reasoning("hm"), Text("yes"))
    template = Seen()
    renderer(template, Silent()).prompt(said(history, role="assistant"), 0.0)
    assert template.asked[-1].turns[0].parts == (history,)


def test_only_an_assistant_has_reasoning() -> None:
    (part,) = shown(Text("<think>hm</think>yes"))
    assert isinstance(part, Text)


@pytest.mark.parametrize("text", ["<eos> and <m>", "a<bos>b", "<m>"])
def test_what_a_client_spells_is_hidden_from_the_template_and_encoded_as_text(text: str) -> None:
    template = Seen()
    prompt = renderer(template).prompt(said(Text(text)), 0.0)
    (part,) = template.asked[-1].turns[0].parts
    assert "<" not in part.text.replace("<m", "")
    assert prompt.text == f"u:{text};"
    assert prompt.ids == TokenIds(list(prompt.text.encode()))


def test_the_templates_own_specials_stay_tokens() -> None:
    prompt = renderer(Seen(end="<bos>")).prompt(said(Text("<bos>")), 0.0)
    assert [id for id in prompt.ids if id > 255] == [256]
    assert prompt.ids[-1] == 256


def test_a_tail_is_added_once() -> None:
    made = renderer(Seen(end="end"))
    assert made.prompt(said(Text("a")), 0.0, tail="<think>").text == "u:a;end<think>"
    assert made.prompt(said(Text("a")), 0.0, tail="end").text == "u:a;end"
    assert made.prompt(said(Text("a")), 0.0).text == "u:a;end"


@pytest.mark.parametrize(
    ("end", "phase"),
    [
        ("<think>", "reasoning"),
        ("<think>\n", "reasoning"),
        ("", "content"),
        ("</think>", "content"),
    ],
)
def test_where_the_answer_starts(end: str, phase: str) -> None:
    assert renderer(Seen(end=end)).prompt(said(Text("a")), 0.0).phase == phase


def test_a_client_cannot_open_reasoning() -> None:
    class Bare(Template):
        def render(self, dialogue: Dialogue, now: float) -> Segments:
            (part,) = dialogue.turns[0].parts
            assert isinstance(part, Text)
            return Segments((Segment(part.text, "unknown"),))

    class Marked(Maker):
        markers = ("<think>",)

    assert renderer(Bare(), Marked()).prompt(said(Text("<think>")), 0.0).phase == "content"


def test_the_template_is_told_the_time() -> None:
    template = Seen()
    renderer(template).prompt(said(Text("a")), 12.5)
    assert template.times[-1] == 12.5


def test_spans_are_made_when_asked_for() -> None:
    made = renderer(Seen())
    assert made.prompt(said(Text("a")), 0.0).spans == ()
    spans = made.prompt(said(Text("aaa")), 0.0, spans=True).spans
    assert any(span.source == "client" for span in spans)


def test_a_call_without_text_passes() -> None:
    call = ToolCall("c", "f", "{}")
    assert shown(call, role="assistant") == (call,)


def test_the_fingerprint_is_of_all_that_a_prompt_depends_on() -> None:
    base = renderer(Seen()).fingerprint
    assert base == renderer(Seen()).fingerprint == renderer(Seen(), model="other").fingerprint
    assert base == renderer(Seen()).prompt(said(Text("a")), 0.0).fingerprint
    other = copy(TOKENIZER)
    other.vocabulary = replace(TOKENIZER.vocabulary, fingerprints={"vocabulary": "0" * 64})
    changed = {
        base,
        Renderer(other, Seen(), Maker(), model="m").fingerprint,
        renderer(Seen(source="another")).fingerprint,
        renderer(Seen(), revision="r").fingerprint,
    }
    assert len(changed) == 4
