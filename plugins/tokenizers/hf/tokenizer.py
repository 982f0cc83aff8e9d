"""The tokenizer `hf`: plain text through one call, shielded text through the sealed tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from tokenizers import Tokenizer as Library

from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer, Vocabulary
from tokenwire.core.prompt import Shields
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.tokenizers.hf.fast import FastEncode
from tokenwire.plugins.tokenizers.hf.file import FileToken
from tokenwire.plugins.tokenizers.hf.seal import Sealer

__all__ = ("HfTokenizer",)


@final
class HfTokenizer(Tokenizer):
    """Its ids equal transformers' on rendered text. Encoding releases the GIL, short or long."""

    def __init__(
        self,
        library: Library,
        vocabulary: Vocabulary,
        tokens: Sequence[FileToken],
        to_bytes: Callable[[str], bytes],
        fast: FastEncode | None,
    ) -> None:
        self.vocabulary = vocabulary
        self.is_fast = fast is not None
        """Whether plain text goes through fastokens."""
        self._library = library
        self._to_bytes = to_bytes
        self._fast = fast
        self._sealer = Sealer(library, tokens)
        self._spellings = {token.id: token.content for token in tokens if token.special}
        # Why: a normaliser can turn other text into a special token that is matched after it, which
        # no search for spellings finds; the sealed tokenizer takes spellings as written only.
        self._always_sealed = _normalizes(library) and any(
            token.special and token.normalized for token in tokens
        )

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        if shields or self._always_sealed:
            return self._sealer.encode(text, shields)
        if self._fast is not None:
            return TokenIds(self._fast(text))
        # Why: unlike `encode`, this releases the GIL and leaves out offsets.
        return TokenIds(self._library.encode_batch_fast([text], add_special_tokens=False)[0].ids)

    def encode_many(self, texts: list[tuple[str, Shields]]) -> list[TokenIds]:
        if self._fast is not None or self._always_sealed or any(shields for _, shields in texts):
            return [self.encode(text, shields) for text, shields in texts]
        plain = [text for text, _ in texts]
        batch = self._library.encode_batch_fast(plain, add_special_tokens=False)
        return [TokenIds(encoding.ids) for encoding in batch]

    def token_bytes(self, id: int) -> bytes:
        spelling = self._spellings.get(id)
        if spelling is not None:
            return spelling.encode()
        token = self._library.id_to_token(id) if 0 <= id < self.vocabulary.size else None
        if token is None:
            raise KeyError(f"the tokenizer has no id {id}: ids are 0 to {self.vocabulary.size - 1}")
        return self._to_bytes(token)


def _normalizes(library: Library) -> bool:
    """Whether the normaliser does anything; an empty sequence of them does not."""
    normalizer = library.normalizer
    return normalizer is not None and normalizer.__getstate__() != EMPTY


EMPTY = b'{"type":"Sequence","normalizers":[]}'
