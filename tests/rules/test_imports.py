"""Importing is cheap and safe: every module alone, no heavy library, no warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "torch",
    "triton",
    "transformers",
    "httpx",
    "pydantic",
    "numpy",
    "redis",
    "fastokens",
    "gguf",
)
VENDORS = (".flashinfer", ".deep_gemm")
"""Modules that adapt a package which is on no machine without its GPU."""
EDGE = ("tokenwire.core.server", "tokenwire.core.cli", "tokenwire.core.testing")


def modules(folder: str) -> list[str]:
    names = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(("tokenwire", *parts)).removesuffix(".__init__"))
    return names


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_core_and_plugins_import_without_heavy_libraries() -> None:
    """The gateway starts without torch, and listing plugins imports nothing they only may need."""
    names = [name for name in modules("core") if not name.startswith(EDGE)]
    names += [name for name in modules("plugins") if name.count(".") <= 3]
    loaded = run(
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert loaded.strip() == "[]"


def needs_torch(name: str) -> bool:
    """The engines that compute here, but for what decides and is told: policy and settings."""
    if name.startswith("tokenwire.kernels"):
        return True
    is_engine = name.startswith(
        ("tokenwire.plugins.engines.cuda.", "tokenwire.plugins.engines.reference.")
    )
    return is_engine and ".cuda.policy" not in name and not name.endswith(".settings")


def import_each_first(names: list[str]) -> None:
    """No hidden order: each module, with nothing of ours imported before it."""
    run(
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    for mine in [m for m in sys.modules if m.startswith('tokenwire')]:\n"
        "        del sys.modules[mine]\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except Exception as error:\n"
        "        raise SystemExit(f'{name}: {error!r}')\n"
    )


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_every_module_can_be_the_first_one_imported(start: int) -> None:
    names = [
        name
        for name in modules("core") + modules("plugins")
        if not needs_torch(name) and not name.endswith("__main__")
    ]
    import_each_first(names[start::4])


@pytest.mark.torch
@pytest.mark.parametrize("start", [0, 1])
def test_so_can_every_module_that_computes(start: int) -> None:
    names = [name for name in modules("plugins") + modules("kernels") if needs_torch(name)]
    import_each_first([name for name in names if not name.endswith(VENDORS)][start::2])
