"""Secrets by reference: `env:NAME` and `file:PATH`, read when needed. Says none in a message.

A file is read again when it changes, so that a key can be rotated without a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, final

from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.core.signing import Keyring

__all__ = ("NO_KEYS", "Secret", "SecretWatch", "keyring", "read")

SHORTEST_KEY = 16
NO_KEYS = (
    "server.keys is not set: signatures made now will not verify after a restart, nor on another"
    " gateway"
)
"""For the log of whoever makes a random key instead."""


class Secret(Struct, frozen=True):
    """Where a secret is: `env:NAME` or `file:PATH`. Never holds the secret itself."""

    source: Literal["env", "file"]
    name: str


def read(secret: Secret, environ: Mapping[str, str]) -> bytes:
    """The secret as it is now; a file's last line break is not part of it. Raises ConfigError."""
    if secret.source == "env":
        text = environ.get(secret.name)
        if not text:
            raise ConfigError(f"env:{secret.name}: wanted a secret, the variable is unset or empty")
        return text.encode("utf-8", "surrogateescape")
    try:
        data = Path(secret.name).read_bytes()
    except OSError as error:
        raise ConfigError(f"file:{secret.name}: cannot be read: {error.strerror}") from error
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if not data:
        raise ConfigError(f"file:{secret.name}: wanted a secret, the file is empty")
    return data


@final
class SecretWatch:
    """One secret, read again whenever its file has changed (time, size or inode)."""

    __slots__ = ("_environ", "_stamp", "_value", "secret")

    def __init__(self, secret: Secret, environ: Mapping[str, str]) -> None:
        """Reads it; raises ConfigError when it cannot."""
        self.secret = secret
        self._environ = environ
        self._stamp = self._look()
        self._value = read(secret, environ)

    @property
    def value(self) -> bytes:
        """The last good value: a file that is being replaced changes nothing until it is there."""
        return self._value

    def refresh(self) -> bool:
        """Look whether it changed -> whether the value did. Raises ConfigError for a file that
        cannot be read now; the value stays, and the next look tries again."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        value = read(self.secret, self._environ)
        self._stamp = stamp
        is_new = value != self._value
        self._value = value
        return is_new

    def _look(self) -> tuple[int, int, int] | None:
        if self.secret.source == "env":
            return None
        try:
            found = Path(self.secret.name).stat()
        except OSError:
            return (-1, -1, -1)
        return found.st_mtime_ns, found.st_size, found.st_ino


def keyring(watches: Sequence[SecretWatch]) -> Keyring:
    """`server.keys` as they are now, in order. Raises ConfigError for a key that is too short.

    After a `refresh` that says True, make a new one.
    """
    for watch in watches:
        if len(watch.value) < SHORTEST_KEY:
            raise ConfigError(
                f"server.keys: {watch.secret.source}:{watch.secret.name}: wanted {SHORTEST_KEY} "
                f"bytes or more, got {len(watch.value)}"
            )
    return Keyring([watch.value for watch in watches])
