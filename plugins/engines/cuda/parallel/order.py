"""What a rank is told when it starts: which model, how it lies, and where its front listens.

A file that the front writes for its ranks; rank 0 tells it to those of other machines. Knows no
torch, no socket and no process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.ports.tokenizer import NO_SHIELDS, Tokenizer, Vocabulary
from tokenwire.core.prompt import Shields
from tokenwire.core.signing import Keyring
from tokenwire.core.token_ids import TokenIds
from tokenwire.plugins.engines.cuda.settings import CudaSettings

__all__ = ("FOLDER", "RANK", "Order", "Pieces", "pieces_of", "read_order", "write_order")

FOLDER: Final = "tokenwire-"
"""How the name of the temporary folder begins that a group's order lies in."""
RANK: Final = "tokenwire.plugins.engines.cuda.parallel.rank"


class Pieces(Struct, frozen=True):
    """What an engine needs of a tokenizer."""

    vocabulary: Vocabulary
    texts: tuple[bytes | None, ...] = ()
    """The bytes of each id; None: no token. Empty where no answer is held to a grammar."""


class Order(Struct, frozen=True, kw_only=True):
    settings: CudaSettings
    model: str = ""
    revision: str = ""
    """Of the weights, as machine 0 sees them: part of what KV hashes commit to."""
    context_length: int | None = None
    pieces: Pieces | None = None
    instance: int = 0
    front: str = ""
    """"unix:PATH" or "tcp:HOST:PORT"; "": rank 0 knows it."""
    token: str = ""
    """The secret that the front asks for."""
    failure: str = ""
    """A file where the launcher says what failed."""
    program: str = RANK
    """The module that is run as each rank, with the order's file as its argument."""

    def services(self) -> Services:
        """For `build_here`: as the front's own, as far as an engine uses them."""
        tokenizer = None if self.pieces is None else CarriedTokenizer(self.pieces)
        # Why a key of zeros: an engine signs nothing.
        return Services(
            Keyring([bytes(32)]),
            model=self.model,
            tokenizer=tokenizer,
            context_length=self.context_length,
        )


@final
class CarriedTokenizer(Tokenizer):
    """Ids to bytes, of a tokenizer in another process. Encodes nothing."""

    def __init__(self, pieces: Pieces) -> None:
        self.vocabulary = pieces.vocabulary
        self._texts = pieces.texts

    def encode(self, text: str, shields: Shields = NO_SHIELDS) -> TokenIds:
        raise NotImplementedError("text stays with the front")

    def token_bytes(self, id: int) -> bytes:
        found = self._texts[id] if 0 <= id < len(self._texts) else None
        if found is None:
            raise KeyError(id)
        return found


def pieces_of(tokenizer: Tokenizer | None, *, has_grammars: bool) -> Pieces | None:
    """What goes to the ranks."""
    if tokenizer is None:
        return None
    vocabulary = tokenizer.vocabulary
    if not has_grammars:
        return Pieces(vocabulary)

    def piece(id: int) -> bytes | None:
        try:
            return tokenizer.token_bytes(id)
        except KeyError:
            return None

    return Pieces(vocabulary, tuple(piece(id) for id in range(vocabulary.size)))


def write_order(order: Order, path: Path) -> None:
    """Readable by its owner alone: it holds a secret."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.msgpack.encode(order))


def read_order(path: Path) -> Order:
    """Raises ConfigError."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Order)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"{path}: no order for a rank: {error}") from error
