"""Secrets by reference: read, rotated, and never repeated."""

from __future__ import annotations

import os

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.core.secrets import Secret, SecretWatch, keyring, read
from tokenwire.core.settings import Place, parse_secret

OLD, NEW = b"old-key-of-32-bytes-............", b"new-key-of-32-bytes-............"


def file_secret(path):
    return Secret("file", str(path))


def test_a_reference_is_env_or_file():
    place = Place("f.yaml", "server.keys[0]")
    assert parse_secret("env:KEY", place) == Secret("env", "KEY")
    assert parse_secret("file:/a:b", place) == Secret("file", "/a:b")


@pytest.mark.parametrize(
    "value", ["hunter2", "env:", "file:", "vault:hunter2", "", 3, None, ["env:A"]]
)
def test_what_is_no_reference_is_refused_and_not_repeated(value):
    with pytest.raises(ConfigError, match=r"^f\.yaml: k: wanted env:NAME or file:PATH") as caught:
        parse_secret(value, Place("f.yaml", "k"))
    assert "hunter2" not in str(caught.value)


def test_the_environment_holds_it():
    assert read(Secret("env", "KEY"), {"KEY": "sécret "}) == "sécret ".encode()


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}])
def test_an_unset_variable_is_named(environ):
    with pytest.raises(ConfigError, match=r"^env:KEY: wanted a secret, the variable is unset"):
        read(Secret("env", "KEY"), environ)


@pytest.mark.parametrize(
    ("data", "value"), [(b"k", b"k"), (b"k\n", b"k"), (b"k\r\n", b"k"), (b" k\n\n", b" k\n")]
)
def test_a_file_holds_it_without_its_last_line_break(tmp_path, data, value):
    (tmp_path / "key").write_bytes(data)
    assert read(file_secret(tmp_path / "key"), {}) == value


def test_a_file_that_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^file:.*/none: cannot be read: No such file"):
        read(file_secret(tmp_path / "none"), {})
    (tmp_path / "empty").write_bytes(b"\n")
    with pytest.raises(ConfigError, match=r"^file:.*/empty: wanted a secret, the file is empty"):
        read(file_secret(tmp_path / "empty"), {})


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(OLD)
    watch = SecretWatch(file_secret(path), {})
    assert watch.value == OLD
    assert watch.refresh() is False
    fresh = tmp_path / "fresh"
    fresh.write_bytes(NEW)
    fresh.replace(path)
    assert watch.value == OLD
    assert watch.refresh() is True
    assert watch.value == NEW


def test_a_touched_file_with_the_same_secret_is_no_change(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(OLD)
    watch = SecretWatch(file_secret(path), {})
    os.utime(path, ns=(1, 1))
    assert watch.refresh() is False


def test_while_the_file_is_away_the_last_value_stands(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(OLD)
    watch = SecretWatch(file_secret(path), {})
    path.unlink()
    for _ in range(2):
        with pytest.raises(ConfigError, match="cannot be read"):
            watch.refresh()
    assert watch.value == OLD
    path.write_bytes(NEW)
    assert watch.refresh() is True
    assert watch.value == NEW


def test_the_first_key_signs_and_all_verify():
    environ = {"OLD": OLD.decode(), "NEW": NEW.decode()}
    old = SecretWatch(Secret("env", "OLD"), environ)
    new = SecretWatch(Secret("env", "NEW"), environ)
    signature = keyring([old]).sign("test", b"message")
    both = keyring([new, old])
    assert both.verify("test", b"message", signature)
    assert both.sign("test", b"message") == keyring([new]).sign("test", b"message") != signature


def test_a_short_key_is_named_by_its_reference():
    watch = SecretWatch(Secret("env", "KEY"), {"KEY": "hunter2"})
    with pytest.raises(ConfigError) as caught:
        keyring([watch])
    assert str(caught.value) == "server.keys: env:KEY: wanted 16 bytes or more, got 7"
