"""One engine in its own process, told by JSON lines what to run: engine.py starts it.

    PYTHON engine_sides.py {tokenwire,vllm,transformers} MODEL DTYPE LOAD

LOAD is JSON: {"prompts": 64, "tokens": 128, "out": 64, "core": 1}. The first line written says
that the engine stands; each line read, {"prompts": [[id, ...], ...], "out": 64}, is answered with
the seconds, the CPU seconds of all threads, and the ids. Runs under any of the interpreters: it
imports tokenwire only where that is the side.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ("SIDES", "Run", "tokenwire_settings")

Run = Callable[[list[list[int]], int], list[list[int]]]
BLOCK = 16


def tokenwire_settings(model: str, dtype: str, load: dict[str, int]) -> dict[str, Any]:
    """KV for exactly this load, and prompts that are never shared."""
    config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    element = {"float32": 4, "bfloat16": 2}[dtype]
    token = 2 * element * config["num_hidden_layers"]
    token *= config["num_key_value_heads"] * config["head_dim"]
    length = load["tokens"] + load["out"]
    blocks = load["prompts"] * -(-length // BLOCK) + 1
    return {
        "path": model,
        "device": "cpu",
        "dtype": dtype,
        "threads": 1,
        "max_batch_size": load["prompts"],
        "max_model_len": 1024 if blocks > 1024 // BLOCK else length,
        "kv_gib": blocks * BLOCK * token / (1 << 30) + 1e-6,
        "block_size": BLOCK,
        "prefix_cache": False,
    }


def tokenwire(model: str, dtype: str, load: dict[str, int]) -> Run:
    from tokenwire.core.host import lone_services
    from tokenwire.core.settings import Place, convert
    from tokenwire.core.token_ids import TokenIds
    from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob
    from tokenwire.plugins.engines.cuda.build import build
    from tokenwire.plugins.engines.cuda.settings import CudaSettings

    settings = convert(
        CudaSettings, tokenwire_settings(model, dtype, load), Place("bench", "engine")
    )
    engine = build(settings, lone_services())
    reader = engine.batches()
    loop = asyncio.new_event_loop()

    async def answers(prompts: list[list[int]], out: int) -> list[list[int]]:
        stopping = JobStopping(max_tokens=out, ignore_eos=True)
        sampling = JobSampling(temperature=0.0)
        jobs = [
            TokenJob(
                job=str(at),
                model="",
                prompt=TokenIds(prompt),
                sampling=sampling,
                stopping=stopping,
                credit=out,
            )
            for at, prompt in enumerate(prompts)
        ]
        found: list[list[int]] = [[] for _ in prompts]
        left = len(prompts)
        engine.submit(jobs)
        while left:
            for delta in await anext(reader):
                found[int(delta.job)] += delta.ids
                left -= delta.finish is not None
        return found

    return lambda prompts, out: loop.run_until_complete(answers(prompts, out))


def vllm(model: str, dtype: str, load: dict[str, int]) -> Run:
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=model,
        dtype=dtype,
        max_model_len=1024,
        max_num_seqs=load["prompts"],
        enable_prefix_caching=False,
        skip_tokenizer_init=True,
    )

    def run(prompts: list[list[int]], out: int) -> list[list[int]]:
        params = SamplingParams(temperature=0, max_tokens=out, ignore_eos=True, detokenize=False)
        given = [{"prompt_token_ids": prompt} for prompt in prompts]
        found = engine.generate(given, params, use_tqdm=False)
        return [list(each.outputs[0].token_ids) for each in found]

    return run


def transformers(model: str, dtype: str, load: dict[str, int]) -> Run:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    network = AutoModelForCausalLM.from_pretrained(
        model, dtype=getattr(torch, dtype), attn_implementation="sdpa"
    ).eval()

    def run(prompts: list[list[int]], out: int) -> list[list[int]]:
        ids = torch.tensor(prompts)
        with torch.inference_mode():
            found = network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=out,
                min_new_tokens=out,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
            )
        return found[:, ids.shape[1] :].tolist()

    return run


SIDES = {"tokenwire": tokenwire, "vllm": vllm, "transformers": transformers}


def main() -> None:
    side, model, dtype, told = sys.argv[1:]
    load = json.loads(told)
    # Why: engines write to stdout as they like; what is told here must not mix with it.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _be_alone(load["core"])
    __import__("torch")
    __import__("tokenwire.plugins.engines.cuda.build" if side == "tokenwire" else side)
    before, files = _resident(), _told("RssFile")
    began = time.perf_counter()
    run = SIDES[side](model, dtype, load)
    run([[1, 2, 3]] * 4, 4)
    ready = {
        "version": "" if side == "tokenwire" else version(side),
        "torch": version("torch"),
        "seconds": time.perf_counter() - began,
    }
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        cpu, wall = _cpu(), time.perf_counter()
        ids = run(asked["prompts"], asked["out"])
        found = {"seconds": time.perf_counter() - wall, "cpu": _cpu() - cpu, "ids": ids}
        found["grown"], found["files"] = _peak() - before, _told("RssFile") - files
        print(json.dumps(found), file=answers, flush=True)
    os._exit(0)  # why: vLLM's threads do not end by themselves


def _be_alone(core: int) -> None:
    """One core and one thread, as all sides have it."""
    os.sched_setaffinity(0, {core})
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": str(core),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident() -> int:
    """Bytes now; the peak is counted anew from here."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _told("VmRSS")


def _peak() -> int:
    return _told("VmHWM")


def _told(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
