"""Outputs of models that servers have been seen to get wrong, and what must be said of each.

Argues its length: one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

__all__ = ("OUTPUTS", "Output", "function")


class Output(Struct, frozen=True):
    """`pieces` played to a question in the dialect `format`; the rest is what must be answered."""

    name: str
    format: str
    pieces: Sequence[object]
    content: str | None = None
    reasoning: str | None = None
    calls: Sequence[tuple[str, str]] = ()
    """Name and argument text."""
    finish: str = "stop"
    """In the words of chat completions."""
    matched: str | None = None
    """The stop string that ended it."""
    script: Mapping[str, Any] = {}
    body: Mapping[str, Any] = {}
    """More fields of a chat request; Messages gets what it has of them."""
    tools: Sequence[str] = ("check_stock", "page_staff")
    protocols: Sequence[str] = ("chat", "messages")

    @property
    def told(self) -> dict[str, Any]:
        return {"format": self.format, "pieces": self.pieces, "finish": "eos", **self.script}

    @property
    def asked(self) -> dict[str, Any]:
        asked = {"model": self.format, "messages": [{"role": "user", "content": "Any news?"}]}
        if self.tools and self.format.startswith("hermes"):
            asked["tools"] = [function(name) for name in self.tools]
        return {**asked, **self.body}


def function(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as chat completions has it."""
    schema = {"type": "object", "properties": properties or {"item": {"type": "string"}}}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Can {name}", "parameters": schema},
    }


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


STOCK: Final = '{"item": "lantern", "count": 12}'
PAGE: Final = '{"who": ["Ines", "Tom"], "urgent": true}'

OUTPUTS: Final = (
    # --- calls ---
    Output(
        "two calls are two calls, in their order",
        "hermes",
        [call("check_stock", STOCK), "\n" + call("page_staff", PAGE)],
        calls=[("check_stock", STOCK), ("page_staff", PAGE)],
        finish="tool_calls",
    ),
    Output(
        "a call that comes in the same step as the end of another is not lost",
        "hermes",
        [
            call("check_stock", STOCK)[:-15],
            call("check_stock", STOCK)[-15:] + call("page_staff", PAGE),
        ],
        calls=[("check_stock", STOCK), ("page_staff", PAGE)],
        finish="tool_calls",
    ),
    Output(
        "the last brace beside the end marker is kept, whatever stands before it",
        "hermes",
        ['<tool_call>\n{"name": "check_stock", "arguments": {"ids": [4, null', "]}}\n</tool_call>"],
        calls=[("check_stock", '{"ids": [4, null]}')],
        finish="tool_calls",
    ),
    Output(
        "text before a call stays text",
        "hermes",
        ["Let me see.\nOne moment", " please. ", call("check_stock", STOCK)],
        content="Let me see.\nOne moment please. ",
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
    ),
    Output(
        "white space around calls is no text",
        "hermes",
        ["\n \n", call("check_stock", STOCK), "\n\n"],
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
    ),
    Output(
        "an end marker within a string is data",
        "hermes",
        [call("page_staff", '{"note": "write </tool_call> last, <tool_call> first"}')],
        calls=[("page_staff", '{"note": "write </tool_call> last, <tool_call> first"}')],
        finish="tool_calls",
    ),
    Output(
        "characters of several bytes beside markers and in arguments are whole",
        "hermes",
        [
            "склад 🏮<",
            'tool_call>\n{"name": "check_stock", "argu',
            'ments": {"item": "提灯 🏮"}}\n</tool_call>',
        ],
        content="склад 🏮",
        calls=[("check_stock", '{"item": "提灯 🏮"}')],
        finish="tool_calls",
    ),
    Output(
        "numbers come out as they were written",
        "hermes",
        [call("check_stock", '{"id": 90071992547409931, "price": 1.50, "far": 1e300, "none": -0}')],
        calls=[
            ("check_stock", '{"id": 90071992547409931, "price": 1.50, "far": 1e300, "none": -0}')
        ],
        finish="tool_calls",
    ),
    Output(
        "a number that no double holds comes out as it was written",
        "hermes",
        [call("check_stock", '{"id": 90071992547409931, "price": 1.50, "far": 1e400, "none": -0}')],
        calls=[
            ("check_stock", '{"id": 90071992547409931, "price": 1.50, "far": 1e400, "none": -0}')
        ],
        finish="tool_calls",
        # Why chat alone: Messages gives an object, and no reader takes this number back in one.
        protocols=("chat",),
    ),
    Output(
        "empty arguments are an empty object",
        "hermes",
        [call("check_stock", "{}")],
        calls=[("check_stock", "{}")],
        finish="tool_calls",
    ),
    Output(
        "no arguments are an empty object",
        "hermes",
        ['<tool_call>\n{"name": "check_stock"}\n</tool_call>'],
        calls=[("check_stock", "{}")],
        finish="tool_calls",
    ),
    Output(
        "markers that are special tokens are markers all the same",
        "hermes",
        ["<tool_call>", f'\n{{"name": "check_stock", "arguments": {STOCK}}}\n', "</tool_call>"],
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        script={"special": ["<tool_call>", "</tool_call>"]},
    ),
    Output(
        "the same, where the client would have special tokens hidden",
        "hermes",
        ["<tool_call>", f'\n{{"name": "check_stock", "arguments": {STOCK}}}\n', "</tool_call>"],
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        script={"special": ["<tool_call>", "</tool_call>"]},
        body={"skip_special_tokens": True},
    ),
    Output(
        "a second call is left out where one is allowed, and is no text",
        "hermes",
        [call("check_stock", STOCK), "\n", call("page_staff", PAGE), " done"],
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        body={"parallel_tool_calls": False},
    ),
    Output(
        "where no tool may be called, what looks like a call is text",
        "hermes",
        ["Write ", call("check_stock", STOCK), " to ask."],
        content="Write " + call("check_stock", STOCK) + " to ask.",
        body={"tool_choice": "none"},
    ),
    Output(
        "a call that was cut off in its arguments is never completed",
        "hermes",
        ['<tool_call>\n{"name": "check_stock", "arguments": {"item": "lan'],
        calls=[("check_stock", '{"item": "lan')],
        finish="length",
        script={"finish": "length"},
    ),
    Output(
        "a call that was cut off before its name is whole is text",
        "hermes",
        ["So: ", '<tool_call>\n{"name": "check_st'],
        content='So: <tool_call>\n{"name": "check_st',
        finish="length",
        script={"finish": "length"},
    ),
    # --- reasoning ---
    Output(
        "an answer begins in reasoning where the prompt has opened it",
        "think",
        ["count the", " lamps</th", "ink>\n\nTwelve."],
        content="Twelve.",
        reasoning="count the lamps",
        script={"prompt_tail": "<think>\n"},
    ),
    Output(
        "space within reasoning and answer is kept to the letter",
        "think",
        ["<think>if a:\n", "    b\n\n  c</think>\n\n", "  1. x\n", "     y \n"],
        content="  1. x\n     y \n",
        reasoning="if a:\n    b\n\n  c",
    ),
    Output(
        "markers of reasoning later in the answer are text",
        "think",
        ["<think>r</think>", "Close it with </think>, open it with <think>."],
        content="Close it with </think>, open it with <think>.",
        reasoning="r",
    ),
    Output(
        "a stray end of reasoning is not shown",
        "think",
        ["</think>", "\n\nGood morning"],
        content="Good morning",
        script={"prompt_tail": "<think>\n\n</think>\n\n"},
        body={"chat_template_kwargs": {"enable_thinking": False}},
    ),
    Output(
        "reasoning is whole where its end shares a piece with a call",
        "hermes+think",
        ["<think>ask the", f" shelf.</think>{call('check_stock', STOCK)}"],
        reasoning="ask the shelf.",
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
    ),
    Output(
        "a draft of a call in closed reasoning is reasoning",
        "hermes+think",
        ["<think>first ", call("page_staff", PAGE), " no</think>", call("check_stock", STOCK)],
        reasoning=f"first {call('page_staff', PAGE)} no",
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
    ),
    Output(
        "a call in reasoning that is never closed counts",
        "hermes+think",
        ["I should ask. ", call("check_stock", STOCK)],
        reasoning="I should ask. ",
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        script={"prompt_tail": "<think>\n"},
    ),
    # --- stop strings ---
    Output(
        "no part of a stop string is sent",
        "plain",
        ["1 2 H", "ALT_", "HERE 3", " 4"],
        content="1 2 ",
        matched="HALT_HERE",
        body={"stop": ["HALT_HERE"]},
    ),
    Output(
        "of several stop strings the first in the text ends it",
        "plain",
        ["left $", "$ right %%"],
        content="left ",
        matched="$$",
        body={"stop": ["%%", "$$"]},
    ),
    Output(
        "what only begins like a stop string is sent after all",
        "plain",
        ["Hi", " all H", "AL", "T_"],
        content="Hi all HALT_",
        body={"stop": ["HALT_HERE"]},
    ),
    Output(
        "a stop string within reasoning stops nothing",
        "think",
        ["p\n\nq</think>", "r\n\ns"],
        content="r",
        reasoning="p\n\nq",
        matched="\n\n",
        script={"prompt_tail": "<think>\n"},
        body={"stop": "\n\n"},
    ),
    Output(
        "text held for a stop string keeps its place before a call",
        "hermes+think",
        ["<think>r</think>No", " way ", call("check_stock", STOCK)],
        content="No way ",
        reasoning="r",
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        body={"stop": ["Note:"]},
    ),
    Output(
        "a stop string within arguments stops nothing",
        "hermes",
        [call("check_stock", STOCK)],
        calls=[("check_stock", STOCK)],
        finish="tool_calls",
        body={"stop": ["lantern"]},
    ),
    Output(
        "a stop string that spells a special token is found, though it is no text",
        "plain",
        ["fine", "<|halt|>", "more"],
        content="fine",
        matched="<|halt|>",
        script={"special": ["<|halt|>"]},
        body={"stop": ["<|halt|>"]},
    ),
    Output(
        "the same, where the client wants to see it",
        "plain",
        ["fine", "<|halt|>", "more"],
        content="fine<|halt|>",
        script={"special": ["<|halt|>"]},
        body={"stop": ["<|halt|>"], "include_stop_str_in_output": True},
        protocols=("chat",),
    ),
    Output(
        "what was held when such a token comes is sent before",
        "hermes",
        ["fine <tool", "<|halt|>", "more"],
        content="fine <tool",
        matched="<|halt|>",
        script={"special": ["<|halt|>"]},
        body={"stop": ["<|halt|>"]},
    ),
    # --- text ---
    Output(
        "characters of many bytes are held until they are whole",
        "plain",
        ["hm ", {"hex": "f09fa7"}, {"hex": "91e2"}, {"hex": "808df0"}, {"hex": "9f9a80"}, " é"],
        content="hm 🧑\u200d🚀 é",
    ),
    Output(
        "several ids in a step, or none, change nothing",
        "plain",
        [["uno", " due"], [], [" tre", " quattro"]],
        content="uno due tre quattro",
    ),
    Output(
        "spaces before punctuation are not tidied up",
        "plain",
        ["if x [", " 0 ] , y ", "!", " is n't"],
        content="if x [ 0 ] , y ! is n't",
    ),
    Output(
        "what frames events is text within one",
        "plain",
        ["data: [DO", "NE]\n\nevent: x\r\n: y\r", "\u2028\u2029\u0085end"],
        content="data: [DONE]\n\nevent: x\r\n: y\r\u2028\u2029\u0085end",
    ),
    Output(
        "words of a vocabulary that spells spaces keep them, and the first has none",
        "sentencepiece",
        ["▁one", "▁small", "▁step"],
        content="one small step",
    ),
    Output(
        "pieces of nothing send nothing",
        "plain",
        ["", "", "o", "", "k", ""],
        content="ok",
    ),
    Output("an answer of nothing is an answer", "plain", [], content=""),
    Output(
        "an answer of blanks is text",
        "plain",
        [" ", "\n"],
        content=" \n",
    ),
)
