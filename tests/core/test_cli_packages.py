"""Commands that packages bring by entry points: called with their own arguments, imported late."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint

import pytest

from tokenwire.core.cli import main, packages


def echo(arguments):
    print(arguments)
    return 3


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="tokenwire parsed")
    parser.add_argument("--level", type=int, default=0)
    print(parser.parse_args(arguments).level)


def failing(arguments):
    raise RuntimeError("a bug")


@pytest.fixture
def install(monkeypatch):
    """Makes functions the installed commands; an error is raised when it is imported."""
    loaded = []

    def put(*named):
        functions = dict(named)

        class Point(EntryPoint):
            def load(self):
                loaded.append(self.name)
                found = functions[self.value]
                if isinstance(found, Exception):
                    raise found
                return found

        points = [
            Point(name, f"mod_{name}_{place}", packages.GROUP)
            for place, (name, _) in enumerate(named)
        ]
        functions = {
            point.value: function for point, (_, function) in zip(points, named, strict=True)
        }
        monkeypatch.setattr(packages, "entry_points", lambda group: points)
        return loaded

    return put


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["one", "two words"],
        ["--flag", "--key=value", "-x", "--other", "7"],
        ["--help"],
        ["--version"],
        ["-1"],
        [""],
    ],
)
def test_a_command_gets_its_arguments_as_they_were_typed(install, capsys, arguments):
    install(("echo", echo))
    assert main(["echo", *arguments]) == 3
    assert capsys.readouterr().out == f"{arguments}\n"


def test_help_lists_it_and_imports_nothing(install, capsys):
    loaded = install(("echo", echo))
    assert main(["--help"]) == 0
    assert " echo " in capsys.readouterr().out
    assert loaded == []


def test_the_end_of_its_own_parser_is_the_exit_code(install, capsys):
    install(("parsed", parsed))
    assert main(["parsed", "--level", "4"]) == 0
    assert capsys.readouterr().out == "4\n"
    assert main(["parsed", "--level", "x"]) == 2
    assert "invalid int value" in capsys.readouterr().err
    assert main(["parsed", "--help"]) == 0
    assert "usage: tokenwire parsed" in capsys.readouterr().out


def test_a_command_that_cannot_be_imported_is_said_when_it_is_called(install, capsys):
    install(("broken", ImportError("no torch")), ("echo", echo))
    assert main(["echo"]) == 3
    assert capsys.readouterr().err == ""
    assert main(["broken"]) == 2
    assert capsys.readouterr().err == (
        "tokenwire: broken: cannot be imported from mod_broken_0 (mod_broken_0): "
        "ImportError: no torch\n"
    )


def test_a_taken_name_is_left_out_with_a_warning(install, capsys):
    install(("serve", echo), ("echo", echo), ("echo", failing))
    assert main(["echo"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "tokenwire: warning: mod_echo_2: there is a command 'echo' already: left out",
        "tokenwire: warning: mod_serve_0: there is a command 'serve' already: left out",
    ]


def test_a_bug_in_a_command_shows_its_traceback(install):
    install(("failing", failing))
    with pytest.raises(RuntimeError, match="a bug"):
        main(["failing"])


def test_the_kernels_command_is_installed(capsys):
    assert main(["kernels", "--help"]) == 0
    assert "list" in capsys.readouterr().out
