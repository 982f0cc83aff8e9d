"""`tokenwire plan`: its text and its JSON as files, its exit codes, and the file that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from tests import goldens
from tokenwire.core.cli import main, probing
from tokenwire.core.cost.links import Links, Probe, Sample
from tokenwire.core.errors import ConfigError

HERE = Path(__file__).parent / "goldens"

CASES = {
    "wide_slow_network": (
        "--model deepseek-v3 --gpus 64 --domain 8 --nic 12.5 --kv-dtype fp8 --price 3.5"
    ),
    "wide_usual_network": "--model deepseek-v3 --gpus 64 --tpot 20ms --objective user",
    "two_kinds": (
        "--model qwen3-30b-a3b --gpus 16 --gpu b200 --price 6 --prefill-gpu a100 "
        "--prefill-price 1.5 --efficiency 0.4 --dispatch node"
    ),
    "does_not_fit": "--model deepseek-v3 --gpus 4",
    "too_slow": "--model llama-3.3-70b --gpus 8 --tpot 0.1ms",
}
UNFIT = ("does_not_fit", "too_slow")


@pytest.fixture
def run(capsys):
    """Runs `tokenwire plan ARGUMENTS` -> (exit code, stdout, stderr)."""

    def command(*arguments):
        code = main(["plan", *(str(argument) for argument in arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.mark.parametrize("name", CASES)
def test_plans_as_text_and_as_json(run, name):
    arguments = CASES[name].split()
    code, text, err = run(*arguments)
    assert (code, err) == (int(name in UNFIT), "")
    goldens.check(HERE / f"{name}.txt", text.encode())
    again, raw, _ = run(*arguments, "--json")
    assert again == code
    goldens.check(HERE / f"{name}.json", raw.encode())
    assert json.loads(raw)["fits"] == (name != "does_not_fit")


def test_it_says_first_whether_the_model_fits(run):
    first = run(*CASES["does_not_fit"].split())[1].splitlines()[0]
    assert first == "deepseek-v3 does not fit on 4 h200; the fewest that hold it: 8 (TP_8)."
    assert "No layout keeps 0.1 ms a token" in run(*CASES["too_slow"].split())[1]


def test_weights_are_counted_as_the_engine_holds_them(run):
    arguments = ["--model", "gpt-oss-120b", "--gpus", "2", "--json"]
    found = json.loads(run(*arguments)[1])
    assert (found["precision"], found["weights_gb"]) == ("bf16", 233.6)
    assert "Published in mxfp4 (65.2 GB)" in found["weights_note"]
    found = json.loads(run(*arguments, "--weights-dtype", "mxfp4")[1])
    assert found["weights_gb"] == 65.2
    assert "the plan is for another engine" in found["weights_note"]


def test_it_is_listed(capsys):
    main(["--help"])
    assert " plan " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model gpt-17 --gpus 8", "no config.json is there, and no known model has that name"),
        ("--model deepseek-v4 --gpus 8", "the nearest is 'deepseek-v3'"),
        ("--model some.gguf --gpus 8", "a GGUF file cannot be planned with"),
        ("--model qwen3-8b --gpus 0", "gpus: wanted at least 1, got 0"),
        ("--model qwen3-8b --gpus 8 --gpu tpu", "GPU 'tpu': its figures are not known"),
        ("--model qwen3-8b --gpus 8 --tpot 50", "tpot: wanted a time as 50ms or 0.05s, got '50'"),
        ("--model qwen3-8b --gpus 8 --nic nan", "nic: wanted bytes a second above 0, got nan"),
        ("--model qwen3-8b --gpus 8 --domain 0", "domain: wanted at least 1 GPU"),
        ("--model qwen3-8b --gpus 8 --weights-dtype int4", "int4"),
        ("--model qwen3-8b --gpus 8 --price 0", "price: wanted more than 0"),
        ("--model qwen3-8b --gpus 8 --ranks 2", "says how many ranks --measure starts"),
        ("--model qwen3-8b --gpus 8 --measure --ranks 1", "a link is between 2 or more, got 1"),
        ("--model qwen3-8b --gpus 8 --measure --ranks 12", "do not make whole domains of 8"),
    ],
)
def test_wrong_questions_are_2_and_a_sentence(run, arguments, message):
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("tokenwire: ")
    assert message in " ".join(err.split())


def test_a_folder_and_its_config_are_the_same(run, tmp_path):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "vocab_size": 100,
        "num_attention_heads": 4,
        "intermediate_size": 96,
    }
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    found = run("--model", folder, "--gpus", 1)
    assert found[0] == 0
    assert found[1].startswith("small fits on 1 h200;")
    assert run("--model", folder / "config.json", "--gpus", 1) == found
    (folder / "config.json").write_text("{")
    assert run("--model", folder, "--gpus", 1)[0] == 2


def test_it_writes_a_new_file_alone(run, tmp_path):
    path = tmp_path / "node.yaml"
    arguments = (*CASES["wide_slow_network"].split(), "--write", path)
    assert run(*arguments)[0] == 0
    assert yaml.safe_load(path.read_text())["parallel_strategy"] == "DEP_8"
    assert "# It wants 7 x DEP_8 of prefill beside it (56 h200)." in path.read_text()
    before = path.read_bytes()
    code, said, err = run(*arguments)
    assert (code, path.read_bytes(), said) == (2, before, "")
    assert "is there already: name a new file" in " ".join(err.split())
    missing = tmp_path / "none" / "node.yaml"
    assert run(*arguments[:-1], missing)[0] == 2
    other = tmp_path / "prefill.yaml"
    assert run(*arguments[:-2], "--write-prefill", other)[0] == 0
    assert yaml.safe_load(other.read_text())["node_role"] == "prefill"
    untouched = tmp_path / "unfit.yaml"
    assert run(*CASES["too_slow"].split(), "--write", untouched)[0] == 1
    assert not untouched.exists()


# --- measured links ------------------------------------------------------------------------------


def found(asked: Probe) -> Links:
    """As if V3's 64 ranks had said so."""
    assert asked == Probe(None, 8, 7392), "a row of V3 in fp8, with its scales"
    samples = Sample("within", 1, 7392, 1e-5), Sample("across", 1024, 10**8, 8e-3)
    return Links(64, 8, 7392, "cards over NCCL", 400e9, 12.5e9, 300e9, 1e-5, samples)


class Point:
    """An entry point."""

    name, value = "mine", "mine:measure"

    def __init__(self, function):
        self.load = lambda: function


def measuring(monkeypatch, *points):
    monkeypatch.setattr(probing, "entry_points", lambda *, group: points)


WIDE = "--model deepseek-v3 --gpus 64 --kv-dtype fp8 --measure"


def test_measured_links_take_the_datasheets_place(run, monkeypatch):
    measuring(monkeypatch, Point(found))
    code, text, _ = run(*WIDE.split())
    assert code == 0
    assert "64 h200 in domains of 8, 12.5 GB/s beyond (measured)" in text
    assert "NVLink 400 GB/s (measured)" in text
    assert "Measured with 64 ranks in domains of 8, cards over NCCL, rows of 7,392 bytes" in text
    assert "all-to-all between domains  1,024   100,000,000  8.000       12.500" in text
    assert "Refused: DEP_64: its exchange over 12.5 GB/s caps a GPU" in text
    row = json.loads(run(*WIDE.split(), "--json")[1])
    assert (row["nic_mark"], row["links"]["sums_gb_s"]) == ("measured", 300)
    assert row["figures"][0]["nvlink_mark"] == "measured"


def test_a_link_that_is_said_stands(run, monkeypatch):
    measuring(monkeypatch, Point(found))
    assert "50 GB/s beyond (datasheet)" in run(*WIDE.split()[:-1])[1]
    assert "100 GB/s beyond (said)" in run(*WIDE.split(), "--nic", "100")[1]


def test_what_was_not_measured_is_the_datasheets(run, monkeypatch):
    measuring(monkeypatch, Point(lambda asked: replace(found(asked), across=None)))
    text = run(*WIDE.split())[1]
    assert "50 GB/s beyond (datasheet)" in text
    assert "All ranks are of one domain: the link beyond is not measured." in text


def fails(_):
    raise ConfigError("--measure: rank 1 of 4 failed: no device")


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ((), "no installed package measures links"),
        ((Point(fails),), "rank 1 of 4 failed: no device"),
        ((Point(lambda _: 7),), "mine:measure gave int, wanted Links"),
    ],
)
def test_measuring_that_fails_is_2_and_a_sentence(run, monkeypatch, points, message):
    measuring(monkeypatch, *points)
    code, out, err = run(*WIDE.split())
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
