"""House rules that no other tool checks: sizes, first lines, public names, words of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("core", "kernels", "plugins")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__pycache__" not in path.parts
]
LONGEST = 300
ARGUES = "Argues its length"


def test_long_files_say_why() -> None:
    for path in SOURCES:
        text = path.read_text()
        lines = text.count("\n")
        assert lines <= LONGEST or ARGUES in text[:1500], f"{path}: {lines} lines, and no reason"


def test_every_module_begins_with_its_contract() -> None:
    for path in SOURCES:
        doc = ast.get_docstring(ast.parse(path.read_text()))
        assert doc, f"{path} has no docstring"
        first = doc.split("\n", 1)[0]
        assert first.endswith((".", ":")) or "\n" in doc, f"{path}: {first!r} is no sentence"


def names_of(node: ast.stmt) -> list[str]:
    """What a statement of a module's body defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [inner for target in targets for inner in ast.walk(target)]
            return [inner.id for inner in found if isinstance(inner, ast.Name)]
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [alias.asname or alias.name for alias in names]
    return []


def test_public_names_exist() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        defined = {name for node in tree.body for name in names_of(node)}
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = list(ast.literal_eval(node.value))
                assert set(names) <= defined, f"{path}: {set(names) - defined}"


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def test_nothing_tracked_names_one_machine_or_a_published_template() -> None:
    machine = re.compile(r"(?<![\w.])/(?:home|root|Users)/\w+")
    for path in tracked():
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        assert b"\0" not in data[:1000] or path.suffix in {".msgpack"}, f"{path} is binary"
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml"} or path.name == "Makefile":
            assert not machine.search(data.decode()), f"{path} names a folder of one machine"
        assert path.name not in {"tokenizer.json", "chat_template.jinja"}, f"{path} is published"
