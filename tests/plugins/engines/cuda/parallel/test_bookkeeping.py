"""What the front keeps of jobs, cards, figures and devices; what goes over the line. All pure."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.errors import ConfigError
from tokenwire.core.ports.tokenizer import Vocabulary
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    BlockSnapshot,
    Counts,
    EngineCard,
    EngineStatus,
    Figure,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.parallel import frames
from tokenwire.plugins.engines.cuda.parallel.devices import (
    crowd,
    device_of,
    is_on_gpus,
    visible_devices,
)
from tokenwire.plugins.engines.cuda.parallel.frames import FrameError, Splitter
from tokenwire.plugins.engines.cuda.parallel.front.cards import joint, lack
from tokenwire.plugins.engines.cuda.parallel.front.open_jobs import OpenJobs
from tokenwire.plugins.engines.cuda.parallel.front.totals import Totals
from tokenwire.plugins.engines.cuda.parallel.front.waits import Backoff
from tokenwire.plugins.engines.cuda.parallel.front.words import Words
from tokenwire.plugins.engines.cuda.parallel.launcher import failure_of
from tokenwire.plugins.engines.cuda.parallel.order import (
    Order,
    Pieces,
    pieces_of,
    read_order,
    write_order,
)
from tokenwire.plugins.engines.cuda.settings import CudaSettings, Speculation

DONE = Finish(FinishKind.LENGTH, FinishCause.MAX)
LOST = Finish(FinishKind.ERROR, FinishCause.LOST, retryable=True)
CARD = EngineCard("m", 100, 512, capabilities=("n", "seed"), hash_root="00")

JOB = TokenJob("a", "m", TokenIds([1, 2, 3]), n=2, resume_ids=TokenIds([7]))


def test_open_jobs_end_where_they_stand() -> None:
    jobs = OpenJobs()
    jobs.add(JOB)
    assert jobs.tokens == 2 * (3 + 1)
    counts = Counts(prompt=3, cached=2, computed=1, generated=3)
    assert jobs.take(TokenDelta("a", 1, ids=TokenIds([8, 9]), counts=counts))
    assert jobs.take(TokenDelta("a", 1, choice=1, ids=TokenIds([5]), finish=DONE))
    assert jobs.tokens == 3 + 3
    (last,) = jobs.end_all(LOST)
    assert last == TokenDelta("a", 3, counts=counts, finish=LOST)
    assert (jobs.tokens, len(jobs), jobs.has("a")) == (0, 0, False)


def test_what_is_of_no_open_choice_is_not_passed_on() -> None:
    jobs = OpenJobs()
    jobs.add(JOB)
    assert not jobs.take(TokenDelta("b"))
    assert not jobs.take(TokenDelta("a", attempt=1))
    assert not jobs.take(TokenDelta("a", choice=2))
    assert jobs.take(TokenDelta("a", choice=1, finish=DONE))
    assert not jobs.take(TokenDelta("a", choice=1, finish=DONE))


def test_a_name_is_open_while_one_of_its_attempts_is() -> None:
    jobs = OpenJobs()
    jobs.add(replace(JOB, n=1))
    jobs.add(replace(JOB, n=1, attempt=1))
    jobs.take(TokenDelta("a", finish=DONE))
    assert jobs.has("a")
    jobs.take(TokenDelta("a", attempt=1, finish=DONE))
    assert not jobs.has("a")


def test_counters_go_on_and_sizes_do_not() -> None:
    totals = Totals()
    first = (Figure("steps", (5.0,)), Figure("kv_bytes", (9.0,)), Figure("tokens", (1.0,), "x"))
    again = (Figure("steps", (1.0,)), Figure("kv_bytes", (9.0,)), Figure("tokens", (1.0,), "y"))
    totals.keep(first)
    assert set(totals.with_(again)) == {
        Figure("steps", (6.0,)),
        Figure("kv_bytes", (9.0,)),
        Figure("tokens", (1.0,), "x"),
        Figure("tokens", (1.0,), "y"),
    }


def test_histograms_are_added_bucket_by_bucket() -> None:
    width = 16
    one = Figure("queue_seconds", tuple(float(index) for index in range(width)))
    (both,) = Totals().with_((one, one))
    assert both.values == tuple(2.0 * index for index in range(width))


def test_cards_are_joined_to_what_all_can_do() -> None:
    other = replace(CARD, context_length=256, capabilities=("seed", "min_p"))
    card = joint((CARD, other), "DEP_2")
    assert (card.context_length, card.capabilities, card.parallel) == (256, ("seed",), "DEP_2")
    with pytest.raises(ConfigError, match=r"hash_root is '00' at one rank and '01' at another"):
        joint((CARD, replace(CARD, hash_root="01")), "DEP_2")


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (replace(CARD, context_length=600), ""),
        (replace(CARD, context_length=500), "its memory holds 500 tokens of context now, and 512"),
        (replace(CARD, vocab_size=99), "vocab_size is 99 now, and was 100"),
        (replace(CARD, capabilities=("n",)), "it can do seed no more"),
    ],
)
def test_what_came_back_must_keep_what_was_promised(card: EngineCard, words: str) -> None:
    found = lack(CARD, (CARD, card))
    assert found.startswith(words)
    assert bool(found) == bool(words)


# --- devices and launcher --------------------------------------------------------------------


def test_each_group_has_the_next_devices() -> None:
    assert visible_devices(0, 2, 4, None) == "0,1"
    assert visible_devices(1, 2, 4, None) == "2,3"
    assert visible_devices(1, 1, 2, "5, 7") == "7"
    words = "GPUs 2 to 3 are wanted, and 3 are seen: lower instance_count"
    with pytest.raises(ConfigError, match=words):
        visible_devices(1, 2, 3, None)


def test_where_ranks_run() -> None:
    assert is_on_gpus("auto", 1)
    assert not is_on_gpus("auto", 0)
    assert is_on_gpus("cuda", 0), "so that the lack is said"
    assert not is_on_gpus("cpu", 8)
    with pytest.raises(ConfigError, match="device is cuda:1, and a group takes its devices"):
        is_on_gpus("cuda:1", 8)
    assert (device_of("cuda", 3), device_of("cpu", 3)) == ("cuda:3", "cpu")


def test_more_ranks_than_cores_are_warned_of() -> None:
    assert not crowd(2, 2)
    assert "64 ranks share 2 cores" in crowd(64, 2)


def failed(code: int, at: int) -> SimpleNamespace:
    name = signal.Signals(-code).name if code < 0 else "<N/A>"
    return SimpleNamespace(exitcode=code, timestamp=at, signal_name=lambda: name)


def test_the_first_failure_is_told_not_those_that_were_ended_for_it() -> None:
    found = failure_of({0: failed(-15, 1), 1: failed(-15, 1), 2: failed(-9, 2)})
    assert found == {"rank": 2, "code": -9, "signal": "SIGKILL"}
    assert failure_of({0: failed(1, 5), 1: failed(3, 4)}) == {"rank": 1, "code": 3, "signal": ""}


# --- orders and frames -----------------------------------------------------------------------


class Two:
    """A tokenizer of two ids, the first of which is none."""

    vocabulary = Vocabulary(2, eos_ids=(1,))

    def token_bytes(self, id: int) -> bytes:
        if id == 0:
            raise KeyError(id)
        return b"\xff"


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    order = Order(
        settings=CudaSettings(path="/m", speculation=Speculation(), adapters={"a": "/a"}),
        model="m",
        pieces=pieces_of(Two(), has_grammars=True),
        token="t",
    )
    path = tmp_path / "order"
    write_order(order, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_order(path) == order
    services = read_order(path).services()
    assert services.tokenizer is not None
    assert services.tokenizer.vocabulary == Two.vocabulary
    assert services.tokenizer.token_bytes(1) == b"\xff"
    for id in (0, 2, -1):
        with pytest.raises(KeyError):
            services.tokenizer.token_bytes(id)
    path.write_bytes(b"\xc1")
    with pytest.raises(ConfigError, match="no order for a rank"):
        read_order(path)


def test_spellings_stay_at_home_where_nobody_needs_them() -> None:
    assert pieces_of(Two(), has_grammars=False) == Pieces(Two.vocabulary)
    assert pieces_of(None, has_grammars=True) is None


STATUS = EngineStatus(CARD, running=2, figures=(Figure("steps", (1.0,)),))
FROM_RANK = (
    frames.Enter("t", 1, 2, "h"),
    frames.Progress("x", 1, 2),
    frames.Hello(0, CARD, 8, {"a": 1}, frames.Figures.of(STATUS, is_whole=True)),
    frames.Deltas((TokenDelta("a", ids=TokenIds([1]), finish=DONE),)),
    frames.Events((BlockSnapshot(1, ("00",)),)),
    frames.Failed("why"),
)
FROM_FRONT = (
    frames.Jobs(3, (JOB,)),
    frames.Wake(3),
    frames.Controls((Abort("a"),)),
    frames.Listen(),
    frames.Stop(),
)


@given(st.lists(st.sampled_from(FROM_RANK + FROM_FRONT), max_size=6), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(sent: list, data) -> None:
    stream = b"".join(frames.encode(frame) for frame in sent)
    splitter, found = Splitter(), []
    splitter.trust()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        splitter.feed(stream[:size])
        stream = stream[size:]
        while (part := splitter.next()) is not None:
            found.append(part)
    assert len(found) == len(sent)
    for part, frame in zip(found, sent, strict=True):
        read = frames.read_rank if frame in FROM_RANK else frames.read_front
        assert read(part) == frame


def test_a_stranger_can_fill_no_memory() -> None:
    splitter = Splitter()
    splitter.feed((5000).to_bytes(4, "little"))
    with pytest.raises(FrameError, match="a frame of 5000 bytes, wanted 4096 at most"):
        splitter.next()


@pytest.mark.parametrize("read", [frames.read_front, frames.read_rank])
def test_nonsense_is_no_frame(read) -> None:
    for data in (b"", b"\xc1", b"\x80", b"\x81\xa4type\xa3xyz"):
        with pytest.raises(FrameError):
            read(data)


def test_the_servers_side_imports_no_torch() -> None:
    code = (
        "import sys; import tokenwire.plugins.engines.cuda.parallel.front\n"
        "import tokenwire.plugins.engines.cuda.parallel.command\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- words and waits -------------------------------------------------------------------------


def test_what_failed_is_said_once_and_by_name(tmp_path: Path) -> None:
    words = Words(1, 4, tmp_path / "failure", is_only=False)
    assert words.said(2, "engine cuda: no memory") == "rank 2 of 4 of group 1: no memory"
    assert words.died() is None
    words.failure.write_text('{"rank": 3, "code": 7, "signal": ""}')
    assert words.died() == ("rank 3 of 4 of group 1 died: exit code 7", False)
    words.failure.write_text('{"rank": 3, "code": -9, "signal": "SIGKILL"}')
    assert words.died() == ("rank 3 of 4 of group 1 died: SIGKILL", True)
    words.failure.write_text('{"message": "engine cuda: GPUs 2 to 3 are wanted"}')
    assert words.died() == ("group 1: GPUs 2 to 3 are wanted", False)
    assert words.silent({0}, {0, 3}, 60.0).startswith(
        "group 1: ranks 1, 2, 3 of 4 said nothing for 60 s while starting (3 had begun): look"
    )


def test_a_group_waits_longer_each_time_until_it_has_served_for_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.take() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.ready(100.0)
    backoff.fail(159.0)
    assert backoff.take() == 60
    backoff.ready(200.0)
    backoff.fail(260.0)
    assert backoff.take() == 1
