"""Questions that are answered at once about text, ids and models, and their answers. No wire names.

What a codec cannot know itself (another protocol, a model's tokenizer, a key) stands here as it was
sent; core/lookups.py finds the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.events import Event
from tokenwire.core.field_rule import How
from tokenwire.core.prompt import Phase, Prompt
from tokenwire.core.token_ids import TokenIds

__all__ = (
    "Capabilities",
    "CapabilityTable",
    "Detokenize",
    "Detokenized",
    "FieldUse",
    "ForeignRequest",
    "ModelCapabilities",
    "Parse",
    "ParseOptions",
    "Parsed",
    "Render",
    "RenderedCall",
    "Tokenize",
    "Tokenized",
)


class ForeignRequest(Struct, frozen=True):
    """A request of another protocol, not read yet."""

    protocol: str
    """A codec's name."""
    body: bytes
    headers: Mapping[str, str] = {}


class Tokenize(Struct, frozen=True, tag="tokenize"):
    """Text, or the prompt of another protocol's request, to ids: one of the two is set."""

    model: str = ""
    """"": the only one that is served."""
    text: str | None = None
    request: ForeignRequest | None = None
    add_special: bool = True
    """Put around `text` what the tokenizer puts around a text."""
    parse_special: bool | None = None
    """Whether spellings of special tokens in `text` become them. None: as the model is set."""
    spell: bool = False
    """Say each id's text too."""


class Tokenized(Struct, frozen=True):
    """`spelled` is empty unless it was asked for."""

    ids: TokenIds
    context_length: int
    spelled: tuple[str, ...] = ()


class Detokenize(Struct, frozen=True, tag="detokenize"):
    """Ids to text."""

    ids: tuple[int, ...]
    model: str = ""


class Detokenized(Struct, frozen=True):
    """The text, special tokens as they are spelled."""

    text: str


class Render(Struct, frozen=True, tag="render"):
    """What would another protocol's request be asked of its model?"""

    request: ForeignRequest


class RenderedCall(Struct, frozen=True):
    """The prompts (several where the protocol has several in one call), with spans; and each id's
    own text, half a character as U+FFFD."""

    model: str
    prompts: tuple[Prompt, ...]
    spelled: tuple[tuple[str, ...], ...]
    ignored: tuple[str, ...] = ()


class ParseOptions(Struct, frozen=True):
    """What a parser has to know of the call whose answer it reads."""

    tools: tuple[ToolSpec, ...] = ()
    parse_tools: bool = True
    parallel: bool = True
    reasoning: bool = True
    phase: Phase = "content"
    """Where the prompt ended."""
    stops: tuple[str, ...] = ()
    include_stop: bool = False


class Parse(Struct, frozen=True, tag="parse"):
    """Ids, or text, of a model's answer to events: all of it, or a piece that goes on from `state`.

    A `state` holds model and options; what is said of them beside it is refused by the codec.
    """

    model: str = ""
    ids: tuple[int, ...] | None = None
    text: str | None = None
    options: ParseOptions = ParseOptions()
    state: bytes | None = None
    finish: Literal["stop", "length"] | None = "stop"
    """How the answer ended; None: it goes on, and a state is given back."""


class Parsed(Struct, frozen=True):
    """`state` is sealed, for whoever asks to go on; None when the answer is over."""

    events: tuple[Event, ...]
    fingerprint: str
    """Of template, tokenizer and model revision: a state is good for this one alone."""
    state: bytes | None = None


class Capabilities(Struct, frozen=True, tag="capabilities"):
    """What becomes of each field of each protocol: of one model, or (None) of all."""

    model: str | None = None


class FieldUse(Struct, frozen=True):
    """A row of a protocol's table, with what this model's engine and dialect make of it."""

    name: str
    how: How
    what: str = ""
    lacks: tuple[str, ...] = ()
    """What the engine would have to declare, or the dialect to do ("dialect:...")."""


class ModelCapabilities(Struct, frozen=True):
    """One model as a whole."""

    name: str
    aliases: tuple[str, ...]
    context_length: int
    tasks: tuple[str, ...]
    dialect: str
    why: str
    """Why this dialect."""
    fingerprint: str
    engine: tuple[str, ...]
    """Capabilities that the engine declares; empty while it loads."""
    is_ready: bool
    protocols: Mapping[str, tuple[FieldUse, ...]]
    embedding_size: int | None = None
    """Numbers in a vector, where it makes some and says so."""


class CapabilityTable(Struct, frozen=True):
    """The models that were asked for."""

    models: tuple[ModelCapabilities, ...]
