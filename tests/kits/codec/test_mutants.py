"""Each law of the codec kit catches a codec that breaks it and nothing before it."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import msgspec
import pytest

from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import (
    Failed,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.testing.codec_kit import LAWS, run_codec_kit
from tokenwire.core.testing.laws import LawBroken

ROOT = Path(__file__).parents[3]
LINE = Started | PartStart | PartDelta | PartEnd | Finished | Usage


def load(path: Path, name: str):
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


ndjson = load(ROOT / "examples/ndjson/tokenwire_ndjson.py", "mutants_ndjson")
mutants = load(Path(__file__).with_name("mutants.py"), "codec_mutants")
EXAMPLES = {b'{"model":"m","say":"hi"}': mutants.HELLO}


def events_of(lines):
    for line in lines:
        said = msgspec.json.decode(line)
        failed = said["type"] == "failed"
        yield Failed(ErrorKind.INTERNAL, said["message"]) if failed else msgspec.convert(said, LINE)


def read(call, chunks):
    return list(events_of(b"".join(chunks).split(b"\n")[:-1]))


def broken_law(codec, read=read) -> str:
    with pytest.raises(LawBroken) as caught:
        run_codec_kit(codec, EXAMPLES, read, streams=25)
    assert caught.value.port == "codec"
    return caught.value.law


def test_the_good_codec_passes():
    run_codec_kit(ndjson.Ndjson(), EXAMPLES, read, streams=25)


@pytest.mark.parametrize(("law", "mutant"), mutants.MUTANTS)
def test_is_caught_by_its_law(law, mutant):
    assert broken_law(mutant()) == law


def test_a_reader_that_needs_whole_lines_is_caught():
    def careless(call, chunks):
        return list(events_of(line for chunk in chunks for line in chunk.split(b"\n") if line))

    def hopeful(call, chunks):
        try:
            return careless(call, chunks)
        except msgspec.DecodeError:
            return []

    assert broken_law(ndjson.Ndjson(), hopeful) == "any cut of the bytes"


@pytest.mark.parametrize(
    "source",
    [
        "import time\n",
        "def lazily():\n    from os import environ\n    return environ\n",
        "from {helper} import numbers\n",
        "from datetime import datetime\ndef born():\n    return datetime.now()\n",
    ],
)
def test_impure_modules_are_caught(source, tmp_path, monkeypatch):
    """Directly, inside a function, through a module of their own, and by calling a clock."""
    name = f"impure_{len(source)}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("import random\nnumbers = random.Random\n")
    text = source.format(helper=f"{name}.helper")
    text += "import mutants_ndjson\nclass Impure(mutants_ndjson.Ndjson):\n    pass\n"
    (folder / "codec.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = load(folder / "codec.py", f"{name}.codec")
    assert broken_law(module.Impure()) == "sans-IO"


def test_every_law_has_a_mutant():
    assert {law for law, _ in mutants.MUTANTS} | {"sans-IO", "any cut of the bytes"} == set(LAWS)
