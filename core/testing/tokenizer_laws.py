"""The laws of the tokenizer port, one function each. Knows no tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import msgspec
from hypothesis import strategies as st

from tokenwire.core.prompt import Shields
from tokenwire.core.testing.tokenizer_probe import TokenizerProbe
from tokenwire.core.token_ids import TokenIds

__all__ = ("LAWS", "Law")

Law: TypeAlias = Callable[[TokenizerProbe], None]

POINT = 0xF0000
"""The first of the private code points that the laws use as shields."""
DIGEST = re.compile(r"[0-9a-f]{64}")


def vocabulary(probe: TokenizerProbe) -> None:
    """What `vocabulary` says of ids is so."""
    facts = probe.tokenizer.vocabulary
    ids = [token.id for token in facts.added]
    probe.equal("ids of added tokens that are used twice", len(ids) - len(set(ids)), 0)
    for id in (*ids, *facts.eos_ids):
        probe.true(f"id {id} is not below size {facts.size}", 0 <= id < facts.size)
    for name in ("bos", "eos", "pad", "unk"):
        spelling = getattr(facts, name)
        if spelling is not None:
            probe.true(f"{name} {spelling!r} is no added token", spelling in probe.ids)
    for name, digest in facts.fingerprints.items():
        probe.true(f"fingerprint {name} is no sha256: {digest!r}", bool(DIGEST.fullmatch(digest)))
    for id in (-1, facts.size):
        try:
            data = probe.tokenizer.token_bytes(id)
        except KeyError:
            continue
        probe.broken(f"token_bytes({id}): wanted KeyError, got {data!r}")


def pure(probe: TokenizerProbe) -> None:
    """Encoding gives TokenIds below the size, the same each time and in threads."""
    size = probe.tokenizer.vocabulary.size
    texts = [text for text in probe.texts for _ in range(4)]
    first = [probe.tokenizer.encode(text) for text in texts]
    for text, ids in zip(texts, first, strict=True):
        probe.true(f"{text!r}: wanted TokenIds, got {type(ids)}", isinstance(ids, TokenIds))
        probe.true(f"{text!r}: ids beyond the size", all(id < size for id in ids))
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(probe.tokenizer.encode, texts))
    probe.equal("the same texts in threads", again, first)


def round_trip(probe: TokenizerProbe) -> None:
    """Decoding what encode gave is the text again."""

    def check(text: str) -> None:
        decoded = probe.decode(probe.tokenizer.encode(text))
        probe.equal("decode(encode(text))", decoded, probe.normal(text))

    probe.each(check)


def added_tokens(probe: TokenizerProbe) -> None:
    """A spelling of an added token becomes it."""
    if not probe.specials:
        return probe.skip()
    for text in probe.specials:
        ids = list(probe.tokenizer.encode(f"a{text}b{text}"))
        probe.equal(f"{text!r} in 'a{text}b{text}'", ids.count(probe.ids[text]), 2)


def joined_bytes(probe: TokenizerProbe) -> None:
    """The bytes of all ids, joined, are the decoded text's UTF-8."""

    def check(text: str) -> None:
        ids = probe.tokenizer.encode(text)
        joined = b"".join(map(probe.tokenizer.token_bytes, ids))
        if probe.tokenizer.vocabulary.strips_leading_space:
            joined = joined.removeprefix(b" ")
        probe.equal(f"joined bytes of {text!r}", joined, probe.decode(ids).encode())

    probe.each(check)
    probe.each(lambda text: check(text.join(("", *probe.specials, ""))))


def never_half_a_character(probe: TokenizerProbe) -> None:
    """Text comes id by id, whole characters only, none of them later than its last byte."""

    def check(text: str) -> None:
        ids = probe.tokenizer.encode(text)
        joined, sent = b"", 0
        for id, piece in zip(ids, probe.pieces(ids), strict=False):
            joined += probe.tokenizer.token_bytes(id)
            sent += len(piece.encode())
            probe.true(f"{text!r}: half a character in {piece!r}", "\ufffd" not in piece)
            waiting = len(joined) - sent - probe.tokenizer.vocabulary.strips_leading_space
            probe.true(f"{text!r}: {waiting} bytes wait after {piece!r}", waiting <= 3)

    probe.each(lambda text: check(text.replace("\ufffd", "")))


def interleaved(probe: TokenizerProbe) -> None:
    """Two machines at once give what each gives alone: nothing of a stream is shared."""
    runs = [probe.tokenizer.encode(text) for text in probe.texts]
    machines = [probe.machine() for _ in runs]
    texts = ["" for _ in runs]
    for step in range(max(map(len, runs), default=0)):
        for place, ids in enumerate(runs):
            if step < len(ids):
                texts[place] += machines[place].push(ids[step]).text
    for text, ids, got in zip(probe.texts, runs, texts, strict=True):
        probe.equal(f"{text!r} beside others", got, probe.decode(ids))


def saved_anywhere(probe: TokenizerProbe) -> None:
    """A machine restored at any id goes on with the same pieces; its state is a few builtins."""
    for text in probe.texts:
        ids = probe.tokenizer.encode(text)
        wanted = probe.pieces(ids)
        machine, got = probe.machine(), []
        for id in ids:
            state = msgspec.msgpack.encode(machine.save())
            probe.true(f"{text!r}: the state has {len(state)} bytes", len(state) <= 16)
            machine = probe.machine()
            machine.restore(msgspec.msgpack.decode(state))
            got.append(machine.push(id).text)
        probe.equal(f"{text!r} saved at every id", got, wanted[: len(ids)])


def shields_hold(probe: TokenizerProbe) -> None:
    """A shielded spelling never becomes its token, and is the text again."""
    if not probe.forbidden:
        return probe.skip()

    def check(text: str) -> None:
        shields = {chr(POINT + place): value for place, value in enumerate(probe.forbidden)}
        ids = probe.tokenizer.encode(f"a{text}".join(("", *shields, "")), shields)
        for value in probe.forbidden:
            probe.true(f"{value!r} in client text became a token", probe.ids.get(value) not in ids)
        plain = f"a{text}".join(("", *probe.forbidden, ""))
        probe.equal("decoded shielded text", probe.decode(ids), probe.normal(plain))

    probe.each(check)


def fragments_stay_apart(probe: TokenizerProbe) -> None:
    """Two client strings side by side cannot make a token that neither spells."""
    if not probe.forbidden:
        return probe.skip()
    for value in probe.forbidden:
        for cut in range(1, len(value)):
            shields = {chr(POINT): value[:cut]}
            ids = probe.tokenizer.encode(f"{chr(POINT)}{value[cut:]}", shields)
            probe.true(f"{value[:cut]!r} + {value[cut:]!r} joined", probe.ids.get(value) not in ids)


def shields_change_nothing(probe: TokenizerProbe) -> None:
    """Text that spells no forbidden token has the same ids with shields and without."""
    shields: Shields = {chr(POINT): value for value in probe.forbidden[:1]} or {chr(POINT): "x"}

    def check(text: str) -> None:
        with_shields = probe.tokenizer.encode(text, shields)
        probe.equal(f"ids of {text!r}", list(with_shields), list(probe.tokenizer.encode(text)))

    probe.each(check)
    words = st.one_of(
        probe.plain_text(), st.sampled_from((*probe.specials, *probe.texts, " ", "\n"))
    )
    probe.every(st.lists(words, max_size=8).map("".join), check)


def shields_let_pass(probe: TokenizerProbe) -> None:
    """Beside a shielded spelling, the template's own spelling of the token is still the token."""
    if not probe.specials:
        return probe.skip()
    for value in probe.specials:
        ids = probe.tokenizer.encode(f"{value}hi {chr(POINT)}.{value}", {chr(POINT): value})
        probe.equal(f"tokens {value!r} of the template", list(ids).count(probe.ids[value]), 2)


def many_as_one(probe: TokenizerProbe) -> None:
    """`encode_many` gives what `encode` gives."""
    shields: Shields = {chr(POINT): value for value in probe.forbidden[:1]}
    texts: list[tuple[str, Shields]] = [(text, {}) for text in probe.texts]
    texts += [(f"{text}{point}", shields) for text in probe.texts for point in shields]
    for batch in ([], texts[: len(probe.texts)], texts):
        wanted = [probe.tokenizer.encode(text, points) for text, points in batch]
        probe.equal("encode_many", list(probe.tokenizer.encode_many(batch)), wanted)


LAWS: tuple[Law, ...] = (
    vocabulary,
    pure,
    round_trip,
    added_tokens,
    joined_bytes,
    never_half_a_character,
    interleaved,
    saved_anywhere,
    shields_hold,
    fragments_stay_apart,
    shields_change_nothing,
    shields_let_pass,
    many_as_one,
)
