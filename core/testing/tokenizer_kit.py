"""The tokenizer kit: every law of the tokenizer port, as a named check.

    def test_conforms():
        run_tokenizer_kit(MyTokenizer(...))

Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from tokenwire.core.detokenizer import Detokenizer
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.testing.laws import run_laws
from tokenwire.core.testing.tokenizer_laws import LAWS as CHECKS
from tokenwire.core.testing.tokenizer_probe import TEXTS, MakeMachine, TokenizerProbe

__all__ = ("LAWS", "conform", "run_tokenizer_kit")

LAWS: tuple[str, ...] = tuple(law.__name__ for law in CHECKS)
"""Their names, in the order in which they are checked."""


def run_tokenizer_kit(
    tokenizer: Tokenizer,
    *,
    texts: Iterable[str] = TEXTS,
    markers: Iterable[str] = (),
    normal: Callable[[str], str] = str,
    machine: MakeMachine = Detokenizer,
    lacks: Callable[[str], bool] = lambda letter: False,
    laws: Iterable[str] = LAWS,
    examples: int = 50,
) -> tuple[str, ...]:
    """The laws that hold; those about special tokens are left out where there are none. Raises
    LawBroken for the first that does not.

    `markers`: spellings to shield that are not marked special. `normal`: what the model's own
    normaliser makes of a text (`str`: nothing), where encoding is not lossless. `machine` makes the
    detokenizer under test. `lacks`: whether a character is none that the vocabulary can spell;
    texts with one are left out. `examples`: how many generated texts a law is checked with.
    """
    texts, markers = tuple(texts), tuple(markers)

    def probe(law: str) -> TokenizerProbe:
        return TokenizerProbe(
            tokenizer,
            law,
            texts=texts,
            markers=markers,
            normal=normal,
            machine=machine,
            lacks=lacks,
            examples=examples,
        )

    return run_laws(laws, {law.__name__: law for law in CHECKS}, probe)


def conform(host: Host, name: str) -> tuple[str, ...]:
    """Runs the kit for an installed tokenizer with its default settings; the laws that hold.

    Raises ConfigError for one that cannot be built without a model's files.
    """
    services = lone_services()
    if "memory" in host.stores:
        services = replace(services, scripts=ScriptBook(host.build("store", "memory")))
    return run_tokenizer_kit(host.tokenizers.build(name, {}, services, f"tokenizer.{name}"))
