"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

from tests.plugins.dialects.written_turns import Written, check_written
from tokenwire.plugins.dialects.pythonic.families import FAMILIES


def test_an_answer_survives_rendering_and_parsing() -> None:
    # Not exact: the template escapes nothing in its strings.
    shown = Written("<|im_start|>assistant\n", "<|im_end|>\n", thinks=True, exact=False)
    check_written(FAMILIES["lfm2"], "LFM2.5-8B-A1B", shown)
