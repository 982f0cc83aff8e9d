"""`tokenwire ranks`: where it finds its settings, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.engines.cuda.parallel.command import main, settings_in

NODE = """
path: /models/v3
parallel_strategy: DEP_16
nodes: 2
rendezvous: "10.0.0.1:29500"
"""
SERVER = """
models:
  - {name: small, checkpoint: /models/small, engine: {plugin: cuda}}
  - name: v3
    checkpoint: /models/v3
    engine: {plugin: cuda, parallel_strategy: DEP_16, nodes: 2, rendezvous: "10.0.0.1:29500"}
"""


@pytest.mark.parametrize("text", [NODE, SERVER])
def test_a_node_file_and_a_configuration_say_the_same(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    found = settings_in(path, 1)
    assert (found.path, found.node, found.layout.name) == ("/models/v3", 1, "DEP_16")
    assert (found.nodes, found.rendezvous) == (2, "10.0.0.1:29500")


@pytest.mark.parametrize(
    ("text", "node", "model", "words"),
    [
        (SERVER, 1, "none", "0 models have engine cuda and are called 'none'"),
        (
            SERVER.replace(", nodes: 2", ""),
            1,
            None,
            "0 models have engine cuda and nodes: set nodes and rendezvous under the engine",
        ),
        (SERVER, 0, None, "node is 0 and nodes 2: this command is for the machines from 1 on"),
        (SERVER, 1, "small", "node and rendezvous are of several machines: set nodes"),
        (NODE, 2, None, "node is 2: wanted 0 to 1"),
        (NODE.replace("path: /models/v3", ""), 1, None, "the model has no checkpoint: set `path`"),
        (NODE + "colour: red", 1, None, "colour"),
        ("- 1", 1, None, "wanted a node file or a configuration, got no table"),
        ("a: [", 1, None, "cannot be read"),
    ],
)
def test_what_it_cannot_run_is_refused_in_words(
    text: str,
    node: int,
    model: str | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        settings_in(path, node, model)
    assert words in str(refused.value)
    arguments = [str(path), "--node", str(node), *(["--model", model] if model else [])]
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
