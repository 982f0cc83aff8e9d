"""The codec kit over this codec: a prompt of text, of ids, and several of them."""

from __future__ import annotations

import pytest

from tokenwire.core.call import Call, Output, RawPrompt, Stopping
from tokenwire.core.host import Host
from tokenwire.core.testing.codec_kit import LAWS, conform, run_codec_kit
from tokenwire.plugins.protocols import completions
from tokenwire.plugins.protocols.completions.codec import Completions
from tokenwire.plugins.protocols.completions.decode import NO_DIALOGUE

TEXT = Call("m", NO_DIALOGUE, stopping=Stopping(max_tokens=16), prompts=(RawPrompt("hi"),))
IDS = Call(
    "m",
    NO_DIALOGUE,
    stopping=Stopping(max_tokens=5, strings=("x",)),
    prompts=(RawPrompt(ids=(1, 2)), RawPrompt(ids=(3,))),
    output=Output(n=2, logprobs=0, prompt_logprobs=0, echo=True, stream=True, usage=False),
)
EXAMPLES = {
    b'{"model":"m","prompt":"hi"}': TEXT,
    b'{"model":"m","prompt":[[1,2],[3]],"n":2,"logprobs":0,"echo":true,"stream":true,'
    b'"max_tokens":5,"stop":"x"}': IDS,
}


@pytest.mark.parametrize("law", LAWS)
def test_conforms(law):
    run_codec_kit(Completions(), EXAMPLES, laws=[law])


def test_every_law_is_checked_by_name():
    """`tokenwire conform completions`: its client lets the kit check all."""
    host = Host({"completions": completions}, entry_points=False)
    assert conform(host, "completions") == LAWS
