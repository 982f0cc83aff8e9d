"""A dialogue to a prompt: hide, render, encode, and find where the answer starts. Pure.

The pipeline's first half, made once a model. Knows no engine and no protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, final

from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core import fingerprint
from tokenwire.core.cache_marks import cache_marks
from tokenwire.core.call import CacheMarker
from tokenwire.core.custom_calls import as_functions
from tokenwire.core.dialect_powers import DialectPowers
from tokenwire.core.dialogue import Audio, Dialogue, Document, Image, Role, Text, ToolResult, Turn
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.history import lift_reasoning
from tokenwire.core.joints import joints
from tokenwire.core.media_parts import MediaParts, Placed
from tokenwire.core.ports.dialect import MediaProcessor, ParserMaker, Template
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import CacheMark, Prompt, Segments, Shields
from tokenwire.core.prompt_encoder import Encoding, PromptEncoder, turn_mark
from tokenwire.core.shield import Shield, restored
from tokenwire.core.spans import segment, spans_of
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import MediaItem

__all__ = ("Rendered", "Renderer")

SAMPLE_ROLES: Final[tuple[Role, ...]] = ("user", "assistant", "user")
CONTROL: Final = re.compile(r"<[|\uff5c].*[|\uff5c]>")
"""Added tokens that steer a model though their vocabulary calls them plain (Qwen's for FIM)."""


class Rendered(Struct, frozen=True):
    """A prompt whose text is still to be encoded, so that a thread may do it."""

    text: str
    shields: Shields
    dialogue: Dialogue
    now: float
    placed: Placed = Placed()
    """Pictures and recordings: as code points in `dialogue`, as placeholders in `text`."""
    media: tuple[MediaItem, ...] = ()
    """In the order of `text`."""


@final
class Renderer:
    """`render` then `finish`; `prompt` does both."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: Template,
        parser: ParserMaker,
        *,
        model: str,
        revision: str = "",
        media: MediaProcessor | None = None,
    ) -> None:
        """`media`: None: the model takes text alone."""
        self.tokenizer = tokenizer
        self._template = template
        self._parser = parser
        self._model = model
        self.powers = DialectPowers(template, parser)
        added = tokenizer.vocabulary.added
        special = (token.text for token in added if token.special or CONTROL.fullmatch(token.text))
        self._media = None if media is None else MediaParts(media, tokenizer, model=model)
        placeholders = () if self._media is None else self._media.spellings
        spellings = (*special, *parser.markers, *placeholders)
        self.shield = Shield(spellings, joints(template, spellings))
        parts: Mapping[str, str] = {
            **tokenizer.vocabulary.fingerprints,
            "chat_template": fingerprint.chat_template(template.source),
            "revision": revision,
        }
        self.fingerprint = fingerprint.render(parts)
        self.encoder = PromptEncoder(tokenizer, turn_mark(tokenizer, self._sample()))

    def prompt(
        self, dialogue: Dialogue, now: float, *, tail: str = "", spans: bool = False
    ) -> Prompt:
        """Raises RequestError for what the template refuses or the model cannot take."""
        rendered = self.render(dialogue, now, tail=tail)
        ids = self.encoder.ids(rendered.text, rendered.shields)
        return self.expand(rendered, self.finish(rendered, ids, spans=spans))

    @property
    def media(self) -> MediaProcessor | None:
        """What pictures and recordings become; None: there can be none."""
        return None if self._media is None else self._media.processor

    def render(
        self, dialogue: Dialogue, now: float, *, tail: str = "", media: bool = True
    ) -> Rendered:
        """The text. `tail` is put at its end unless it already ends so. `media`: whether the engine
        takes what the renderer can write."""
        if not dialogue.generation_prompt and not self._template.is_open_ended:
            raise RequestError(
                f"model {self._model!r} cannot be asked without the beginning of its answer",
                param="add_generation_prompt",
                code="unsupported_value",
            )
        placed = Placed()
        if media and self._media is not None:
            dialogue, placed = self._media.place(dialogue)
        dialogue = as_functions(self._plain_documents(dialogue))
        dialogue = lift_reasoning(
            dialogue, self._parser.reasoning_start, self._parser.reasoning_end
        )
        hidden, shields = self.shield.hide(dialogue)
        text, items = self._spelled(self._template.render(hidden, now).text, placed)
        if tail and not text.endswith(tail):
            text += tail
        return Rendered(text, shields, hidden, now, placed, items)

    def _spelled(self, text: str, placed: Placed) -> tuple[str, tuple[MediaItem, ...]]:
        return (text, ()) if self._media is None else self._media.spell(text, placed)

    def _again(self, rendered: Rendered, dialogue: Dialogue) -> str:
        """Another dialogue with the same pictures, rendered alike."""
        text = self._template.render(dialogue, rendered.now).text
        return self._spelled(text, rendered.placed)[0]

    def expand(self, rendered: Rendered, prompt: Prompt) -> Prompt:
        """The prompt as the engine takes it: a picture's one placeholder is as many tokens as it
        takes. After marks and spans are found."""
        if self._media is None or not rendered.media:
            return prompt
        return self._media.expand(prompt, rendered.media)

    def finish(self, rendered: Rendered, ids: TokenIds, *, spans: bool = False) -> Prompt:
        """The prompt, once its text is encoded."""
        prompt = Prompt(
            ids=ids,
            text=restored(rendered.text, rendered.shields),
            phase=self._parser.phase(rendered.text),
            fingerprint=self.fingerprint,
        )
        if not spans:
            return prompt
        segments = self.segments(rendered)
        return replace(prompt, spans=spans_of(segments, rendered.shields, ids, self.tokenizer))

    def segments(self, rendered: Rendered) -> Segments:
        """The text cut by origin, at the price of a second render."""
        return segment(
            rendered.dialogue,
            rendered.text,
            lambda dialogue: self._again(rendered, dialogue),
        )

    def text_at(self, rendered: Rendered, now: float) -> str:
        """What the text would be at another time (Unix seconds)."""
        return self._template.render(rendered.dialogue, now).text

    def marks(
        self, rendered: Rendered, encoding: Encoding, markers: Sequence[CacheMarker]
    ) -> tuple[CacheMark, ...]:
        """Where the parts that `markers` name end in the prompt's ids."""
        return cache_marks(
            markers,
            rendered.dialogue,
            rendered.text,
            lambda dialogue: self._again(rendered, dialogue),
            pieces=encoding.pieces,
            shields=rendered.shields,
            tokenizer=self.tokenizer,
        )

    def _sample(self) -> str:
        """A dialogue of a few turns as this template writes it; "" where it refuses."""
        turns = [Turn(role, (Text(role),)) for role in SAMPLE_ROLES]
        try:
            return self._template.render(Dialogue(tuple(turns)), 0.0).text
        except RequestError:
            return ""

    def _plain_documents(self, dialogue: Dialogue) -> Dialogue:
        """Documents that are text become text; other media is refused in words."""
        if all(isinstance(part, Text) for turn in dialogue.turns for part in turn.parts):
            return dialogue
        turns = tuple(
            replace(turn, parts=tuple(self._plain(part, turn.role) for part in turn.parts))
            for turn in dialogue.turns
        )
        return replace(dialogue, turns=turns)

    def _plain(self, part: object, role: str) -> object:
        match part:
            case Document(text=str(text), title=title):
                return Text(f"{title}\n{text}" if title else text)
            case Image() | Audio() | Document():
                kind = type(part).__name__.lower()
                raise RequestError(
                    f"model {self._model!r} takes no {kind} input, but a {role} message holds one",
                    kind=ErrorKind.INVALID_REQUEST,
                    param="messages",
                    code="unsupported_content",
                )
            case ToolResult():
                return replace(
                    part,
                    parts=tuple(self._plain(inner, role) for inner in part.parts),
                )
        return part
