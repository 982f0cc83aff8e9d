"""The shape that an answer is asked to have, in the fields that OpenAI's protocols share. Knows no
other field.

Their names are those that servers have given them: OpenAI's `response_format`, vLLM's
`structured_outputs` and its older `guided_...`, SGLang's `regex` and `ebnf`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from tokenwire.core.dialogue import ResponseFormat
from tokenwire.core.errors import RequestError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import to_struct

__all__ = (
    "SHAPES",
    "SHAPE_FIELDS",
    "RawShapes",
    "Shaped",
    "member",
    "read_format",
    "write_format",
)

Json: TypeAlias = dict[str, object]
Word: TypeAlias = Annotated[str, Meta(min_length=1)]

SHAPES: Final = (
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_choice",
    "guided_regex",
    "regex",
    "guided_grammar",
    "ebnf",
)
"""Fields that ask for a shape of the answer, under the names that servers have given it."""


class JsonSchema(Struct, frozen=True):
    name: str | None = None
    schema: Json | bool | None = None
    strict: bool | None = None


class ResponseFormatField(Struct, frozen=True):
    """OpenAI's three types, and those that servers of open models share."""

    type: Literal[
        "text",
        "json_object",
        "json_schema",
        "regex",
        "grammar",
        "ebnf",
        "choice",
        "structural_tag",
    ]
    json_schema: JsonSchema | None = None
    regex: Word | None = None
    grammar: Word | None = None
    ebnf: Word | None = None
    choices: Annotated[list[str], Meta(min_length=1)] | None = None


class StructuredOutputs(Struct, frozen=True):
    """vLLM's field of this name: exactly one of its members is set."""

    json: Json | str | None = None
    regex: Word | None = None
    choice: Annotated[list[str], Meta(min_length=1)] | None = None
    grammar: Word | None = None
    json_object: bool | None = None
    structural_tag: str | None = None


SCHEMA_FIELDS: Final = frozenset(("name", "description", "schema", "strict"))
FORMAT_FIELDS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset(("type",)),
    "json_object": frozenset(("type",)),
    "json_schema": frozenset(("type", "json_schema")),
    "regex": frozenset(("type", "regex")),
    "grammar": frozenset(("type", "grammar", "ebnf")),
    "ebnf": frozenset(("type", "grammar", "ebnf")),
    "choice": frozenset(("type", "choices")),
}
OUTPUT_FIELDS: Final = frozenset(StructuredOutputs.__struct_fields__)

SHAPE_FIELDS: Final = (
    FieldRule("response_format", "used", "text, or one of the types below"),
    FieldRule("response_format.type=json_object", "used", "any object", ("grammar:json_object",)),
    FieldRule("response_format.type=json_schema", "used", needs=("grammar:json_schema",)),
    FieldRule(
        "response_format.json_schema.description",
        "ignored",
        "the schema itself is what the model is held to",
    ),
    FieldRule("response_format.type=regex", "used", "its regex", ("grammar:regex",)),
    FieldRule(
        "response_format.type=grammar",
        "used",
        "its grammar, which is EBNF; ebnf is another name of the type and of its member",
        ("grammar:grammar",),
    ),
    FieldRule("response_format.type=choice", "used", "one of its choices", ("grammar:choice",)),
    FieldRule(
        "response_format.type=structural_tag",
        "used",
        "its format, or structures and triggers",
        ("grammar:structural_tag",),
    ),
    FieldRule("structured_outputs", "used", "exactly one of the members below"),
    FieldRule("structured_outputs.json", "used", "a JSON Schema", ("grammar:json_schema",)),
    FieldRule("structured_outputs.json_object", "used", "true", ("grammar:json_object",)),
    FieldRule("structured_outputs.regex", "used", needs=("grammar:regex",)),
    FieldRule("structured_outputs.choice", "used", "a list of texts", ("grammar:choice",)),
    FieldRule("structured_outputs.grammar", "used", "EBNF", ("grammar:grammar",)),
    FieldRule("structured_outputs.structural_tag", "used", "as text", ("grammar:structural_tag",)),
    FieldRule("guided_json", "used", "an older name of it", ("grammar:json_schema",)),
    FieldRule("guided_regex", "used", "an older name of it", ("grammar:regex",)),
    FieldRule("guided_choice", "used", "an older name of it", ("grammar:choice",)),
    FieldRule("guided_grammar", "used", "an older name of it", ("grammar:grammar",)),
    FieldRule("regex", "used", "another name of guided_regex", ("grammar:regex",)),
    FieldRule("ebnf", "used", "another name of guided_grammar", ("grammar:grammar",)),
)
"""Rows of a capability table. Where tools may be called too, any shape takes an engine that keeps
to structural tags and a family whose calls a grammar can hold."""


class Shaped(Protocol):
    """A request with these fields."""

    @property
    def response_format(self) -> Json | None: ...
    @property
    def structured_outputs(self) -> Json | None: ...
    @property
    def guided_json(self) -> Json | str | None: ...
    @property
    def guided_regex(self) -> str | None: ...
    @property
    def guided_choice(self) -> list[str] | None: ...
    @property
    def guided_grammar(self) -> str | None: ...
    @property
    def regex(self) -> str | None: ...
    @property
    def ebnf(self) -> str | None: ...


class RawShapes(Struct, frozen=True):
    """Where JSON text is kept as it was sent: numbers and the order of keys stay what they were."""

    response_format: dict[str, Raw] | None = None
    structured_outputs: dict[str, Raw] | None = None
    guided_json: Raw = Raw(b"")

    def schema(self) -> str:
        return member((self.response_format or {})["json_schema"], "schema")

    def format(self) -> str:
        return msgspec.json.encode(self.response_format).decode()

    def json(self) -> str:
        return bytes((self.structured_outputs or {})["json"]).decode()

    def guided(self) -> str:
        return bytes(self.guided_json).decode()


_raw_object: Final = msgspec.json.Decoder(dict[str, Raw])


def member(raw: Raw, name: str) -> str:
    return bytes(_raw_object.decode(raw)[name]).decode()


def read_format(request: Shaped, raw: RawShapes, ignored: Ignored) -> ResponseFormat:
    """The shape of the visible answer: by the first that is set of SHAPES."""
    if (given := request.response_format) is not None:
        wanted = to_struct(given, ResponseFormatField, at="response_format")
        if wanted.type == "json_schema" and isinstance(inner := given.get("json_schema"), dict):
            ignored.unknown(inner, SCHEMA_FIELDS, "response_format.json_schema")
            if inner.get("description") is not None:
                ignored.add("response_format.json_schema.description")
        if wanted.type != "structural_tag":  # Why not that: it is a constraint as a whole.
            ignored.unknown(given, FORMAT_FIELDS[wanted.type], "response_format")
        return _response_format(wanted, raw)
    if (outputs := request.structured_outputs) is not None:
        ignored.unknown(outputs, OUTPUT_FIELDS, "structured_outputs")
        return _structured(to_struct(outputs, StructuredOutputs, at="structured_outputs"), raw)
    if request.guided_json is not None:
        return _schema(request.guided_json, raw.guided, "guided_json")
    if request.guided_choice is not None:
        return ResponseFormat("choice", choices=tuple(request.guided_choice))
    if (pattern := request.guided_regex or request.regex) is not None:
        return ResponseFormat("regex", pattern)
    if (grammar := request.guided_grammar or request.ebnf) is not None:
        return ResponseFormat("grammar", grammar)
    return ResponseFormat()


def _schema(given: object, raw: Callable[[], str], param: str) -> ResponseFormat:
    """A schema as an object, or as text that holds one."""
    if not isinstance(given, str):
        return ResponseFormat("json_schema", raw())
    try:
        is_schema = isinstance(msgspec.json.decode(given), dict | bool)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        is_schema = False
    if not is_schema:
        raise RequestError(f"{param} must be a JSON Schema, or text that holds one", param=param)
    return ResponseFormat("json_schema", given)


def _response_format(wanted: ResponseFormatField, raw: RawShapes) -> ResponseFormat:
    match wanted.type:
        case "text" | "json_object":
            return ResponseFormat(wanted.type)
        case "json_schema":
            schema = wanted.json_schema
            if schema is None or schema.schema is None:
                raise _no_format("response_format.json_schema.schema")
            return ResponseFormat(
                "json_schema", raw.schema(), name=schema.name, strict=schema.strict
            )
        case "regex":
            return ResponseFormat("regex", _given(wanted.regex, "regex"))
        case "grammar" | "ebnf":
            return ResponseFormat("grammar", _given(wanted.grammar or wanted.ebnf, wanted.type))
        case "choice":
            if wanted.choices is None:
                raise _no_format("response_format.choices")
            return ResponseFormat("choice", choices=tuple(wanted.choices))
        case "structural_tag":
            return ResponseFormat("structural_tag", raw.format())


def _given(text: str | None, name: str) -> str:
    if text is None:
        raise _no_format(f"response_format.{name}")
    return text


def _no_format(param: str) -> RequestError:
    return RequestError(f"{param} is missing", param=param, code="missing_field")


def _structured(wanted: StructuredOutputs, raw: RawShapes) -> ResponseFormat:
    found: list[ResponseFormat] = []
    if wanted.json is not None:
        found.append(_schema(wanted.json, raw.json, "structured_outputs.json"))
    if wanted.regex is not None:
        found.append(ResponseFormat("regex", wanted.regex))
    if wanted.choice is not None:
        found.append(ResponseFormat("choice", choices=tuple(wanted.choice)))
    if wanted.grammar is not None:
        found.append(ResponseFormat("grammar", wanted.grammar))
    if wanted.json_object:
        found.append(ResponseFormat("json_object"))
    if wanted.structural_tag is not None:
        found.append(ResponseFormat("structural_tag", wanted.structural_tag))
    if len(found) != 1:
        raise RequestError(
            f"structured_outputs must set exactly one of its members, not {len(found)}",
            param="structured_outputs",
        )
    return found[0]


def write_format(wanted: ResponseFormat) -> object:
    """`response_format`, as it is read; None for text."""
    match wanted.kind:
        case "text":
            return None
        case "json_object":
            return {"type": "json_object"}
        case "json_schema":
            schema: dict[str, object] = {"schema": msgspec.Raw((wanted.text or "").encode())}
            if wanted.name is not None:
                schema["name"] = wanted.name
            if wanted.strict is not None:
                schema["strict"] = wanted.strict
            return {"type": "json_schema", "json_schema": schema}
        case "choice":
            return {"type": "choice", "choices": wanted.choices}
        case "structural_tag":
            return msgspec.Raw((wanted.text or "").encode())
        case kind:
            return {"type": kind, kind: wanted.text}
