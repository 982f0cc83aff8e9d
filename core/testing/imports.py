"""What a module imports, directly and through its imports, read from source: for sans-IO laws."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ("impurities",)

# Clocks, loops, sockets, randomness, environment, files, processes, and the host's own machinery.
BANNED: Final = frozenset(
    (
        "aiohttp", "anyio", "asyncio", "concurrent", "curio", "ftplib", "glob", "granian", "h11",
        "h2", "http", "httpcore", "httpx", "io", "litestar", "logging", "mmap", "multiprocessing",
        "os", "pathlib", "pluggy", "queue", "random", "redis", "requests", "sched", "secrets",
        "select", "selectors", "shutil", "signal", "smtplib", "socket", "socketserver", "ssl",
        "starlette", "subprocess", "tempfile", "threading", "time", "trio", "urllib3", "uuid",
        "uvicorn", "uvloop", "websockets",
    )
)  # fmt: skip
BANNED_PATHS: Final = ("urllib.request", "urllib.error")
CLOCKS: Final = frozenset(("now", "utcnow", "today"))
BUILTINS: Final = frozenset(("open", "input", "breakpoint", "print"))

# Why: a plugin's `@impl` and its factories stand beside the codec; they are not the codec.
REGISTRATION: Final = ("tokenwire.core.hookspecs", "tokenwire.core.factory")


def impurities(roots: Iterable[str]) -> Iterator[str]:
    """A sentence for each thing that what `roots` import may not use.

    Imports are followed through tokenwire and the packages that `roots` are of, functions included,
    `if TYPE_CHECKING` left out. Libraries are not followed, only banned by name.
    """
    # Why: bases such as abc.ABC are of the standard library, which is judged by name only.
    stack = [root for root in roots if root.partition(".")[0] not in sys.stdlib_module_names]
    own = {"tokenwire", *(root.partition(".")[0] for root in stack)}
    seen: set[str] = set()
    while stack:
        name = stack.pop()
        if name in seen or name.startswith(REGISTRATION):
            continue
        seen.add(name)
        tree = _tree(name)
        if tree is None:
            continue
        for node in _nodes(tree):
            for target in _imported(node, name):
                if _is_banned(target):
                    yield f"{name} imports {target}"
                elif target.partition(".")[0] in own:
                    stack.append(target)
            if word := _call(node):
                yield f"{name} calls {word}"


def _tree(name: str) -> ast.Module | None:
    """None for what is no module (a name imported from one), and for what has no source."""
    module: ModuleType | None = sys.modules.get(name)
    try:
        origin = module.__file__ if module else (spec.origin if (spec := find_spec(name)) else None)
    except (ImportError, AttributeError, ValueError):
        return None
    if origin is None or not origin.endswith(".py"):
        return None
    return ast.parse(Path(origin).read_text("utf-8"))


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            stack.extend(node.orelse)
        else:
            stack.extend(ast.iter_child_nodes(node))


def _imported(node: ast.AST, within: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = within.split(".")[: -node.level] or [within]
            base = ".".join([*package, base]).rstrip(".")
        yield base
        # Why: `from package import module` imports the module.
        yield from (f"{base}.{alias.name}" for alias in node.names)


def _is_banned(target: str) -> bool:
    return target.partition(".")[0] in BANNED or target.startswith(BANNED_PATHS)


def _call(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    match node.func:
        case ast.Name(id=name) if name in BUILTINS:
            return f"{name}()"
        case ast.Attribute(attr=name, value=ast.Name(id=owner)) if name in CLOCKS:
            return f"{owner}.{name}()" if owner in ("date", "datetime") else None
    return None
