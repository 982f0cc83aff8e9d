"""Writes the tables of these documents that are drawn from code, between their markers.

`make docs` runs it; with --check it writes nothing and fails where a table is stale. A marker is a
comment `fields of PROTOCOL`, `settings of ENGINE`, `protocols`, `losses of calls`, `losses of
answers`, `dialects` or `metrics`, and the table ends at a comment `end`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct, json
from msgspec.structs import FieldInfo, fields

from tokenwire.core.answer_losses import ANSWER_LOSSES
from tokenwire.core.call_losses import CALL_LOSSES
from tokenwire.core.dialect_names import ALIASES
from tokenwire.core.errors import ConfigError
from tokenwire.core.field_rule import FieldRule
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.core.server.metric_table import METRICS

DOCS = Path(__file__).parent
NAMES = r"fields of (\w+)|settings of (\w+)|protocols|dialects|metrics|losses of (?:calls|answers)"
BLOCK = re.compile(rf"(<!-- ({NAMES}) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = {name: "tokens" for name in ("tokenize", "detokenize", "render", "parse", "generate")}
"""Protocols whose page is another's."""
TALKERS = ("chat_completions", "messages", "responses", "completions")
"""Protocols between which a call can cross."""


def main(arguments: list[str]) -> int:
    stale = [path for path, _, new in drawn() if new is not None]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is stale: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path, _, new in drawn():
        if new is not None:
            path.write_text(new)
            print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


def drawn() -> Iterator[tuple[Path, list[str], str | None]]:
    """Each document with tables: its path, which tables, and its new text where it is stale."""
    host = Host()
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text()
        names = [found[1] for found in BLOCK.findall(text)]
        if names:
            new = BLOCK.sub(lambda found: _block(host, found), text)
            yield path, names, new if new != text else None


def codecs(host: Host) -> dict[str, Codec]:
    built = {name: host.codecs.build(name, {}, lone_services()) for name in host.codecs}
    return {name: codec for name, codec in built.items() if isinstance(codec, Codec)}


def _block(host: Host, found: re.Match[str]) -> str:
    begin, what, protocol, engine, end = found.groups()
    tables: dict[str, Callable[[], str]] = {
        "protocols": lambda: _protocols(codecs(host)),
        "dialects": lambda: _dialects(host),
        "metrics": _metrics,
        "losses of calls": lambda: _call_losses(codecs(host)),
        "losses of answers": lambda: _answer_losses(codecs(host)),
    }
    if protocol is not None:
        table = _fields(codecs(host)[protocol].fields)
    elif engine is not None:
        table = _settings(host.engines.find(engine).settings)
    else:
        table = tables[what]()
    return f"{begin}\n{table}\n{end}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join("".join(f"| {cell} " if cell else "| " for cell in row) + "|\n" for row in lines)


def _metrics() -> str:
    rows = (
        (
            _code(metric.name + ("_total" if metric.kind == "counter" else "")),
            metric.kind,
            ", ".join(metric.labels),
            metric.help,
        )
        for metric in METRICS.values()
    )
    return _table(("metric", "kind", "labels", "what"), rows)


def _code(text: str) -> str:
    """As code in a cell: line breaks are written out, and a bar is no border."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(_code(text) for text in texts)


def _fields(rules: Iterable[FieldRule]) -> str:
    return _table(
        ("field", "how", "meaning", "needs"),
        ((_code(r.name), r.how, r.what.replace("|", "\\|"), _needs(r)) for r in rules),
    )


def _needs(rule: FieldRule) -> str:
    return f"{_codes(rule.needs)}; else {rule.otherwise}" if rule.needs else ""


def _settings(settings: type[Struct]) -> str:
    return _table(("key", "type", "default", "meaning"), _keys(settings))


def _keys(settings: type[Struct], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Rows of a Struct, and after a field that holds another one, that one's."""
    hints, texts = get_type_hints(settings, include_extras=True), _texts(settings)
    for field in fields(settings):
        hint = hints[field.name]
        key = f"{prefix}{field.encode_name}"
        meaning = texts.get(field.name, "").replace("|", "\\|")
        yield _code(key), _kind(hint), _default(field), meaning
        for inner in (hint, *get_args(hint)):
            if isinstance(inner, type) and issubclass(inner, Struct):
                yield from _keys(inner, f"{key}.")


def _texts(settings: type[Struct]) -> dict[str, str]:
    """What stands under each field."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(settings))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, under in zip(body.body, body.body[1:], strict=False):
        match field, under:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                found[name] = " ".join(str(text).split())
    return found


def _kind(hint: Any) -> str:
    """A type in words: its values or bounds, and no None, which the default says."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _codes(str(value) for value in inner)
    if origin is Annotated:
        bounds = (_bounds(each) for each in inner[1:] if isinstance(each, Meta))
        return ", ".join((_kind(inner[0]), *bounds))
    if NoneType in inner:
        return " or ".join(_kind(each) for each in inner if each is not NoneType)
    if origin is dict:
        return f"table of {_kind(inner[1])}"
    return "table" if issubclass(hint, Struct) else hint.__name__


def _bounds(meta: Meta) -> str:
    limits = (("from", meta.ge), ("above", meta.gt), ("to", meta.le), ("below", meta.lt))
    return " ".join(f"{word} {limit}" for word, limit in limits if limit is not None)


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is NODEFAULT:
        value = None if field.required else field.default_factory()
    if field.required:
        return "required"
    if value is None:
        return "none"
    return _code(value if isinstance(value, str) else json.encode(value).decode())


def _protocols(found: dict[str, Codec]) -> str:
    return _table(
        ("protocol", "routes", "page"),
        (
            (
                _code(name),
                ", ".join(_code(f"{route.method} {route.path}") for route in codec.routes),
                f"[{page(name)}](protocols/{page(name)}.md)",
            )
            for name, codec in sorted(found.items())
        ),
    )


def _call_losses(found: dict[str, Codec]) -> str:
    what = {name: loss.what for name, loss in CALL_LOSSES.items()}
    return _losses(what, {name: found[name].call_losses for name in TALKERS})


def _answer_losses(found: dict[str, Codec]) -> str:
    return _losses(ANSWER_LOSSES, {name: found[name].losses for name in TALKERS})


def _losses(what: Mapping[str, str], declared: Mapping[str, Set[str]]) -> str:
    """Which protocol loses what; what none of them loses is left out."""
    rows = (
        (_code(name), text, *("lost" if name in lost else "" for lost in declared.values()))
        for name, text in what.items()
        if any(name in lost for lost in declared.values())
    )
    return _table(("loss", "what", *map(_code, declared)), rows)


def page(protocol: str) -> str:
    """The page that documents a protocol."""
    return PAGES.get(protocol, protocol)


def _dialects(host: Host) -> str:
    aliases: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        aliases.setdefault(name, []).append(alias)
    rows = []
    for name in sorted(host.dialects):
        dialect = host.dialects.build(name, {}, lone_services())
        assert isinstance(dialect, Dialect)
        spelled = _spelled(host, dialect.parser)
        names, markers = _codes(aliases.get(name, ())), _codes(dialect.template_markers)
        rows.append((_code(name), names, markers, *spelled, _code(dialect.parser)))
    head = ("dialect", "other names", "its templates hold", "ends at", "reasoning", "parser")
    return _table(head, rows)


def _spelled(host: Host, parser: str) -> tuple[str, str]:
    """What ends an answer, and what stands around reasoning."""
    try:
        maker = host.parsers.build(parser, {}, lone_services())
    except ConfigError:
        return "as the checkpoint says", "as the checkpoint says"
    assert isinstance(maker, ParserMaker)
    start, end = maker.reasoning_start, maker.reasoning_end
    return _codes(maker.stop_strings), f"{_code(start)} to {_code(end)}" if start else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
