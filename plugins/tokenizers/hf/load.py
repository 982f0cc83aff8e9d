"""Reads a tokenizer.json and what stands beside it, and makes a tokenizer of them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from tokenizers import Tokenizer as Library

from tokenwire.core import fingerprint
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.errors import ConfigError
from tokenwire.core.ports.tokenizer import AddedToken, Vocabulary
from tokenwire.plugins.tokenizers.hf.cutting import breaks_of, cuts_of
from tokenwire.plugins.tokenizers.hf.fast import fast_encoder
from tokenwire.plugins.tokenizers.hf.file import FileToken, TokenizerFile, id_of, read
from tokenwire.plugins.tokenizers.hf.names import TokenNames, token_names
from tokenwire.plugins.tokenizers.hf.settings import HfSettings
from tokenwire.plugins.tokenizers.hf.spelling import Spelling, spelling
from tokenwire.plugins.tokenizers.hf.tokenizer import HfTokenizer

__all__ = ("load",)


def load(settings: HfSettings, checkpoint: Checkpoint | None) -> HfTokenizer:
    """Raises ConfigError when there is no usable tokenizer.json."""
    path = _path(settings, checkpoint)
    names = token_names(checkpoint or Checkpoint(path.parent))
    file = read(path)
    try:
        library = Library.from_file(str(path))
    except Exception as error:  # Why: the library raises bare Exception for whatever is wrong.
        raise ConfigError(f"{path}: the tokenizers library cannot read it: {error}") from error
    library.no_truncation()
    library.no_padding()
    tokens = _added(library, file, names)
    form = spelling(file.decoder)
    vocabulary = _vocabulary(library, file, tokens, names, form)
    is_file_whole = len(tokens) == len(file.added_tokens)
    fast = fast_encoder(path, library) if settings.fast == "auto" and is_file_whole else None
    tokenizer = HfTokenizer(library, vocabulary, tokens, form.to_bytes, fast)
    tokenizer.cuts = cuts_of(tokens, tokenizer.encode)
    tokenizer.breaks = breaks_of(_texts(library, form, vocabulary.size), tokenizer.encode)
    return tokenizer


def _texts(library: Library, form: Spelling, size: int) -> str:
    """Every token's text, as far as it is text, with NUL between."""
    spelled = (library.id_to_token(id) for id in range(size))
    data = b"\0".join(form.to_bytes(token) for token in spelled if token is not None)
    return data.decode("utf-8", "replace")


def _path(settings: HfSettings, checkpoint: Checkpoint | None) -> Path:
    if settings.path is not None:
        path = Path(settings.path)
        path = path / "tokenizer.json" if path.is_dir() else path
    elif checkpoint is not None:
        path = checkpoint.tokenizer_json
    else:
        raise ConfigError(
            "tokenizer hf: wanted a tokenizer.json, got a model without a folder: "
            "set the model's `tokenizer` to the file's path"
        )
    if not path.is_file():
        raise ConfigError(
            f"tokenizer hf: wanted a tokenizer.json, got {path}, which is no file: "
            "set the model's `tokenizer` to the file's path"
        )
    return path


def _added(library: Library, file: TokenizerFile, names: TokenNames) -> list[FileToken]:
    """The added tokens with their true ids. Those that only the configuration lists are added to
    the library's own, as transformers does; those it names as special are special."""
    known = {token.content for token in file.added_tokens}
    missing = {token.content: token for token in names.more if token.content not in known}
    for name in sorted(names.special - known - missing.keys()):
        if library.token_to_id(name) is not None:
            missing[name] = FileToken(name, normalized=False, special=True)
    for token in missing.values():
        add = library.add_special_tokens if token.special else library.add_tokens
        add([token.spelled(token.content)])
    tokens = []
    for token in (*file.added_tokens, *missing.values()):
        special = token.special or token.content in names.special
        tokens.append(replace(token, id=id_of(library, token.content), special=special))
    return sorted(tokens, key=lambda token: token.id)


def _vocabulary(
    library: Library,
    file: TokenizerFile,
    tokens: list[FileToken],
    names: TokenNames,
    form: Spelling,
) -> Vocabulary:
    size = max(library.get_vocab().values(), default=-1) + 1
    data = {
        id: form.to_bytes(token)
        for id in range(size)
        if (token := library.id_to_token(id)) is not None
    }
    data |= {entry.id: entry.content.encode() for entry in tokens if entry.special}
    added = [(entry.id, entry.content, entry.special) for entry in tokens]
    prints = {
        "vocabulary": fingerprint.vocabulary(data),
        "added_tokens": fingerprint.added_tokens(added),
    }
    if file.model.merges is not None:
        prints["merges"] = fingerprint.merges(file.model.pairs(), file.pre_tokenizer)
    begin, end = _around(library)
    named_end = library.token_to_id(names.eos) if names.eos else None
    ends = dict.fromkeys(id for id in (*names.eos_ids, named_end) if id is not None and id < size)
    return Vocabulary(
        size=size,
        added=tuple(AddedToken(*entry) for entry in added),
        eos_ids=tuple(ends),
        bos=names.bos,
        eos=names.eos,
        pad=names.pad,
        unk=names.unk,
        fingerprints=prints,
        strips_leading_space=form.strips_leading_space,
        begin_ids=begin,
        end_ids=end,
    )


def _around(library: Library) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the post-processor puts before and behind a text."""
    bare = library.encode("a", add_special_tokens=False).ids
    whole = library.encode("a").ids
    for at in range(len(whole) - len(bare) + 1):
        if whole[at : at + len(bare)] == bare:
            return tuple(whole[:at]), tuple(whole[at + len(bare) :])
    return (), ()
