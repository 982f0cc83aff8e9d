"""Published failures that are no request with an output: bytes, templates, faults, headers.

`LONE` is a function for each; with what `test_shared_cases` plays, and what has a test of its own
elsewhere (`ELSEWHERE`), these are all cases of the file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cases import checks, test_isolation, test_live
from tests.cases.checkpoint import BEGIN, write_checkpoint
from tests.cases.shared import FILE, every, is_played
from tests.cases.stage import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Played, Stage
from tests.flow.test_wiring import Tagged
from tests.flow.wired import Doorman, factory, model, serving
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.errors import ConfigError, ErrorKind, RequestError
from tokenwire.core.testing.client import LocalClient, Recording, Response
from tokenwire.core.wire import HttpRequest

PATHS = (CHAT, MESSAGES, RESPONSES, COMPLETIONS)
HI = [{"role": "user", "content": "hi"}]
DEEP = 100_000


def _said(path: str) -> dict[str, Any]:
    """A short request."""
    if path == COMPLETIONS:
        return {"model": "m", "prompt": "hi", "max_tokens": 5}
    if path == RESPONSES:
        return {"model": "m", "input": "hi", "max_output_tokens": 20}
    return {"model": "m", "messages": HI, "max_tokens": 5}


# --- templates -----------------------------------------------------------------------------------


def _rendered(template: str, **body: Any) -> Response:
    config = ModelConfig(
        name="m",
        engine=PluginUse("mock"),
        tokenizer=PluginUse("script"),
        chat_template=PluginUse("jinja", {"source": template}),
        dialect="plain",
    )
    return _render(config, **body)


def _render(config: ModelConfig, **body: Any) -> Response:
    with LocalClient(Config(models=(config,))) as client:
        asked = {"model": "m", "messages": HI, "add_generation_prompt": False, **body}
        return client.post("/render", asked)


def _text(response: Response) -> Any:
    assert response.status == 200, response.body
    return json.loads(response.body)["text"]


def _template_runs_code(stage: Stage, case: Any, folder: Path) -> None:
    for template in (case["input"]["template"], *case["input"]["also"]):
        try:
            response = _rendered(template)
        except ConfigError:
            continue
        checks.client_fault(CHAT, response)
        checks.no_leak(response)
        assert response.status == 400


def _template_is_trimmed(stage: Stage, case: Any, folder: Path) -> None:
    given = case["input"]
    got = _text(_rendered(given["template"], messages=given["messages"]))
    assert got == case["expect"]["render"]


def _template_has_tokens(stage: Stage, case: Any, folder: Path) -> None:
    """As text, and as tokenizer_config's objects; absent ones are empty."""
    given = case["input"]
    for begin in (BEGIN, {"content": BEGIN, "lstrip": False, "special": True}):
        write_checkpoint(folder, given["template"], bos_token=begin)
        config = ModelConfig(
            name="m",
            engine=PluginUse("mock"),
            tokenizer=PluginUse("hf", {"path": str(folder / "tokenizer.json")}),
            chat_template=PluginUse("jinja"),
            dialect="plain",
        )
        assert _text(_render(config, messages=given["messages"])) == case["expect"]["render"]
    assert _text(_rendered("{{ unk_token }}.{{ messages[0].content }}")) == ".hi"


def _template_without_tools(stage: Stage, case: Any, folder: Path) -> None:
    """A list without tools is no tools (another case wants one prompt of both), so that of what
    the reference renders of an empty list nothing can be asked for."""
    for template, wanted in zip(
        case["input"]["templates"], case["expect"]["render_none"], strict=True
    ):
        for tools in case["input"]["tools"]:
            assert _text(_rendered(template, tools=tools)) == wanted


# --- bytes ---------------------------------------------------------------------------------------


def _no_request(stage: Stage, path: str, data: bytes) -> None:
    response = stage.client.post(path, data)
    checks.client_fault(path, response)
    checks.no_leak(response)
    assert response.status == 400


def _deep(stage: Stage, case: Any, folder: Path) -> None:
    nest = b"[" * DEEP + b"]" * DEEP
    objects = b'{"a":' * DEEP + b"1" + b"}" * DEEP
    for path in PATHS:
        body = msgspec.json.encode({**_said(path), "model": "plain"})
        _no_request(stage, path, body.replace(b'"hi"', nest))
        _no_request(
            stage, path, body[:-1] + b',"tools":[{"type":"function","a":' + objects + b"}]}"
        )
    text = '{"a":' * 3000 + "1" + "}" * 3000
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    turns = [*HI, {"role": "assistant", "tool_calls": [call]}]
    turns.append({"role": "tool", "tool_call_id": "c", "content": "ok"})
    checks.client_fault(CHAT, stage.client.post(CHAT, {"model": "hermes", "messages": turns}))


def _malformed(stage: Stage, case: Any, folder: Path) -> None:
    for path in PATHS:
        for text in case["input"]["raw_bodies"]:
            _no_request(stage, path, text.encode())


def _doubled(stage: Stage, case: Any, folder: Path) -> None:
    for path in PATHS:
        for text in case["input"]["raw_bodies"]:
            _no_request(stage, path, text.encode())


# --- errors --------------------------------------------------------------------------------------


def _error_shape(stage: Stage, case: Any, folder: Path) -> None:
    asked = {**case["input"]["request"], "model": "plain"}
    response = stage.client.post(MESSAGES, asked)
    checks.client_fault(MESSAGES, response)
    body: Any = response.json()
    assert response.status == case["expect"]["status"]
    assert body["type"] == case["expect"]["body.type"]
    assert body["error"]["type"] == case["expect"]["body.error.type"]
    assert response.headers["request-id"]


def _faults(stage: Stage, case: Any, folder: Path) -> None:
    """An engine, a template and a tokenizer that raise, with insides in what they say."""

    def boom(*_: object) -> Any:
        raise RuntimeError('Traceback: File "/x/site-packages/inside.py"')

    hidden = case["expect"]["body_excludes"]
    tagged = Tagged()
    for fault in ("engine", "tokenizer"):
        with serving(
            model(tokenizer=PluginUse("tagged")),
            plugins=[factory("tagged", tagged)],
            kind="tokenizers",
        ) as (client, (spied,)):
            broken, name = (spied, "submit") if fault == "engine" else (tagged, "encode")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(broken, name, boom)
                for path in (CHAT, MESSAGES, RESPONSES):
                    response = client.post(path, _said(path))
                    assert response.status >= 500, fault
                    checks.no_leak(response, *hidden)
    for source in ("{{ raise_exception('no') }}", "{{ messages[7].content.x }}", "{{ 1 // 0 }}"):
        response = _rendered(source)
        checks.client_fault(CHAT, response)
        checks.no_leak(response, *hidden)


# --- headers and keys ----------------------------------------------------------------------------


def _keys(stage: Stage, case: Any, folder: Path) -> None:
    """A guard sees the key in either header; what it refuses is refused in the protocol's words."""
    doorman = Doorman()
    with serving(model(dialect="plain"), guards=[doorman]) as (client, _):
        statuses = []
        for variant in case["input"]["variants"]:
            response = client.post(MESSAGES, _said(MESSAGES), variant["headers"])
            statuses.append(response.status)
            seen = doorman.asked[-1][0].headers
            assert {key: seen[key] for key in variant["headers"]} == variant["headers"]
        assert statuses == case["expect"]["statuses"]
        doorman.refusal = RequestError("wrong key", kind=ErrorKind.AUTHENTICATION)
        for path, kind in ((MESSAGES, "authentication_error"), (CHAT, None)):
            response = client.post(path, _said(path))
            checks.client_fault(path, response)
            body: Any = response.json()
            assert response.status == 401
            assert kind in (None, body["error"]["type"])


def _cache_of_ids(stage: Stage, case: Any, folder: Path) -> None:
    """Text and messages of the same words, in any order and again: the same ids as at first."""
    text, chat = ({**body, "model": "hermes"} for body in case["input"]["sequence"])
    ids: dict[str, Any] = {}
    for body in (text, chat, text, chat, chat, text):
        path = COMPLETIONS if "prompt" in body else CHAT
        got = stage.prompt(stage.client.post(path, body)).ids
        assert ids.setdefault(path, got) == got
    raw: Any = stage.client.post("/tokenize", {**text, "add_special_tokens": False}).json()
    again: Any = stage.client.post("/tokenize", text).json()
    assert tuple(again["tokens"]) == tuple(ids[COMPLETIONS])
    assert raw["count"] <= again["count"]


def _tool_state(stage: Stage, case: Any, folder: Path) -> None:
    """Other tools each, piece by piece at once, one of them given up half way."""
    outputs = case["model_output"].values()
    jobs = []
    for body, output in zip(case["input"]["concurrent"], outputs, strict=True):
        data = "".join(output["pieces"])
        script = {**output, "pieces": [data[at : at + 3] for at in range(0, len(data), 3)]}
        jobs.append((CHAT, {**body, "model": "hermes"}, stage.script(script)))

    def post(job: Any, exchange: Recording) -> Any:
        path, body, headers = job
        asked = HttpRequest("POST", path, dict(headers), body=msgspec.json.encode(body))
        return stage.client.deployment.flow.handle(asked, exchange)

    def played(exchange: Recording) -> Played:
        chunks = tuple(exchange.chunks)
        return Played(CHAT, Response(exchange.status, exchange.headers, chunks))

    async def alone(job: Any) -> Played:
        exchange = Recording()
        await post(job, exchange)
        return played(exchange)

    async def together() -> list[Played]:
        leaver, staying = Recording(), [Recording() for _ in jobs]
        tasks = [post(job, each) for job, each in zip(jobs, staying, strict=True)]
        leaving = asyncio.ensure_future(post(jobs[0], leaver))
        running = asyncio.gather(*tasks)
        while not leaver.chunks:
            await asyncio.sleep(0)
        leaver.leave()
        await asyncio.gather(running, leaving, return_exceptions=True)
        return [played(each) for each in staying]

    one_by_one = [stage.client.run(alone(job)) for job in jobs]
    checks.isolation(one_by_one, stage.client.run(together()))
    assert [len(each.message.calls) for each in one_by_one] == [1, 1, 0]


LONE: Mapping[str, Callable[[Stage, Any, Path], None]] = {
    "AE-07": _error_shape,
    "AR-09": _keys,
    "ER-04": _template_runs_code,
    "ER-06": _deep,
    "ER-09": _malformed,
    "ER-10": _faults,
    "ER-12": _doubled,
    "TM-09": _template_is_trimmed,
    "TM-16": _cache_of_ids,
    "TM-18": _template_has_tokens,
    "TM-19": _template_without_tools,
    "TS-03": _tool_state,
}
ELSEWHERE: Mapping[str, Callable[..., None]] = {
    "LP-10": test_isolation.test_a_request_id_of_the_client_s_own_is_no_name_of_ours,
    "TR-01": test_isolation.test_who_leaves_frees_everything,
    "TR-04": test_live.test_compressed_bodies,
    "TR-06": test_live.test_content_types,
    "TR-07": test_live.test_other_origins,
    "TR-09": test_live.test_streams_are_not_held_back,
}
CASES = {case["id"]: case for case in every()}
IS_THERE = pytest.mark.skipif(not CASES, reason=f"there are no shared cases at {FILE}")


@IS_THERE
@pytest.mark.parametrize("name", LONE)
def test_case(stage: Stage, name: str, tmp_path: Path) -> None:
    LONE[name](stage, CASES[name], tmp_path)


@IS_THERE
def test_every_case_is_played_or_has_a_test_of_its_own() -> None:
    played = {name for name, case in CASES.items() if is_played(case)}
    groups = (played, set(LONE), set(ELSEWHERE))
    assert sum(map(len, groups)) == len(CASES)
    assert set.union(*groups) == set(CASES)
