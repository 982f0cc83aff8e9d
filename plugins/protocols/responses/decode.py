"""A Responses request to a Call: which wire field is which of ours. Knows no output.

What is refused, and why: values out of the ranges in `schema`; prompt templates (they are kept by
OpenAI, not here); fields that contradict one another. What nothing uses is listed in `Call.ignored`
and kept as it was written, so that the response can say it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tokenwire.core.call import Hints, Identity, Keeping, Output, Sampling, Stopping
from tokenwire.core.dialogue import Dialogue, ReasoningSettings
from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.plugins.protocols.responses.call import ResponsesCall, read_tools_of, read_turns
from tokenwire.plugins.protocols.responses.items import ItemReader
from tokenwire.plugins.protocols.responses.metadata import check_metadata
from tokenwire.plugins.protocols.responses.schema import (
    IGNORED_FIELDS,
    REQUEST_FIELDS,
    CountRequest,
    Json,
    Reasoning,
    Request,
    StreamOptions,
    TextConfig,
)
from tokenwire.plugins.protocols.responses.tools import (
    ToolReader,
    read_choice,
    read_format,
)

__all__ = ("SEALED", "decode_call", "decode_count")

T = TypeVar("T", bound=Struct)

OWN: Final = ("input", "model", "stream")
SEALED: Final = "reasoning.encrypted_content"
LOGPROBS: Final = "message.output_text.logprobs"
ID_FIELD: Final = frozenset(("id",))
TIERS: Final = {"priority": 1, "flex": -1}
BOM: Final = b"\xef\xbb\xbf"

_raw: Final = msgspec.json.Decoder(dict[str, Raw])


def decode_call(body: bytes) -> ResponsesCall:
    """Raises RequestError that names field and reason, and nothing else."""
    value = read_object(body)
    return _Reader(value, to_struct(value, Request), body).call()


def decode_count(body: bytes) -> ResponsesCall:
    """Of POST /v1/responses/input_tokens: the fields that make a prompt."""
    value = read_object(body)
    count = to_struct(value, CountRequest)
    fields = {name: getattr(count, name) for name in count.__struct_fields__}
    return _Reader(value, Request(**fields), body).call(counts=True)


class _Reader:
    """One request: what its parts are read into, and what is left of them."""

    def __init__(self, value: Json, request: Request, body: bytes) -> None:
        self._request = request
        self._ignored = Ignored()
        self._extra = self._ignored.unknown(value, REQUEST_FIELDS, "")
        for name in IGNORED_FIELDS & value.keys():
            if value[name] is not None:
                self._ignored.add(name)
        raw = _raw.decode(body.removeprefix(BOM))
        self._given = {name: bytes(text) for name, text in raw.items() if name not in OWN}
        self._summary: str | None = None
        self._tools = ToolReader(self._ignored)
        self._input = bytes(raw["input"]) if request.input is not None else b"[]"

    def call(self, *, counts: bool = False) -> ResponsesCall:
        request = self._request
        self._refuse()
        conversation = _conversation(request.conversation, self._ignored)
        include = frozenset(request.include or ())
        for name in sorted(include - {SEALED, LOGPROBS}):
            self._ignored.add(f"include.{name}")
        keeping = Keeping(
            store=request.store is not False,
            background=bool(request.background),
            conversation=conversation,
        )
        call = ResponsesCall(
            model=request.model,
            dialogue=self._dialogue(),
            sampling=Sampling(temperature=request.temperature, top_p=request.top_p),
            stopping=Stopping(max_tokens=request.max_output_tokens),
            output=self._output(include),
            identity=Identity(
                user=request.safety_identifier or request.user,
                session=request.prompt_cache_key,
            ),
            hints=Hints(priority=self._priority()),
            keeping=None if counts else keeping,
            truncate=request.truncation == "auto",
            extra=self._extra,
            given=self._given,
            input=self._input,
            previous=request.previous_response_id,
            conversation=conversation,
            instructions=request.instructions,
            seals=SEALED in include,
            summarises=self._summary is not None,
            namespaces=self._tools.namespaces,
            searches=self._tools.searches,
        )
        reader = ItemReader(self._ignored)
        items = request.input if isinstance(request.input, list) else None
        turns, needs = read_turns(call, (), reader, items)
        if not turns and not needs:
            raise RequestError(
                "input is missing: a string, or a list of items",
                param="input",
                code="missing_field",
            )
        return replace(
            call,
            dialogue=replace(call.dialogue, turns=turns),
            needs=needs,
            ignored=self._ignored.paths,
            unknown=self._ignored.unknown_paths,
        )

    def _refuse(self) -> None:
        request = self._request
        if request.prompt is not None:
            raise RequestError(
                "prompt names a template that is kept elsewhere: send its text as instructions and"
                " input",
                param="prompt",
                code="unsupported_field",
            )
        if request.previous_response_id is not None and request.conversation is not None:
            raise RequestError(
                "previous_response_id and conversation exclude each other",
                param="previous_response_id",
            )
        if request.background and request.store is False:
            raise RequestError(
                "background needs store: an answer that is not kept could not be fetched",
                param="background",
            )
        if request.stream_options is not None and not request.stream:
            raise RequestError("stream_options needs stream: true", param="stream_options")
        check_metadata(request.metadata)

    def _dialogue(self) -> Dialogue:
        request = self._request
        if request.tools:
            self._tools.read(request.tools, self._given["tools"], "tools")
        if isinstance(request.input, list):
            read_tools_of(self._tools, request.input, self._input)
        tools = self._tools.offered()
        text = self._part(request.text, TextConfig, "text")
        if text is not None and text.verbosity is not None:
            self._ignored.add("text.verbosity")
        wanted = None if text is None else text.format
        return Dialogue(
            (),
            tools=tools,
            tool_choice=read_choice(
                request.tool_choice, request.parallel_tool_calls, tools, self._ignored
            ),
            response_format=read_format(wanted, self._given.get("text", b"{}"), self._ignored),
            reasoning=self._reasoning(),
        )

    def _reasoning(self) -> ReasoningSettings:
        given = self._part(self._request.reasoning, Reasoning, "reasoning")
        if given is None:
            return ReasoningSettings()
        summary = given.summary or given.generate_summary
        self._summary = None if summary == "none" else summary
        if given.effort == "none":
            return ReasoningSettings("off")
        return ReasoningSettings(effort=given.effort)

    def _part(self, value: Json | None, kind: type[T], name: str) -> T | None:
        """An object of the request; what it holds besides is listed."""
        if value is None:
            return None
        self._ignored.unknown(value, frozenset(kind.__struct_fields__), name)
        return to_struct(value, kind, at=name)

    def _output(self, include: frozenset[str]) -> Output:
        request = self._request
        options = self._part(request.stream_options, StreamOptions, "stream_options")
        if options is not None and options.include_obfuscation:
            self._ignored.add("stream_options.include_obfuscation")
        asks = LOGPROBS in include or bool(request.top_logprobs)
        return Output(
            logprobs=(request.top_logprobs or 0) if asks else None, stream=bool(request.stream)
        )

    def _priority(self) -> int:
        return TIERS.get(self._request.service_tier or "", 0)


def _conversation(given: str | Mapping[str, object] | None, ignored: Ignored) -> str | None:
    if given is None or isinstance(given, str):
        return given
    ignored.unknown(given, ID_FIELD, "conversation")
    id_ = given.get("id")
    if not isinstance(id_, str) or not id_:
        raise RequestError(
            "conversation.id is missing", param="conversation.id", code="missing_field"
        )
    return id_
