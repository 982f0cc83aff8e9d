"""C++ compiled on the spot: kept, told apart, and given up with a reason."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
native = pytest.importorskip("tokenwire.kernels.native")

SOURCE = 'extern "C" int answer() { return 42; }\n'


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """A cache folder of this test's own, and nothing remembered before or after."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clear()
    yield
    clear()


def clear() -> None:
    native.library.cache_clear()
    native.compiler_reason.cache_clear()


@pytest.fixture
def source(tmp_path) -> Path:
    if not native.compiler():
        pytest.skip("no C++ compiler")
    path = tmp_path / "answer.cpp"
    path.write_text(SOURCE)
    return path


def libraries(tmp_path) -> list[Path]:
    return sorted((tmp_path / "cache").rglob("*"))


def test_a_library_is_compiled_once_and_kept(source, tmp_path, monkeypatch) -> None:
    assert native.compiler_reason(source) == ""
    assert native.library(source).answer() == 42
    kept = [path for path in libraries(tmp_path) if path.is_file()]
    assert [path.suffix for path in kept] == [".so"]
    clear()
    monkeypatch.setattr(native, "_compile", None)  # not called again
    assert native.library(source).answer() == 42


def test_another_source_is_another_library(source) -> None:
    assert native.library(source).answer() == 42
    clear()
    source.write_text(SOURCE.replace("42", "43"))
    assert native.library(source).answer() == 43


def test_a_home_that_cannot_be_written_is_no_obstacle(source, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert native.library(source).answer() == 42


def test_reasons(source, tmp_path, monkeypatch) -> None:
    source.write_text("no C++")
    assert "answer.cpp does not compile here" in native.compiler_reason(source)
    clear()
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert native.compiler_reason(source).startswith("no C++ compiler")
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    clear()
    assert "does not compile here" in native.compiler_reason(source)
