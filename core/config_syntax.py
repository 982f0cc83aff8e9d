"""YAML or TOML text to plain mappings; a key given twice is an error. Knows no key of ours."""

from __future__ import annotations

import tomllib
from typing import Any

import yaml

from tokenwire.core.errors import ConfigError

__all__ = ("read_mapping",)

KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class OnceLoader(yaml.SafeLoader):
    """SafeLoader, which would let the last of several equal keys win, but does not.

    Why while composing: merges (`<<`) are put in later, and may repeat keys.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in KEY_TAGS:
                raise _misplaced("wanted a text as key (put it in quotes)", key)
            if key.value in seen:
                raise _misplaced(f"the key '{key.value}' is given twice", key)
            seen.add(key.value)
        return node


def _misplaced(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, problem, node.start_mark)


def read_mapping(text: str, name: str) -> dict[str, object]:
    """TOML where `name` ends in .toml, else YAML. Raises ConfigError: a sentence, with the line."""
    try:
        read = tomllib.loads(text) if name.endswith(".toml") else yaml.load(text, OnceLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{name}: {line}{error.problem or 'is no YAML'}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: is no TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: is nested too deeply") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise ConfigError(f"{name}: cannot be read: {' '.join(str(error).split())}") from error
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ConfigError(f"{name}: wanted keys with values, got {type(read).__name__}")
    return read
