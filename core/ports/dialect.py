"""The dialect port: how one model family is asked, and how its answers are read. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.dialogue import Dialogue, ToolSpec
from tokenwire.core.events import PartDelta, PartEnd, PartStart
from tokenwire.core.prompt import Phase, Piece, Segments

__all__ = (
    "ArgumentStyle",
    "CallGrammar",
    "CallSpelling",
    "Dialect",
    "MediaProcessor",
    "ParamSpelling",
    "Parser",
    "ParserMaker",
    "ParserSetup",
    "PartEvent",
    "Template",
)

PartEvent: TypeAlias = PartStart | PartDelta | PartEnd


class Template(ABC):
    """Asks: a dialogue to the text the model was trained on.

    Laws: pure (the same dialogue and time give the same text); raises nothing but RequestError (a
    template that refuses says why); client text comes out as it went in, or not at all.
    """

    source: str = ""
    """What the fingerprint is taken over; "" where the template is code (then its version)."""
    variables: Collection[str] | None = None
    """What it reads beside turns: "tools", keys of `Dialogue.template_args` that a request may set,
    and names by which reasoning settings are told ("reasoning_effort", "enable_thinking"). None:
    nobody knows."""
    is_open_ended: ClassVar[bool] = False
    """Whether it can leave out the beginning of the answer (`Dialogue.generation_prompt`)."""

    @abstractmethod
    def render(self, dialogue: Dialogue, now: float) -> Segments:
        """The prompt's text, with the beginning of the assistant's turn. `now`: Unix seconds."""


class ParserSetup(Struct, frozen=True):
    """What a parser may know of its call."""

    choice: int = 0
    phase: Phase = "content"
    """Where the prompt ends."""
    tools: tuple[ToolSpec, ...] = ()
    parse_tools: bool = True
    """False: tool_choice none, or no tools: tool-shaped text is text."""
    reasoning: bool = True
    """False: the answer has no reasoning; its markers are dropped or text."""


class Parser(ABC):
    """Reads: one choice's pieces to part events.

    Laws: any cutting of the text into pieces gives the same parts; nothing raises, whatever the
    pieces; what cannot be parsed is passed on as text; a call that was cut off ends with
    `complete=False` and is never repaired; deltas are never empty; the order is `events.ORDER`'s;
    held-back text is bounded by the longest marker (or one call's header).
    """

    phase: Phase
    """Of the next piece; the pipeline counts reasoning tokens by it."""

    @abstractmethod
    def push(self, piece: Piece) -> Sequence[PartEvent]:
        """Events that this piece makes certain; often none or one."""

    @abstractmethod
    def flush(self) -> Sequence[PartEvent]:
        """The end: what was held back, and the end of the open part. A second call gives ()."""

    @abstractmethod
    def save(self) -> object:
        """State as msgpack-able builtins: hundreds of bytes, flat in the output's length (an
        unfinished call's JSON cursor aside)."""

    @abstractmethod
    def restore(self, state: object) -> None:
        """Take what `save` gave, in a fresh parser of the same setup. Raises
        msgspec.ValidationError for anything else."""


ArgumentStyle: TypeAlias = Literal[
    "json",
    "qwen_xml",
    "glm_xml",
    "minimax_xml",
    "minimax_m3_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "kimi_k3_xml",
    "parameters",
    "free",
]
"""How arguments of a JSON Schema are spelled: names as in xgrammar's structural tags; `parameters`
by a `ParamSpelling`; `free` as any text."""


class ParamSpelling(Struct, frozen=True):
    """How one parameter is written: `begin`, in which {} is its name, the value, `end`."""

    begin: str
    end: str
    separator: str = ""
    """Between parameters."""
    is_bare: bool = True
    """Whether strings stand as they are; else as JSON. Other values are JSON."""
    has_python_words: bool = False
    """Whether True and False are booleans too, and strings that are not bare may stand in single
    quotes."""


class CallSpelling(Struct, frozen=True):
    """How a call of one tool is written: `begin`, `before`, the arguments, `behind`, `end`."""

    tool: str
    begin: str
    """Marker, name and all, up to the arguments, or to what the model may choose."""
    end: str
    style: ArgumentStyle = "json"
    before: str = ""
    """Regular expression of what the model chooses before the arguments (an id), and of all that
    stands between."""
    behind: str = ""
    """The same, behind them."""
    gap: str = ""
    """White space between the name and the arguments, for where no grammar of the style reads it:
    so that no name goes on as another."""
    excludes: tuple[str, ...] = ()
    """What no bare string may have: it would be read as the call's end."""
    param: ParamSpelling | None = None
    """For the style `parameters`."""


class CallGrammar(Struct, frozen=True):
    """How calls are written, for engines that can hold an answer to a grammar."""

    trigger: str
    """What only a call begins with; "" where nothing tells calls from text, so that a grammar holds
    an answer of calls alone."""
    calls: tuple[CallSpelling, ...]
    begin: str = ""
    end: str = ""
    """Around all calls of an answer."""
    separator: str = ""
    can_join: bool = False
    """Whether the separator, white space, may be missing too."""


class ParserMaker(ABC):
    """Makes a parser for each choice; and says how the family spells things."""

    markers: tuple[str, ...] = ()
    """Spellings that client text must not be able to make, beside the special tokens."""
    stop_strings: tuple[str, ...] = ()
    """Spellings of tokens that end an answer, beside the vocabulary's eos ids."""
    reasoning_start: str = ""
    reasoning_end: str = ""
    """Of a reasoning block; "" where the family has none."""
    reads_calls: bool = True
    """Whether its parsers find calls of tools; False: what the model writes is all text."""

    @abstractmethod
    def parser(self, setup: ParserSetup) -> Parser:
        """A fresh parser."""

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        """How calls of `tools` are written; None where no grammar can hold them."""
        return None

    def phase(self, prompt_text: str) -> Phase:
        """Where the answer starts, from the end of the rendered prompt. Default: an unclosed
        reasoning_start at its very end (white space aside) means reasoning."""
        if self.reasoning_start and prompt_text.rstrip().endswith(self.reasoning_start):
            return "reasoning"
        return "content"


class MediaProcessor(ABC):
    """What stands in a prompt for a picture or recording: `before`, `pad` some times, `after`.

    An engine whose card names the same processor turns the pads into what it sees.
    """

    name: str
    revision: str
    kinds: tuple[str, ...] = ("image",)
    """Of "image", "audio", "document"."""
    before: str = ""
    pad: str
    """Spells one token of the vocabulary."""
    after: str = ""

    @abstractmethod
    def length(self, kind: str, data: bytes) -> int:
        """How many pads, from the header alone. Raises RequestError for what it cannot read."""


ReasoningStyle: TypeAlias = Literal["auto", "none", "think", "implicit"]
"""`auto`: the family's habit. `think`: a block that the answer or the prompt opens. `implicit`: the
answer begins inside a block that nothing opens. `none`: there is no reasoning."""


class Dialect(Struct, frozen=True):
    """A family: names of a template plugin and a parser plugin, and its habits."""

    name: str
    template: str
    """For checkpoints that bring no chat template of their own (one that does is rendered by the
    template plugin `jinja`)."""
    parser: str
    media: MediaProcessor | None = None
    template_markers: tuple[str, ...] = ()
    """Texts that a chat template of this family holds, all of them: by these `dialect = "auto"`
    knows it."""
    model_types: tuple[str, ...] = ()
    """What config.json calls models of this family (model_type or an architecture), for those that
    bring no chat template, or one that shows nothing. Not for types that other families share."""
    sign: str = ""
    """What else in the checkpoint at hand asks for this dialect, in words; its builder may look."""
    is_vague: bool = False
    """Whether its template markers say little, so that any sign of another family goes before."""
