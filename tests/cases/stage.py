"""Plays a request with a told output through the whole flow, and reads the answer back strictly.

`Stage.play` is one request; `Stage.play_all` is one case in every cutting and mode, through all
checks that need no other request at the same time (`checks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.cases import checks
from tests.cases.checks import BROKEN
from tests.cases.cutting import SEEDS, Script, cuttings, prefixes
from tests.cases.history import next_turn, on_others
from tests.cases.played import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Played, compared
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.prompt import Prompt
from tokenwire.core.testing.client import LocalClient, Response

__all__ = (
    "CHAT",
    "COMPLETIONS",
    "FORMATS",
    "HINTS",
    "MESSAGES",
    "RESPONSES",
    "Played",
    "Stage",
    "compared",
)

FORMATS = (
    "plain",
    "hermes",
    "think",
    "hermes+think",
    "sentencepiece",
    "harmony",
    "qwen3_coder",
    "kimi",
    "llama3_json",
    "json_array",
)
HINTS = ("format", "grammar", "prompt_has")
"""Of a case's output, what is no part of a script."""
SCRIPTS = 2000
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Stage:
    """A deployment with one model a dialect, each on the mock and the script tokenizer."""

    def __init__(self, context_length: int = 8192) -> None:
        engine = {"context_length": context_length}
        models = tuple(
            ModelConfig(
                name=name,
                engine=PluginUse("mock", engine),
                tokenizer=PluginUse("script"),
                dialect=name,
            )
            for name in FORMATS
        )
        self.client = LocalClient(Config(server=ServerConfig(debug=True), models=models))
        self._names = count()

    def __enter__(self) -> Stage:
        self.client.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.client.__exit__(*error)

    def script(self, script: Script) -> dict[str, str]:
        """Put it under a fresh name -> the header that asks for it."""
        # Why so few names: a book of scripts is bounded.
        name = f"case-{next(self._names) % SCRIPTS}"
        self.client.script(name, {key: script[key] for key in script if key not in HINTS})
        return {"x-mock-script": name}

    def play(self, path: str, body: object, script: Script | None = None) -> Played:
        headers = {} if script is None else self.script(script)
        return Played(path, self.client.post(path, body, headers))

    def prompt(self, response: Response) -> Prompt:
        """What the request was rendered to."""
        recent = self.client.deployment.recent_prompt(response.headers["x-request-id"])
        assert recent is not None
        return recent.prompt

    def play_all(
        self,
        path: str,
        body: Mapping[str, Any],
        script: Script,
        *,
        hides: str = BROKEN,
        seeds: range = SEEDS,
    ) -> Played:
        """The unary answer to the output as it was given, once every check has passed.

        `hides`: a text that no answer holds.
        """
        given = self.play(path, _mode(path, body, stream=False, is_given=True), script)
        free = self.play(path, _mode(path, body, stream=False, is_given=False), script)
        for name, cut in cuttings(script, seeds):
            wanted = given if name == "given" else free
            headers = self.script(cut)
            both = []
            for stream in (False, True):
                asked = _mode(path, body, stream=stream, is_given=name == "given")
                played = checks.one_ending(path, self.client.post(path, asked, headers))
                both.append(played)
                try:
                    checks.no_leak(played.response, hides)
                    checks.cut_invariance(wanted, played)
                except AssertionError as error:
                    error.add_note(f"cut {name}, {'stream' if stream else 'unary'}")
                    raise
            checks.mode_equality(*both)
            if name == "given" and given.status == 200:
                checks.official_clients(body, both[0].response, both[1].response, given)
        if given.status == 200:
            self._grow(path, body, script)
            self._go_on(path, body, script)
        return given

    def _grow(self, path: str, body: Mapping[str, Any], script: Script) -> None:
        """What has been sent at some moments: an engine that fails there shows it."""
        asked = _mode(path, body, stream=True, is_given=False)
        sent = [self.play(path, asked, part).message for part, _ in prefixes(script)]
        stops = body.get("stop", body.get("stop_sequences")) or ()
        checks.append_only(
            sent,
            [left for _, left in prefixes(script)],
            (stops,) if isinstance(stops, str) else stops,
        )

    def _go_on(self, path: str, body: Mapping[str, Any], script: Script) -> None:
        """Sends the answer back."""
        first = self.play(path, _mode(path, body, stream=False, is_given=True), script)
        prompt = self.prompt(first.response)
        tail = script.get("prompt_tail", "")
        ids = prompt.ids[: len(prompt.ids) - len(tail.encode())]
        body_ = next_turn(path, body, first.response.json())
        if body_ is not None:
            self._second(path, body_, ids)
        for other, asked in on_others(path, body, first.message):
            self._second(other, asked, ids if path == CHAT and _same_words(body) else ())

    def _second(self, path: str, body: Mapping[str, Any], first: Any) -> None:
        answer = self.play(path, body, {"pieces": ["Well."], "finish": "eos"})
        note = answer.response.headers.get("x-tokenwire-history", "")
        second = self.prompt(answer.response).ids if answer.status == 200 else None
        checks.round_trip(first, answer, second, note)


def _same_words(body: Mapping[str, Any]) -> bool:
    """Whether the prompt comes from nothing but what the other protocols say, too."""
    return not set(body) - {"model", "messages", "tools", "stream", "stream_options", *LIMITS}


def _mode(path: str, body: Mapping[str, Any], *, stream: bool, is_given: bool) -> Mapping[str, Any]:
    asked = {key: value for key, value in body.items() if key != "stream_options"}
    asked["stream"] = stream
    if stream and path in (CHAT, COMPLETIONS):
        asked["stream_options"] = {"include_usage": True}
    if not is_given:
        # Why: other cuttings have more tokens, and the limit is not what they are about.
        asked |= {key: 8000 for key in LIMITS if key in asked or path == COMPLETIONS}
    return asked
