"""Template `jinja`: renders a checkpoint's own chat template. Knows no tokenizer and no parser.

Pure: the only time is the `now` it is given. Whatever goes wrong in a template comes out as a
RequestError, without its insides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final, final

from jinja2 import meta
from jinja2.environment import Template as Compiled
from jinja2.exceptions import TemplateError
from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue, ToolCall
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.ports.dialect import Template
from tokenwire.core.prompt import Segment, Segments
from tokenwire.plugins.dialects.jinja.continuing import cut, mark
from tokenwire.plugins.dialects.jinja.habits import Habits, Message
from tokenwire.plugins.dialects.jinja.messages import to_messages, to_tools
from tokenwire.plugins.dialects.jinja.meter import METER, Meter, OverBudget
from tokenwire.plugins.dialects.jinja.metering import insert_meter
from tokenwire.plugins.dialects.jinja.probe import probe
from tokenwire.plugins.dialects.jinja.sandbox import Refusal, Sandbox
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.variables import RESERVED, reasoning_variables

__all__ = ("JinjaTemplate",)

PROBE_STEPS: Final = 100_000
PROBE_OUTPUT: Final = 1_000_000
MAX_FORMAT: Final = 256
"""Characters of a time format."""


@final
class JinjaTemplate(Template):
    """A compiled template and what it can take. Safe to use from threads."""

    is_open_ended = True

    def __init__(
        self, source: str, settings: Settings, special_tokens: Mapping[str, str] | None = None
    ) -> None:
        """Raises ConfigError for a template that does not compile."""
        self.source = source
        self._settings = settings
        self._tokens = dict(special_tokens or {})
        self._compiled, self._read = _compile(source)
        self.variables = self._read - (RESERVED - {"tools"})
        self.habits = self._find_habits()

    def render(self, dialogue: Dialogue, now: float) -> Segments:
        if not dialogue.turns:
            raise RequestError("a conversation needs at least one message")
        variables = self._variables(dialogue, now)
        first: RequestError | None = None
        for habits in self._attempts(dialogue):
            try:
                text = self._render_as(dialogue, habits, variables)
                return Segments((Segment(text, "unknown"),))
            except _Retry as retry:
                first = first or retry.error
        assert first is not None
        raise first

    def _render_as(self, dialogue: Dialogue, habits: Habits, variables: dict[str, Any]) -> str:
        messages = to_messages(dialogue, habits)
        tools = to_tools(dialogue.tools, habits)
        if not dialogue.continue_final:
            opens = dialogue.generation_prompt
            return self._run(messages, tools, {**variables, "add_generation_prompt": opens})
        tag, final_text = mark(messages)
        text = self._run(messages, tools, {**variables, "add_generation_prompt": False})
        return cut(text, tag, final_text)

    def _run(
        self, messages: list[Message], tools: list[Message] | None, variables: dict[str, Any]
    ) -> str:
        limits = self._settings
        meter = Meter(max_steps=limits.max_steps, max_output=limits.max_output)
        try:
            text = self._compiled.render(
                {**self._tokens, "documents": None, **variables,
                 "messages": messages, "tools": tools, METER: meter}
            )  # fmt: skip
        except OverBudget as error:
            raise RequestError(
                f"the conversation is too much for the chat template: {error}"
            ) from None
        except Refusal as error:
            said = str(error.message or "")[:2000]
            message = f"the model's chat template refuses this conversation: {said}"
            raise _Retry(RequestError(message)) from None
        except RecursionError:
            raise _Retry(
                RequestError("the conversation is nested too deeply for the chat template")
            ) from None
        except Exception as error:
            # Why all: templates are programs by strangers, and their errors may quote anything.
            what = "TemplateError" if isinstance(error, TemplateError) else type(error).__name__
            message = f"the model's chat template cannot render this conversation ({what})"
            raise _Retry(RequestError(message)) from None
        if not _is_unicode(text):
            raise RequestError("the conversation or a tool's schema holds a lone surrogate")
        if len(text) > limits.max_output:
            raise RequestError(f"the prompt has more than {limits.max_output} characters")
        return text

    def _variables(self, dialogue: Dialogue, now: float) -> dict[str, Any]:
        def strftime_now(format: str) -> str:
            if len(format) > MAX_FORMAT:
                raise ValueError(f"a time format of {len(format)} characters")
            return datetime.fromtimestamp(now, UTC).strftime(format)

        for name in dialogue.template_args:
            if name in RESERVED or name.startswith("_"):
                raise RequestError(f"the template argument {name!r} cannot be set by a request")
        return {
            "strftime_now": strftime_now,
            **reasoning_variables(dialogue.reasoning, self._read),
            # Why a copy: a template may append to a list.
            **deepcopy(dict(dialogue.template_args)),
        }

    def _attempts(self, dialogue: Dialogue) -> Iterator[Habits]:
        """Ways to put the dialogue, the truest first; the next where one failed."""
        habits = self.habits
        yield habits
        calls = [
            part for turn in dialogue.turns for part in turn.parts if isinstance(part, ToolCall)
        ]
        if calls:
            habits = replace(habits, raw_arguments=True)
            yield habits
            habits = replace(habits, short_ids=True)
            yield habits
        if self._settings.merge_system != "never":
            yield replace(habits, merges_roles=True, merges_system=True)
        else:
            yield replace(habits, merges_roles=True)

    def _find_habits(self) -> Habits:
        full = self._settings
        # Why smaller bounds: a load must not hang on a hostile template, whatever the settings say.
        self._settings = replace(
            full,
            max_steps=min(full.max_steps, PROBE_STEPS),
            max_output=min(full.max_output, PROBE_OUTPUT),
        )
        nothing = self._variables(Dialogue(turns=()), 0.0)

        def attempt(messages: list[Message], tools: list[Message] | None) -> str | None:
            try:
                return self._run(messages, tools, {**nothing, "add_generation_prompt": True})
            except (RequestError, _Retry):
                return None

        habits = probe(attempt, full.joiner)
        self._settings = full
        if full.merge_system == "front":
            habits = replace(habits, merges_system=True)
        elif full.merge_system == "never":
            habits = replace(habits, takes_several_systems=True, takes_late_systems=True)
        if full.roles:
            habits = replace(habits, roles={**habits.roles, **full.roles})
        return habits


class _Retry(Exception):
    """The template failed in a way that another shape of the same dialogue might mend."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(error.message)
        self.error = error


def _is_unicode(text: str) -> bool:
    """Whether a tokenizer can take it: an escape in a schema's JSON may spell a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _compile(source: str) -> tuple[Compiled, frozenset[str]]:
    sandbox = Sandbox()
    try:
        variables = meta.find_undeclared_variables(sandbox.parse(source))
        code = sandbox.compile(insert_meter(sandbox.parse(source)), filename="<chat template>")
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise ConfigError(f"chat template, line {line}: {error.message}") from error
    except (RecursionError, SyntaxError, ValueError, OverflowError, MemoryError) as error:
        raise ConfigError(f"chat template: it does not compile ({type(error).__name__})") from error
    compiled = Compiled.from_code(sandbox, code, sandbox.make_globals(None))
    return compiled, frozenset(variables)
