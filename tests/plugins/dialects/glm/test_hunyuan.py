"""Hy3's tags end in a suffix that the checkpoint's chat template names."""

from __future__ import annotations

from tests.plugins.dialects.reading import call, read, template_source
from tokenwire.plugins.dialects.glm.families import hunyuan, suffix_of


def test_the_suffix_of_tags_comes_from_the_template() -> None:
    assert suffix_of(template_source("tencent-Hy3")) == ":opensource"
    assert suffix_of("{%- set HYTK = ':v4' %}") == ":v4"
    assert suffix_of("") == ":opensource"
    text = "<tool_calls:v4>\n<tool_call:v4>f<tool_sep:v4>\n</tool_call:v4>\n</tool_calls:v4>"
    assert read(text, maker=hunyuan(":v4").maker("auto")) == [call("f", "{}")]
