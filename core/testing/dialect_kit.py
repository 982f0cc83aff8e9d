"""The dialect kit: every law of templates and parsers, as a named check.

    def test_conforms():
        run_dialect_kit(MyTemplate(), MyParserMaker())

Either may be None: a plugin may bring only one. Knows no model family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenwire.core.byte_text import BOS, EOS, PAD, ByteText
from tokenwire.core.dialogue import Turn
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup, Template
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer
from tokenwire.core.prompt import Shields
from tokenwire.core.testing.dialect_parser_laws import PARSER_LAWS
from tokenwire.core.testing.dialect_probe import (
    ANSWERS,
    CALLS,
    THOUGHTS,
    TOOLS,
    DialectProbe,
    parts_of,
)
from tokenwire.core.testing.dialect_template_laws import PAIR_LAWS, TEMPLATE_LAWS, known_stops
from tokenwire.core.testing.laws import LawBroken, run_laws
from tokenwire.core.token_ids import TokenIds

__all__ = ("LAWS", "conform", "conform_parser", "conform_template", "run_dialect_kit")

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
) -> tuple[str, ...]:
    """The laws that hold; those that need what was not given are left out. Raises LawBroken for
    the first that does not.

    `answers`: assistant turns that the template can show and the parser must read again, with
    reasoning and calls of the tool `look_up` where the dialect has them. `tokenizer`: the model's,
    for the laws about tokens. `examples`: how many generated texts a law is checked with. `held`:
    characters of plain text that the parser may hold back. `state_bytes`: of its saved state.
    """

    def probe(law: str) -> DialectProbe:
        return DialectProbe(
            template,
            maker,
            law,
            answers=answers,
            tokenizer=tokenizer,
            examples=examples,
            held=held,
            state_bytes=state_bytes,
        )

    given = [law for law in laws if template is not None or law not in NEED_TEMPLATE]
    given = [law for law in given if maker is not None or law not in NEED_PARSER]
    return run_laws(given, CHECKS, probe)


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed dialect with its default settings; the laws that hold.

    It is tried with calls and with reasoning where it reads any, so a dialect that reads neither is
    checked with text. `known_stops` needs a model's own tokenizer and is left out. Raises
    ConfigError for a dialect that cannot be built without a model's files.
    """
    dialect = host.dialects.build(name, {}, lone_services(), f"dialect.{name}")
    return _conform(_template(host, dialect.template), _maker(host, dialect.parser))


def conform_template(host: Host, name: str) -> tuple[str, ...]:
    """As `conform`, for a template alone."""
    return _conform(_template(host, name), None)


def conform_parser(host: Host, name: str) -> tuple[str, ...]:
    """As `conform`, for a parser alone."""
    return _conform(None, _maker(host, name))


def _template(host: Host, name: str) -> Template:
    return host.templates.build(name, {}, lone_services(), f"template.{name}")


def _maker(host: Host, name: str) -> ParserMaker:
    return host.parsers.build(name, {}, lone_services(), f"parser.{name}")


def _conform(template: Template | None, maker: ParserMaker | None) -> tuple[str, ...]:
    spellings = (*maker.markers, *maker.stop_strings) if maker is not None else ()
    answers = list(ANSWERS)
    if template is not None and maker is not None:
        answers += _read(template, maker, "tool_call", CALLS)
        answers += _read(template, maker, "reasoning", THOUGHTS)
    return run_dialect_kit(
        template,
        maker,
        answers=answers,
        tokenizer=_Bytes(spellings),
        laws=[law for law in LAWS if law != known_stops.__name__],
    )


def _read(
    template: Template, maker: ParserMaker, kind: str, answers: Sequence[Turn]
) -> Sequence[Turn]:
    """The answers, if any part of this kind is read in them; else none."""
    probe = DialectProbe(
        template,
        maker,
        kind,
        answers=answers,
        tokenizer=None,
        examples=1,
        held=0,
        state_bytes=0,
    )
    try:
        texts = [text for _, text in probe.rendered()]
    except LawBroken:
        return ()  # Why: a template may refuse what its family has not.
    setup = ParserSetup(tools=TOOLS)
    found = (parts_of(probe.parse(setup, [text])) for text in texts)
    return answers if any(part.kind == kind for parts in found for part in parts) else ()


class _Bytes(Tokenizer):
    """Bytes, and a dialect's spellings as special tokens: stands in for a model's tokenizer."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._text = ByteText(tuple(dict.fromkeys((BOS, EOS, PAD, *spellings))))
        self.vocabulary = self._text.vocabulary()

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        return self._text.encode(text, shields)

    def token_bytes(self, id: int) -> bytes:
        return self._text.token_bytes(id)
