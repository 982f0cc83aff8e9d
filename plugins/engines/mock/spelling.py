"""A constraint to a short text that keeps to it. Knows no ids.

Structural tags are read in xgrammar's form; of what may be anything, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.mock.instance import Unmade, instance
from tokenwire.plugins.engines.mock.pattern import matching

__all__ = ("KINDS", "spelled")

KINDS: Final = ("json_schema", "json_object", "regex", "choice", "structural_tag")
"""The kinds of constraint that the mock keeps to."""

Format: TypeAlias = Mapping[str, Any]


def spelled(constraint: Constraint, free: str) -> str:
    """`free` is what is said where calls may come but need not. Raises ValueError that says why no
    text was found (Unmade and Unmatched are such)."""
    text = constraint.text
    try:
        match constraint.kind:
            case "json_schema":
                return _dumps(instance(json.loads(text)))
            case "json_object":
                return "{}"
            case "regex":
                return matching(text, whole=True)
            case "choice":
                return str(json.loads(text)[0])
            case _:
                shape = json.loads(text)["format"]
                return free if _is_free(shape) else _format(shape)
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"no such constraint is known: {error!r}") from None


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_free(shape: Format) -> bool:
    kind = shape["type"]
    return kind == "any_text" or (kind == "triggered_tags" and not shape.get("at_least_one"))


def _format(shape: Format) -> str:
    kind = shape["type"]
    match kind:
        case "const_string":
            return str(shape["value"])
        case "json_schema":
            return STYLES[shape.get("style", "json")](instance(shape["json_schema"]))
        case "regex":
            return matching(shape["pattern"], whole=True)
        case "any_text":
            return ""
        case "sequence":
            return "".join(map(_format, shape["elements"]))
        case "or":
            return _first(shape["elements"])
        case "tag":
            end = shape["end"] if isinstance(shape["end"], str) else shape["end"][0]
            return f"{shape['begin']}{_format(shape['content'])}{end}"
        case "triggered_tags" | "tags_with_separator":
            return _first(shape["tags"]) if shape.get("at_least_one") else ""
    raise Unmade(f"a {kind!r} is beyond this engine")


def _first(formats: list[Format]) -> str:
    """The first that can be spelled."""
    reason: ValueError = Unmade("there is nothing to choose from")
    for shape in formats:
        try:
            return _format(shape)
        except ValueError as error:
            reason = error
    raise reason


# --- the styles of arguments ----------------------------------------------------------------------


def _members(value: object) -> list[tuple[str, object]]:
    if not isinstance(value, dict):
        raise Unmade("arguments in this style must be an object")
    return list(value.items())


def _bare(value: object) -> str:
    return value if isinstance(value, str) else _dumps(value)


def _qwen(value: object) -> str:
    return "".join(
        f"<parameter={name}>\n{_bare(each)}\n</parameter>\n" for name, each in _members(value)
    )


def _glm(value: object) -> str:
    return "".join(
        f"<arg_key>{name}</arg_key>\n<arg_value>{_bare(each)}</arg_value>\n"
        for name, each in _members(value)
    )


def _minimax(value: object) -> str:
    return "".join(
        f'<parameter name="{name}">{_bare(each)}</parameter>\n' for name, each in _members(value)
    )


def _deepseek(value: object, space: str = "") -> str:
    tag = f"｜DSML｜{space}parameter"  # noqa: RUF001
    return "".join(
        f'<{tag} name="{name}" string="{_dumps(isinstance(each, str))}">{_bare(each)}</{tag}>\n'
        for name, each in _members(value)
    )


def _deepseek_v4_1(value: object) -> str:
    return _deepseek(value, " ")


def _minimax_m3(value: object) -> str:
    """Members that are null are not written by this style."""
    space = "]<]minimax[>["
    match value:
        case dict():
            members = [(name, each) for name, each in value.items() if each is not None]
        case list():
            members = [("item", each) for each in value]
        case _:
            return _bare(value)
    return "".join(f"{space}<{name}>{_minimax_m3(each)}{space}</{name}>" for name, each in members)


def _kimi_k3(value: object) -> str:
    return "".join(
        f'<|open|>argument key="{name}" type="{_kind(each)}"<|sep|>{_bare(each)}'
        "<|close|>argument<|sep|>"
        for name, each in _members(value)
    )


def _kind(value: object) -> str:
    kinds = ((bool, "boolean"), (str, "string"), (dict, "object"), (list, "array"))
    found = next((name for kind, name in kinds if isinstance(value, kind)), "number")
    return "null" if value is None else found


STYLES: Final[Mapping[str, Callable[[object], str]]] = {
    "json": _dumps,
    "qwen_xml": _qwen,
    "glm_xml": _glm,
    "minimax_xml": _minimax,
    "minimax_m3_xml": _minimax_m3,
    "deepseek_xml": _deepseek,
    "deepseek_v4_1_xml": _deepseek_v4_1,
    "kimi_k3_xml": _kimi_k3,
}
