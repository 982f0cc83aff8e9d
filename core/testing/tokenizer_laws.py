"""The laws of the tokenizer port, one function each. Knows no tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import msgspec
from hypothesis import strategies as st

from tokenwire.core.prompt import Shields
from tokenwire.core.testing.tokenizer_bench import TokenizerBench
from tokenwire.core.token_ids import TokenIds

__all__ = ("LAWS", "Law")

Law: TypeAlias = Callable[[TokenizerBench], None]

POINT = 0xF0000
"""The first of the private code points that the laws use as shields."""
DIGEST = re.compile(r"[0-9a-f]{64}")


def vocabulary(bench: TokenizerBench) -> None:
    """What `vocabulary` says of ids is so."""
    facts = bench.tokenizer.vocabulary
    ids = [token.id for token in facts.added]
    bench.equal("ids of added tokens that are used twice", len(ids) - len(set(ids)), 0)
    for id in (*ids, *facts.eos_ids):
        bench.true(f"id {id} is not below size {facts.size}", 0 <= id < facts.size)
    for name in ("bos", "eos", "pad", "unk"):
        spelling = getattr(facts, name)
        if spelling is not None:
            bench.true(f"{name} {spelling!r} is no added token", spelling in bench.ids)
    for name, digest in facts.fingerprints.items():
        bench.true(f"fingerprint {name} is no sha256: {digest!r}", bool(DIGEST.fullmatch(digest)))
    for id in (-1, facts.size):
        try:
            data = bench.tokenizer.token_bytes(id)
        except KeyError:
            continue
        bench.broken(f"token_bytes({id}): wanted KeyError, got {data!r}")


def pure(bench: TokenizerBench) -> None:
    """Encoding gives TokenIds below the size, the same each time and in threads."""
    size = bench.tokenizer.vocabulary.size
    texts = [text for text in bench.texts for _ in range(4)]
    first = [bench.tokenizer.encode(text) for text in texts]
    for text, ids in zip(texts, first, strict=True):
        bench.true(f"{text!r}: wanted TokenIds, got {type(ids)}", isinstance(ids, TokenIds))
        bench.true(f"{text!r}: ids beyond the size", all(id < size for id in ids))
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(bench.tokenizer.encode, texts))
    bench.equal("the same texts in threads", again, first)


def round_trip(bench: TokenizerBench) -> None:
    """Decoding what encode gave is the text again."""

    def check(text: str) -> None:
        decoded = bench.decode(bench.tokenizer.encode(text))
        bench.equal("decode(encode(text))", decoded, bench.normal(text))

    bench.each(check)


def added_tokens(bench: TokenizerBench) -> None:
    """A spelling of an added token becomes it."""
    if not bench.specials:
        return bench.skip()
    for text in bench.specials:
        ids = list(bench.tokenizer.encode(f"a{text}b{text}"))
        bench.equal(f"{text!r} in 'a{text}b{text}'", ids.count(bench.ids[text]), 2)


def joined_bytes(bench: TokenizerBench) -> None:
    """The bytes of all ids, joined, are the decoded text's UTF-8."""

    def check(text: str) -> None:
        ids = bench.tokenizer.encode(text)
        joined = b"".join(map(bench.tokenizer.token_bytes, ids))
        if bench.tokenizer.vocabulary.strips_leading_space:
            joined = joined.removeprefix(b" ")
        bench.equal(f"joined bytes of {text!r}", joined, bench.decode(ids).encode())

    bench.each(check)
    bench.each(lambda text: check(text.join(("", *bench.specials, ""))))


def never_half_a_character(bench: TokenizerBench) -> None:
    """Text comes id by id, whole characters only, none of them later than its last byte."""

    def check(text: str) -> None:
        ids = bench.tokenizer.encode(text)
        joined, sent = b"", 0
        for id, piece in zip(ids, bench.pieces(ids), strict=False):
            joined += bench.tokenizer.token_bytes(id)
            sent += len(piece.encode())
            bench.true(f"{text!r}: half a character in {piece!r}", "\ufffd" not in piece)
            waiting = len(joined) - sent - bench.tokenizer.vocabulary.strips_leading_space
            bench.true(f"{text!r}: {waiting} bytes wait after {piece!r}", waiting <= 3)

    bench.each(lambda text: check(text.replace("\ufffd", "")))


def interleaved(bench: TokenizerBench) -> None:
    """Two machines at once give what each gives alone: nothing of a stream is shared."""
    runs = [bench.tokenizer.encode(text) for text in bench.texts]
    machines = [bench.machine() for _ in runs]
    texts = ["" for _ in runs]
    for step in range(max(map(len, runs), default=0)):
        for place, ids in enumerate(runs):
            if step < len(ids):
                texts[place] += machines[place].push(ids[step]).text
    for text, ids, got in zip(bench.texts, runs, texts, strict=True):
        bench.equal(f"{text!r} beside others", got, bench.decode(ids))


def saved_anywhere(bench: TokenizerBench) -> None:
    """A machine restored at any id goes on with the same pieces; its state is a few builtins."""
    for text in bench.texts:
        ids = bench.tokenizer.encode(text)
        wanted = bench.pieces(ids)
        machine, got = bench.machine(), []
        for id in ids:
            state = msgspec.msgpack.encode(machine.save())
            bench.true(f"{text!r}: the state has {len(state)} bytes", len(state) <= 16)
            machine = bench.machine()
            machine.restore(msgspec.msgpack.decode(state))
            got.append(machine.push(id).text)
        bench.equal(f"{text!r} saved at every id", got, wanted[: len(ids)])


def shields_hold(bench: TokenizerBench) -> None:
    """A shielded spelling never becomes its token, and is the text again."""
    if not bench.forbidden:
        return bench.skip()

    def check(text: str) -> None:
        shields = {chr(POINT + place): value for place, value in enumerate(bench.forbidden)}
        ids = bench.tokenizer.encode(f"a{text}".join(("", *shields, "")), shields)
        for value in bench.forbidden:
            bench.true(f"{value!r} in client text became a token", bench.ids.get(value) not in ids)
        plain = f"a{text}".join(("", *bench.forbidden, ""))
        bench.equal("decoded shielded text", bench.decode(ids), bench.normal(plain))

    bench.each(check)


def fragments_stay_apart(bench: TokenizerBench) -> None:
    """Two client strings side by side cannot make a token that neither spells."""
    if not bench.forbidden:
        return bench.skip()
    for value in bench.forbidden:
        for cut in range(1, len(value)):
            shields = {chr(POINT): value[:cut]}
            ids = bench.tokenizer.encode(f"{chr(POINT)}{value[cut:]}", shields)
            bench.true(f"{value[:cut]!r} + {value[cut:]!r} joined", bench.ids.get(value) not in ids)


def shields_change_nothing(bench: TokenizerBench) -> None:
    """Text that spells no forbidden token has the same ids with shields and without."""
    shields: Shields = {chr(POINT): value for value in bench.forbidden[:1]} or {chr(POINT): "x"}

    def check(text: str) -> None:
        with_shields = bench.tokenizer.encode(text, shields)
        bench.equal(f"ids of {text!r}", list(with_shields), list(bench.tokenizer.encode(text)))

    bench.each(check)
    words = st.one_of(
        bench.plain_text(), st.sampled_from((*bench.specials, *bench.texts, " ", "\n"))
    )
    bench.every(st.lists(words, max_size=8).map("".join), check)


def shields_let_pass(bench: TokenizerBench) -> None:
    """Beside a shielded spelling, the template's own spelling of the token is still the token."""
    if not bench.specials:
        return bench.skip()
    for value in bench.specials:
        ids = bench.tokenizer.encode(f"{value}hi {chr(POINT)}.{value}", {chr(POINT): value})
        bench.equal(f"tokens {value!r} of the template", list(ids).count(bench.ids[value]), 2)


def many_as_one(bench: TokenizerBench) -> None:
    """`encode_many` gives what `encode` gives."""
    shields: Shields = {chr(POINT): value for value in bench.forbidden[:1]}
    texts: list[tuple[str, Shields]] = [(text, {}) for text in bench.texts]
    texts += [(f"{text}{point}", shields) for text in bench.texts for point in shields]
    for batch in ([], texts[: len(bench.texts)], texts):
        wanted = [bench.tokenizer.encode(text, points) for text, points in batch]
        bench.equal("encode_many", list(bench.tokenizer.encode_many(batch)), wanted)


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
