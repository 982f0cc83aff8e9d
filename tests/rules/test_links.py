"""Links of all documents lead somewhere: to files that are there, and headings that are in them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
ABROAD = ("http://", "https://", "mailto:")


def documents() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def anchors(path: Path) -> set[str]:
    """As hosts of repositories make them of headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {each.strip().replace(" ", "-") for each in words}


@pytest.mark.parametrize("name", documents())
def test_links_lead_to_what_is_there(name: str) -> None:
    document = ROOT / name
    for target in LINK.findall(document.read_text()):
        if target.startswith(ABROAD):
            continue
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        assert found.exists(), f"{name}: {target} leads nowhere"
        if anchor:
            assert anchor in anchors(found), f"{name}: {target}: there is no such heading"


@pytest.mark.parametrize("name", documents())
def test_files_named_in_code_marks_are_there(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(
        r"`((?:core|plugins|docs|tests|deploy|examples)/[\w./-]+\.(?:py|md|yaml|json|toml))`", text
    ):
        assert (ROOT / path).exists(), f"{name} names {path}, which is not there"


def test_there_are_documents() -> None:
    names = documents()
    if not names:
        pytest.skip("this is no git checkout")
    assert "README.md" in names
