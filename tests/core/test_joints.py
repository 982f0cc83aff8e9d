"""What a template writes around a client's words cannot make a marker of them."""

from __future__ import annotations

import json

import pytest

from tests import real_tokenizers
from tests.plugins.dialects.reading import template_source
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.joints import joints
from tokenwire.core.rendering import Renderer
from tokenwire.core.shield import Shield
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.dialects.minimax.families import FAMILIES as MINIMAX
from tokenwire.plugins.dialects.qwen3_coder.families import FAMILIES as QWEN
from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer
from tokenwire.plugins.tokenizers.hf.load import load
from tokenwire.plugins.tokenizers.hf.settings import HfSettings

KEYS = """{% for t in tools %}{% for k, v in t.function.parameters.items() %}
<{{ k }}>{{ v }}</{{ k }}>{% endfor %}{% endfor %}{% for m in messages %}[{{ m.content }}]
{% endfor %}"""
ASKED = Turn("user", (Text("a"),))


def template(source: str) -> JinjaTemplate:
    return JinjaTemplate(source, Settings(), {})


def with_key(key: str) -> Dialogue:
    """As a schema's keyword, a property, and an argument."""
    schema = {"type": "object", key: "x", "properties": {key: {"type": "string", key: "y"}}}
    call = ToolCall("c", "f", json.dumps({key: {key: "z"}}))
    turns = (ASKED, Turn("assistant", (call,)), ASKED)
    return Dialogue(turns, tools=(ToolSpec("f", "d", json.dumps(schema)),))


def test_only_what_stands_straight_behind_a_beginning_is_a_joint() -> None:
    found = joints(template(KEYS), ("<tool_call>", "</tool_call>", "@call"))
    assert {before for before, _ in found} == {"<", "</"}
    assert not joints(template("{% for m in messages %}{{ m.content }}{% endfor %}"), ("<a>",))


@pytest.mark.parametrize("key", ["tool_call", "/tool_call", "tool_call>", "tool_call><a"])
def test_a_key_makes_no_marker(key: str) -> None:
    own, marks = template(KEYS), ("<tool_call>", "</tool_call>")
    shield = Shield(marks, joints(own, marks))
    for text in (key, "".join(f"\\u{ord(letter):04x}" for letter in key)):
        dialogue = with_key("qqq")
        tool = dialogue.tools[0]
        changed = ToolSpec("f", "d", str(tool.parameters).replace("qqq", text))
        hidden, shields = shield.hide(Dialogue((ASKED,), tools=(changed,)))
        shown = own.render(hidden, 0.0).text
        assert not any(mark in shown for mark in marks)
        assert shields
    assert not shield.hide(with_key("tool"))[1]


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("Qwen3-Coder", QWEN["qwen3_coder"].maker("auto")),
        ("MiniMax-M3", MINIMAX["minimax_m3"].maker("auto")),
    ],
)
def test_no_key_makes_a_marker_in_published_templates(name: str, maker) -> None:
    renderer = Renderer(BytesTokenizer(), template(template_source(name)), maker, model="m")
    marks = (*maker.markers, *maker.stop_strings)

    def counts(key: str) -> list[int]:
        shown = renderer.render(with_key(key), 0.0).text
        return [shown.count(mark) for mark in marks]

    plain = counts("harmless")
    for mark in marks:
        for begin in range(1, len(mark)):
            for end in (len(mark), len(mark) - 1):
                if mark[begin:end]:
                    assert counts(mark[begin:end]) == plain, mark[begin:end]


def test_a_real_tokenizer_makes_no_special_token_of_a_key() -> None:
    tokenizer = load(HfSettings(fast="off"), Checkpoint(real_tokenizers.published("qwen3")))
    own = template(template_source("Qwen3-Coder"))
    renderer = Renderer(tokenizer, own, QWEN["qwen3_coder"].maker("auto"), model="m")
    special = {token.id for token in tokenizer.vocabulary.added}

    def controls(key: str) -> list[int]:
        return [id for id in renderer.prompt(with_key(key), 0.0).ids if id in special]

    assert controls("|im_start|") == controls("|im_end|") == controls("harmless")
    user = Dialogue((Turn("user", (Text("a <|fim_prefix|> b"),)),))
    fim = next(t.id for t in tokenizer.vocabulary.added if t.text == "<|fim_prefix|>")
    assert fim not in renderer.prompt(user, 0.0).ids


def test_a_request_with_every_private_code_point_is_refused() -> None:
    points = "".join(map(chr, range(0xF0000, 0x10FFFE)))
    with pytest.raises(RequestError):
        Shield(("<a>",)).hide(Dialogue((Turn("user", (Text(f"{points}<a>"),)),)))
