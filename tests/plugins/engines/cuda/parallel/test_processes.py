"""Real processes under torchrun's engine: what is said when they die, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.plugins.engines.cuda.parallel.stub_groups import STUB, folder_of, stubs
from tests.plugins.engines.cuda.parallel.test_front import ENDLESS, Reader, job, looped
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import FinishCause
from tokenwire.plugins.engines.cuda.parallel.command import keep_running
from tokenwire.plugins.engines.cuda.settings import CudaSettings

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[5]
PATIENCE_S = 120


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def of_order(path: str) -> dict[int, str]:
    """The processes whose arguments name a file in a folder: by pid, what each is."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if any(word.startswith(path) for word in words):
                found[int(entry.name)] = words[2] if len(words) > 2 else ""
    return found


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


@asynccontextmanager
async def reading(make: Callable[[], Engine]) -> AsyncIterator[Reader]:
    engine = await asyncio.to_thread(make)
    folder = folder_of(engine)
    reader = Reader(engine)
    task = asyncio.create_task(reader.read())
    try:
        yield reader
    finally:
        await engine.drain(0)
        await task
        assert await asyncio.to_thread(engine._worker.join, PATIENCE_S)
        assert not of_order(folder), "a process is left"
        assert not Path(folder).exists()


def ranks_of(engine: Engine, order: str = "order-0") -> list[int]:
    found = of_order(f"{folder_of(engine)}/{order}")
    return sorted(pid for pid, what in found.items() if not what.endswith("launcher"))


@looped
async def test_two_instances_of_a_model_serve_and_one_that_is_killed_comes_back() -> None:
    def make() -> Engine:
        from tokenwire.plugins.engines.cuda.build import build

        settings = CudaSettings(
            path=str(tiny_llama()), device="cpu", instance_count=2, kv_gib=0.01, threads=1
        )
        return build(settings, lone_services())

    async with reading(make) as reader:
        assert reader.engine.status().card.parallel == "TP_1"
        jobs = [job(f"j{index}", prompt=20, first=index + 3) for index in range(4)]
        reader.engine.submit(jobs)
        for each in jobs:
            assert (await reader.ends(each.job)).finish.cause is FinishCause.MAX
        held = {"prompt": 8, "stopping": ENDLESS, "credit": 2}
        reader.engine.submit([job("a", **held), job("b", **held)])
        await reader.begins("a")
        await reader.begins("b")
        (rank,) = ranks_of(reader.engine)
        os.kill(rank, signal.SIGKILL)
        await reader.until(lambda: any(_is_lost(reader, name) for name in "ab"))
        lost = next(name for name in "ab" if _is_lost(reader, name))
        message = reader.deltas[lost][-1].finish.message
        assert message == "rank 0 of 1 of group 0 died: SIGKILL"
        status = reader.engine.status()
        assert status.ready
        assert status.about["instance_0"].startswith("down: rank 0")
        await reader.until(lambda: reader.engine.status().about["instances_ready"] == 2)
        reader.engine.submit([job(f"k{index}", prompt=20) for index in range(4)])
        for index in range(4):
            assert (await reader.ends(f"k{index}")).finish.cause is FinishCause.MAX


def _is_lost(reader: Reader, name: str) -> bool:
    finish = reader.deltas[name][-1].finish
    return finish is not None and finish.cause is FinishCause.LOST


@looped
async def test_the_rank_that_was_killed_is_named_not_those_that_fell_with_it() -> None:
    async with reading(lambda: stubs("TP_2 x DEP_2")) as reader:
        reader.engine.submit([job("a", stopping=ENDLESS), job("b", stopping=ENDLESS)])
        await reader.begins("a")
        await reader.begins("b")
        by_rank = {_rank(pid): pid for pid in ranks_of(reader.engine)}
        os.kill(by_rank[3], signal.SIGKILL)
        for name in "ab":
            finish = (await reader.ends(name)).finish
            assert (finish.cause, finish.message) == (
                FinishCause.LOST,
                "rank 3 of 4 died: SIGKILL",
            )
        assert not reader.engine.status().ready


@looped
async def test_a_rank_that_is_stopped_is_named_and_the_group_comes_back() -> None:
    async with reading(lambda: stubs("TP_2", silence_timeout=4)) as reader:
        reader.engine.submit([job("a", stopping=ENDLESS)])
        await reader.begins("a")
        before = ranks_of(reader.engine)
        os.kill(next(pid for pid in before if _rank(pid) == 1), signal.SIGSTOP)
        finish = (await reader.ends("a")).finish
        assert finish.cause is FinishCause.LOST
        assert finish.message.startswith("rank 1 of 2 has said nothing for 4 s: its process")
        await reader.ready()
        assert not set(before) & set(ranks_of(reader.engine))
        reader.engine.submit([job("b")])
        assert (await reader.ends("b")).finish.cause is FinishCause.MAX


@looped
async def test_a_stopped_rank_does_not_outlive_its_launcher() -> None:
    async with reading(lambda: stubs("TP_2")) as reader:
        before = ranks_of(reader.engine)
        os.kill(before[1], signal.SIGSTOP)
        every = of_order(f"{folder_of(reader.engine)}/order-0")
        (launcher,) = [pid for pid, what in every.items() if what.endswith("launcher")]
        os.kill(launcher, signal.SIGKILL)
        await reader.ready(is_ready=False)
        assert reader.engine.status().reason == "group 0: its launcher died: SIGKILL"
        await reader.ready()
        assert not set(before) & set(ranks_of(reader.engine))


def _rank(pid: int) -> int:
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(word[5:]) for word in words if word.startswith(b"RANK="))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("raise 1", "engine cuda: rank 1 of 2: layers.3.weight is missing"),
        ("exit 0", "engine cuda: rank 0 of 2 died: exit code 7"),
    ],
)
def test_why_a_rank_did_not_start_is_the_error(model: str, words: str) -> None:
    with pytest.raises(ConfigError) as failed:
        stubs("TP_2", model)
    assert str(failed.value) == words


@pytest.mark.parametrize("is_killed", [True, False])
def test_nothing_outlives_the_front(is_killed: bool, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tests.plugins.engines.cuda.parallel.stub_groups import *\n"
        "folder = folder_of(stubs('TP_2'))\n"
        "assert 'torch' not in sys.modules\n"
        "print(folder, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, cwd=ROOT) as front,
    ):
        assert front.stdout is not None
        assert front.stdin is not None
        folder = front.stdout.readline().decode().strip()
        assert folder.startswith("/"), (tmp_path / "log").read_text()
        assert len(of_order(folder)) == 3
        if is_killed:
            front.kill()
        front.stdin.close()
        front.wait(PATIENCE_S)
    if is_killed:
        wait_for(lambda: not of_order(folder))
    assert not of_order(folder), "it waits for them where it can"
    assert not Path(folder).exists()


@looped
async def test_a_group_over_two_machines_serves_and_comes_back() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fields = {"nodes": 2, "rendezvous": f"127.0.0.1:{port}"}
    other = CudaSettings(path=str(ROOT), device="cpu", parallel_strategy="DEP_2", node=1, **fields)
    ended = threading.Event()
    share = threading.Thread(
        target=keep_running, args=(other, ended), kwargs={"program": STUB}, daemon=True
    )
    share.start()
    try:
        async with reading(lambda: stubs("DEP_2", **fields)) as reader:
            reader.engine.submit([job("a", stopping=ENDLESS), job("b", stopping=ENDLESS)])
            await reader.begins("a")
            await reader.begins("b")
            group = reader.engine._worker._groups.instances[0]
            os.kill(group._wires[1].pid, signal.SIGKILL)
            for name in "ab":
                finish = (await reader.ends(name)).finish
                assert finish.cause is FinishCause.LOST
                assert finish.message == "rank 1 of 2 is gone: its connection closed"
            await reader.ready()
            reader.engine.submit([job("c"), job("d")])
            for name in "cd":
                assert (await reader.ends(name)).finish.cause is FinishCause.MAX
    finally:
        ended.set()
        share.join(PATIENCE_S)
    assert not share.is_alive()
