"""Requests that run at one time: each answers as by itself, whatever the others do, and when all
have ended or gone, nothing of them is left."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from tests.cases import checks
from tests.cases.outputs import OUTPUTS
from tests.cases.shared import asked, bodies, every, is_played, paths
from tests.cases.stage import CHAT, MESSAGES, RESPONSES, Played, Stage
from tokenwire.core.testing.client import Recording, Response
from tokenwire.core.wire import HttpRequest

AT_ONCE = 24
SAME = "the-same"
TURNS = 200

Job = tuple[str, dict[str, Any], dict[str, str]]


def _jobs(stage: Stage) -> list[Job]:
    """(path, request, headers): every case that is an output, streamed on each of its protocols."""
    found: list[Job] = []
    for case in every():
        script = case.get("model_output")
        if not is_played(case) or not script or not script.get("pieces"):
            continue
        if (
            script["finish"] == "abort"
            or len(script["pieces"]) > 100
            or "variants" in case["input"]
        ):
            continue
        if any(isinstance(piece, dict) and "repeat" in piece for piece in script["pieces"]):
            continue
        for path in paths(case):
            body = asked(path, next(bodies(case)), case)
            if body is not None and "previous_response_id" not in body:
                found.append((path, {**body, "stream": True}, stage.script(script)))
    for output in OUTPUTS[:AT_ONCE]:
        found.append((CHAT, {**output.asked, "stream": True}, stage.script(output.told)))
    return found


async def _one(stage: Stage, job: Job, exchange: Recording) -> Response:
    path, body, headers = job
    request = HttpRequest("POST", path, dict(headers), body=msgspec.json.encode(body))
    await stage.client.deployment.flow.handle(request, exchange)
    return Response(exchange.status, exchange.headers, tuple(exchange.chunks))


def test_all_cases_at_once_answer_as_each_does_alone(stage: Stage) -> None:
    jobs = _jobs(stage)

    async def together(some: list[Job]) -> list[Response]:
        leaver = Recording()
        leaving = asyncio.ensure_future(_one(stage, some[0], leaver))
        answers = asyncio.gather(*(_one(stage, job, Recording()) for job in some))
        await _until(lambda: len(leaver.chunks) > 0 or leaving.done())
        leaver.leave()
        found = await answers
        await asyncio.gather(leaving, return_exceptions=True)
        return found

    for at in range(0, len(jobs), AT_ONCE):
        some = jobs[at : at + AT_ONCE]
        alone = [Played(job[0], stage.client.run(_one(stage, job, Recording()))) for job in some]
        answers = stage.client.run(together(some))
        at_once = [Played(job[0], answer) for job, answer in zip(some, answers, strict=True)]
        checks.isolation(alone, at_once)
        _settled(stage)


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("after", [0, 1, 2, None], ids=lambda after: f"after {after}")
@pytest.mark.parametrize("n", [1, 2])
def test_who_leaves_frees_everything(stage: Stage, path: str, after: int | None, n: int) -> None:
    """Before the first chunk, behind one or two, and while no stream was asked for (None)."""
    said = {"input": "long"} if path == RESPONSES else {"messages": [_user("long")]}
    body = {"model": "plain", **said, "stream": after is not None}
    body |= {"max_output_tokens" if path == RESPONSES else "max_tokens": 4000}
    if path == CHAT:
        body["n"] = n
    headers = stage.script({"pieces": [{"repeat": "x ", "times": 4000}], "finish": "eos"})

    async def go() -> Recording:
        exchange = Recording()
        task = asyncio.ensure_future(_one(stage, (path, body, headers), exchange))
        if after is None:
            await _until(lambda: _running(stage) > 0)
        else:
            await _until(lambda: len(exchange.chunks) >= after)
        exchange.leave()
        await task
        return exchange

    exchange = stage.client.run(go())
    assert b"[DONE]" not in b"".join(exchange.chunks)
    _settled(stage)


def test_a_request_id_of_the_client_s_own_is_no_name_of_ours(stage: Stage) -> None:
    """LP-10: the same one twice at once."""
    jobs: list[Job] = []
    for word in ("alpha", "beta"):
        headers = stage.script({"pieces": [*word], "finish": "eos"}) | {"x-request-id": SAME}
        jobs.append((CHAT, {"model": "plain", "messages": [_user(word)], "stream": True}, headers))

    async def go() -> list[Response]:
        return await asyncio.gather(*(_one(stage, job, Recording()) for job in jobs))

    answers = stage.client.run(go())
    assert [Played(CHAT, answer).message.content for answer in answers] == ["alpha", "beta"]
    ids = {json.loads(answer.events()[0].data)["id"] for answer in answers}
    assert len(ids) == 2
    _settled(stage)


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _running(stage: Stage) -> int:
    return sum(s.running for s in stage.client.deployment.engine_statuses().values())


async def _until(is_true: Any) -> None:
    for _ in range(100_000):
        if is_true():
            return
        await asyncio.sleep(0)
    raise AssertionError("waited in vain")


def _settled(stage: Stage) -> None:
    """Once every loop has seen that all are gone."""

    async def turns() -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if _running(stage) == 0:
                return

    stage.client.run(turns())
    checks.nothing_held(stage.client.deployment.engine_statuses())
