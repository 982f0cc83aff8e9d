"""Tools and calls as DeepSeek V4 and V4.1 prompts show them. Knows no turns."""

from __future__ import annotations

from typing import Final, final

from tokenwire.core.dialogue import Dialogue, ToolCall, ToolSpec
from tokenwire.core.errors import RequestError
from tokenwire.plugins.dialects.deepseek.json_text import FloatText, load, spaced
from tokenwire.plugins.dialects.deepseek.spelling import Dsml

__all__ = ("CallWriter", "opens_calls", "signature")

CUSTOM: Final = {
    "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]
}  # fmt: skip
"""What a free-form tool is shown to take."""


def opens_calls(dialogue: Dialogue) -> bool:
    """Whether the prompt ends with the opened section: a call has to come."""
    choice = dialogue.tool_choice
    return choice.mode in ("required", "named") or (choice.mode == "allowed" and choice.required)


def signature(tool: ToolSpec, float_text: FloatText) -> str:
    """A tool as one line of JSON. Raises RequestError for parameters that are no JSON."""
    parameters: object = CUSTOM
    if not tool.custom:
        try:
            parameters = load(tool.parameters or "{}")
        except ValueError as error:
            raise RequestError(
                f"tool {tool.name!r}: wanted a JSON Schema in parameters, got text that is no JSON"
                f" that a prompt can show ({error})"
            ) from error
    shown = {"name": tool.name, "description": tool.description or "", "parameters": parameters}
    return spaced(shown, float_text)


@final
class CallWriter:
    """Writes calls in one generation's tags. `empty` stands in a call without arguments."""

    def __init__(self, dsml: Dsml, float_text: FloatText, *, empty: str) -> None:
        self._float_text = float_text
        self._invoke = f'{dsml.open("invoke")} name="'
        self._invoked = f"{dsml.close('invoke')}\n"
        self._parameter = f'{dsml.open("parameter")} name="'
        self._given = f"{dsml.close('parameter')}\n"
        self._empty = empty
        self.begin = f"\n\n{dsml.open(dsml.section)}>\n"
        self.end = dsml.close(dsml.section)

    def section(self, calls: tuple[ToolCall, ...]) -> str:
        return f"{self.begin}{''.join(map(self._call, calls))}{self.end}"

    def _call(self, call: ToolCall) -> str:
        arguments = _arguments(call)
        given = "".join(self._argument(*item) for item in arguments.items()) or self._empty
        return f'{self._invoke}{call.name}">\n{given}{self._invoked}'

    def _argument(self, name: str, value: object) -> str:
        if isinstance(value, str):
            return f'{self._parameter}{name}" string="true">{value}{self._given}'
        written = spaced(value, self._float_text)
        return f'{self._parameter}{name}" string="false">{written}{self._given}'


def _arguments(call: ToolCall) -> dict[str, object]:
    """What is no JSON object is shown whole, as text, under the name `arguments`."""
    if call.custom:
        return {"input": call.arguments}
    try:
        value = load(call.arguments)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": call.arguments}
