"""The dialect kit: every law of templates and parsers, as a named check.

    def test_conforms():
        run_dialect_kit(MyTemplate(), MyParserMaker())

Either may be None: a plugin may bring only one. Knows no model family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenwire.core.dialogue import Turn
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import ParserMaker, Template
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.testing.dialect_bench import ANSWERS, PORT, DialectBench
from tokenwire.core.testing.dialect_parser_laws import PARSER_LAWS
from tokenwire.core.testing.dialect_template_laws import PAIR_LAWS, TEMPLATE_LAWS
from tokenwire.core.testing.laws import LawBroken

__all__ = ("LAWS", "conform", "run_dialect_kit")

CHECKS = {law.__name__: law for law in (*PARSER_LAWS, *TEMPLATE_LAWS, *PAIR_LAWS)}
NEED_PARSER = frozenset(law.__name__ for law in (*PARSER_LAWS, *PAIR_LAWS))
NEED_TEMPLATE = frozenset(law.__name__ for law in (*TEMPLATE_LAWS, *PAIR_LAWS))
LAWS: tuple[str, ...] = tuple(CHECKS)
"""Their names, in the order in which they are checked."""


def run_dialect_kit(
    template: Template | None,
    maker: ParserMaker | None,
    *,
    answers: Sequence[Turn] = ANSWERS,
    tokenizer: Tokenizer | None = None,
    laws: Iterable[str] = LAWS,
    examples: int = 60,
    held: int = 300,
    state_bytes: int = 1024,
) -> None:
    """Raises LawBroken for the first law that does not hold.

    `answers`: assistant turns that the template can show and the parser must read again, with
    reasoning and calls of the tool `look_up` where the dialect has them. `tokenizer`: the model's,
    for the laws about tokens. `examples`: how many generated texts a law is checked with. `held`:
    characters of plain text that the parser may hold back. `state_bytes`: of its saved state.
    """
    for name in laws:
        if (template is None and name in NEED_TEMPLATE) or (maker is None and name in NEED_PARSER):
            continue
        bench = DialectBench(
            template,
            maker,
            name,
            answers=answers,
            tokenizer=tokenizer,
            examples=examples,
            held=held,
            state_bytes=state_bytes,
        )
        try:
            CHECKS[name](bench)
        except LawBroken:
            raise
        except Exception as error:
            detail = f"wanted no exception, got {type(error).__name__}: {error}"
            raise LawBroken(PORT, name, detail) from error


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed dialect with its default settings; the laws that hold.

    Raises ConfigError for one that cannot be built without a model's files.
    """
    services = lone_services()
    dialect = host.dialects.build(name, {}, services, f"dialect.{name}")
    template = host.templates.build(dialect.template, {}, services, f"template.{dialect.template}")
    maker = host.parsers.build(dialect.parser, {}, services, f"parser.{dialect.parser}")
    run_dialect_kit(template, maker)
    return LAWS
