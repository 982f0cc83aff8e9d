"""A small checkpoint: a byte tokenizer of the library that most models ship, and a template."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

__all__ = ("BEGIN", "END", "write_checkpoint")

BEGIN, END = "<s>", "</s>"


def write_checkpoint(folder: Path, template: str, **config: object) -> None:
    """Its tokenizer puts BEGIN before whatever it encodes with special tokens. `config`: more of
    its tokenizer_config.json."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: at for at, letter in enumerate(alphabet)}
    library = Tokenizer(models.BPE(vocab=words, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens([AddedToken(BEGIN), AddedToken(END)])
    begin = library.token_to_id(BEGIN)
    library.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, begin)]
    )
    assert library.encode("x").ids[0] == begin
    library.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(template)
    told = {"bos_token": BEGIN, "eos_token": END, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
