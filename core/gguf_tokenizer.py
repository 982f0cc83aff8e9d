"""The tokenizer of a GGUF's metadata: byte-level BPE ("gpt2") and SentencePiece's BPE ("llama").

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Knows no model's sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, final

import msgspec

from tokenwire.core import gguf_pieces, gguf_words
from tokenwire.core.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ("GgufVocabulary",)

T = TypeVar("T")

BYTE_LEVEL, PIECES = "gpt2", "llama"
UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 2, 3, 4, 5
"""Token types of GGUF. Control and unknown ones are special; user-defined ones are added and shown
as text; unused ones fill the vocabulary up to the size of the embedding."""
ADDED = (CONTROL, USER_DEFINED)
ADDED_PIECES = (UNKNOWN, *ADDED)
WHITE = gguf_pieces.SPACE + "\n\t"
"""Runs of these are added tokens and yet made by merges."""

TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>")
"""Tokens that end a turn, whether or not the file says so."""


@final
class GgufVocabulary:
    """What a GGUF says of tokens. Raises ConfigError, which begins with `where`, for a vocabulary
    that is not whole or of a kind that is not known."""

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self._fields = fields
        self._where = where
        self.tokens = self._need("tokens", list[str])
        """By id."""
        self._types = self._need("token_type", list[int])
        if len(self._types) != len(self.tokens):
            raise ConfigError(
                f"{where}: wanted a type for each of {len(self.tokens)} tokens, "
                f"got {len(self._types)}"
            )
        self._kind = self._need("model", str)
        if self._kind not in (BYTE_LEVEL, PIECES):
            raise ConfigError(
                f"{where}: tokenizer.ggml.model: wanted 'gpt2' (byte-level BPE) or 'llama' "
                f"(SentencePiece), got {self._kind!r}: serve the model's Hugging Face folder"
            )

    @property
    def add_bos(self) -> bool:
        """Whether texts begin with bos: as the file says, else as its kind of vocabulary does."""
        default = self._kind == PIECES or self._cut().begins
        return self._get("add_bos_token", bool, default) and self._id("bos") is not None

    @property
    def add_eos(self) -> bool:
        return self._get("add_eos_token", bool, False) and self._id("eos") is not None

    def named(self) -> dict[str, str]:
        """Spellings of bos, eos, pad and unk, as tokenizer_config.json has them."""
        ids = {name: self._id(name) for name in ("bos", "eos", "unk")}
        ids["pad"] = self._id("pad", "padding")
        return {f"{name}_token": self.tokens[id] for name, id in ids.items() if id is not None}

    def turn_ends(self) -> list[int]:
        """Ids of TURN_ENDS that are special or added."""
        return [
            id
            for id, token in enumerate(self.tokens)
            if token in TURN_ENDS and self._types[id] in ADDED
        ]

    def tokenizer(self) -> Tokenizer:
        made = self._byte_level() if self._kind == BYTE_LEVEL else self._pieces()
        self._add_tokens(made)
        self._add_around(made)
        return made

    def _byte_level(self) -> Tokenizer:
        from tokenizers import Tokenizer
        from tokenizers.decoders import ByteLevel
        from tokenizers.models import BPE

        merges = [merge.split(" ", 1) for merge in self._need("merges", list[str])]
        broken = [merge for merge in merges if len(merge) != 2]
        if broken:
            raise ConfigError(
                f"{self._where}: tokenizer.ggml.merges: wanted two tokens with a space between, "
                f"got {broken[0]!r:.80}"
            )
        pairs = [(left, right) for left, right in merges]
        cut = self._cut()
        made = Tokenizer(BPE(self._model_ids(), pairs, ignore_merges=cut.whole_words))
        made.pre_tokenizer = gguf_words.pre_tokenizer(cut)
        normalizer = gguf_words.normalizer(cut)
        if normalizer is not None:
            made.normalizer = normalizer
        made.decoder = ByteLevel()
        return made

    def _pieces(self) -> Tokenizer:
        from tokenizers import Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import Split

        scores = self._need("scores", list[float])
        if len(scores) != len(self.tokens):
            raise ConfigError(
                f"{self._where}: wanted a score for each of {len(self.tokens)} tokens, "
                f"got {len(scores)}"
            )
        prefix = self._get("add_space_prefix", bool, True)
        ids = self._model_ids()
        of: dict[str, float] = {}
        for piece, id in ids.items():
            if self._types[id] not in ADDED_PIECES:
                of[piece] = scores[id]
            elif self._types[id] == USER_DEFINED and not piece.strip(WHITE):
                # Why 0: writers of this format put a score of their own in its place.
                of[piece] = 0.0
        merges = gguf_pieces.merges_of(ids, of, longest_first=not prefix)
        unknown = self._unknown()
        made = Tokenizer(BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
        made.normalizer = gguf_pieces.normalizer(prefix)
        if not prefix:
            # Why: it cuts nothing after the normaliser, but is published so, and fingerprinted.
            made.pre_tokenizer = Split(" ", "merged_with_previous")
        made.decoder = gguf_pieces.decoder(prefix)
        return made

    def _unknown(self) -> str | None:
        id = self._id("unk", "unknown")
        if id is None and UNKNOWN in self._types:
            id = self._types.index(UNKNOWN)
        return None if id is None else self._spelled(id)

    def _model_ids(self) -> dict[str, int]:
        """Without what fills up; of byte-level ones, without added tokens behind the last that is
        merged: a word that is taken whole must not become one."""
        last = len(self.tokens)
        while last and self._fills_up(last - 1):
            last -= 1
        while last and self._kind == BYTE_LEVEL and self._types[last - 1] in ADDED:
            last -= 1
        return {self._spelled(id): id for id in range(last)}

    def _fills_up(self, id: int) -> bool:
        return self._types[id] == UNUSED and self.tokens[id] == f"[PAD{id}]"

    def _spelled(self, id: int) -> str:
        """Runs of spaces are pieces of the vocabulary's own, though they are called user-defined
        and written with spaces."""
        token = self.tokens[id]
        if self._kind == PIECES and token and not token.strip(" "):
            return token.replace(" ", gguf_pieces.SPACE)
        return token

    def _add_tokens(self, made: Tokenizer) -> None:
        from tokenizers import AddedToken

        kinds = ADDED if self._kind == BYTE_LEVEL else ADDED_PIECES
        last = max((id for id, kind in enumerate(self._types) if kind in kinds), default=-1)
        start = len(self._model_ids())
        # Why all in one call: the library sorts all that it has anew in each.
        made.add_tokens(
            [
                AddedToken(self._spelled(id), normalized=False, special=kind != USER_DEFINED)
                for id, kind in enumerate(self._types[: last + 1])
                if kind in kinds or id >= start
            ]
        )

    def _add_around(self, made: Tokenizer) -> None:
        from tokenizers.processors import TemplateProcessing

        bos = self._id("bos") if self.add_bos else None
        eos = self._id("eos") if self.add_eos else None
        if bos is None and eos is None:
            return
        used = {self.tokens[id]: id for id in (bos, eos) if id is not None}
        before = [] if bos is None else [self.tokens[bos]]
        behind = [] if eos is None else [self.tokens[eos]]
        made.post_processor = TemplateProcessing(
            single=[*before, "$A", *behind],
            pair=[*before, "$A", *behind, *(f"{each}:1" for each in before), "$B:1"]
            + [f"{each}:1" for each in behind],
            special_tokens=list(used.items()),
        )

    def _cut(self) -> gguf_words.Cut:
        return gguf_words.cut_named(self._get("pre", str, ""), self._where)

    def _id(self, *names: str) -> int | None:
        for name in names:
            id = self._fields.get(f"tokenizer.ggml.{name}_token_id")
            if isinstance(id, int) and 0 <= id < len(self.tokens):
                return id
        return None

    def _need(self, name: str, kind: type[T]) -> T:
        key = f"tokenizer.ggml.{name}"
        if key not in self._fields:
            raise ConfigError(f"{self._where}: wanted the key {key}, it is not there")
        return self._convert(key, kind)

    def _get(self, name: str, kind: type[T], default: T) -> T:
        key = f"tokenizer.ggml.{name}"
        return self._convert(key, kind) if key in self._fields else default

    def _convert(self, key: str, kind: type[T]) -> T:
        try:
            return msgspec.convert(self._fields[key], kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{self._where}: {key}: {error}") from error
