"""`serve` and `config check`: from a file and options to a Config. Knows no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from cyclopts import App

from tokenwire.core.cli.shell import Shell
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.config_check import check
from tokenwire.core.config_file import load, overlay
from tokenwire.core.errors import ConfigError, PluginError
from tokenwire.core.gguf_checkpoint import checkpoint_at, is_gguf
from tokenwire.core.host import Host, lone_services
from tokenwire.core.mock_mode import refuse_public_mock, with_mock
from tokenwire.core.settings import Place

__all__ = ("add", "choose", "default_config", "host_of", "misfits", "named_models")

SMOLLM2 = Path("models/smollm2/tokenizer.json")


def add(app: App, shell: Shell) -> None:
    """Adds `serve` and `config`."""

    @app.command
    def serve(
        *models: Path,
        config: Path | None = None,
        mock: bool = False,
        host: str | None = None,
        port: int | None = None,
    ) -> int:
        """Serve models over HTTP.

        Parameters
        ----------
        models
            Folders of models, as Hugging Face has them, or GGUF files: served by the engine `cuda`
            under their names, without a configuration file.
        config
            A YAML or TOML file. Without one, and without models: the model `mock`, and `smollm2`
            where models/smollm2/tokenizer.json is (see `tokenwire fetch smollm2`), on the mock
            engine.
        mock
            Serve every model on the mock engine, with its own tokenizer and template.
        host
            Overrides server.host.
        port
            Overrides server.port.
        """
        from tokenwire.core.server.lifecycle import run

        if models and config is not None:
            raise ConfigError("serve: wanted models or --config, got both")
        chosen = choose(config, shell, mock=mock, host=host, port=port, models=models)
        refuse_public_mock(chosen, _host_file(config if host is None else None, shell))
        return run(chosen)

    config_commands = App(name="config", help="Look at configuration files.")
    app.command(config_commands)

    @config_commands.command(name="check")
    def check_file(file: Path) -> int:
        """Say whether a configuration file can be used. Of other files it reads at most the chat
        templates of models whose dialect is set; it opens no socket.

        Parameters
        ----------
        file
            A YAML or TOML file.
        """
        chosen = choose(file, shell)
        for warning in chosen.warnings:
            shell.warn(warning)
        for warning in misfits(chosen, host_of(chosen, shell, str(file))):
            shell.warn(warning)
        refuse_public_mock(chosen, _host_file(file, shell))
        shell.say(f"{file}: can be used: {_summary(chosen)}")
        return 0


def misfits(config: Config, host: Host) -> list[str]:
    """Warnings of models whose dialect does not fit their chat template, as far as it is there."""
    from tokenwire.core.model_parts import misfit_of

    found: list[str] = []
    for model in config.models:
        # Why not said here: a template that is missing may come before the server starts.
        with suppress(ConfigError, PluginError, OSError, UnicodeDecodeError):
            if warning := misfit_of(model, host, lone_services()):
                found.append(f"model {model.name}: {warning}")
    return found


def choose(
    file: Path | None,
    shell: Shell,
    *,
    mock: bool = False,
    host: str | None = None,
    port: int | None = None,
    models: Sequence[Path] = (),
) -> Config:
    """What to serve: the file (or `models`, or the default), under the environment, under the
    options; over the mock where it or `mock` says so. Raises ConfigError."""
    if file is None:
        chosen = named_models(models, shell.environ) if models else default_config(Path())
        config = overlay(chosen, shell.environ)
    else:
        config = load(file, environ=shell.environ)
    config = _with_options(config, host, port)
    installed = host_of(config, shell, "" if file is None else str(file))
    warnings = check(config, installed, str(file or "the default"))
    if mock or config.enable_mock:
        config = with_mock(config)
    else:
        config = msgspec.structs.replace(config, warnings=(*config.warnings, *warnings))
    return config


def default_config(folder: Path) -> Config:
    """The model `mock`, and `smollm2` where its tokenizer is in `folder`; both on the mock."""
    mock = PluginUse("mock")
    models = [ModelConfig("mock", mock, tokenizer=PluginUse("bytes"), dialect="hermes")]
    path = folder / SMOLLM2
    if path.is_file():
        tokenizer = PluginUse("hf", {"path": str(path)})
        models.append(ModelConfig("smollm2", mock, tokenizer, checkpoint=str(path.parent)))
    return Config(models=tuple(models))


def named_models(paths: Sequence[Path], environ: Mapping[str, str]) -> Config:
    """Each path's model, under the name of its folder or file. Raises ConfigError, also for a GGUF
    file that cannot be served: its small files are written here, before anything is bound."""
    models = []
    for path in paths:
        if not path.exists():
            raise ConfigError(f"serve {path}: wanted a model's folder or a GGUF file, got nothing")
        if path.is_file() and not is_gguf(path):
            raise ConfigError(
                f"serve {path}: wanted a model's folder or a GGUF file: a configuration file goes "
                "after --config"
            )
        if is_gguf(path):
            checkpoint_at(path, environ)
        elif not (path / "config.json").exists() and (beside := _models_in(path)):
            raise ConfigError(
                f"serve {path}: wanted a model's folder or a GGUF file, got a folder without "
                f"config.json: serve one of {', '.join(beside)}"
            )
        name = path.stem if is_gguf(path) else path.resolve().name
        models.append(ModelConfig(name, PluginUse("cuda"), checkpoint=str(path)))
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"serve: two models are called {name!r}: give them names in a file")
    return Config(models=tuple(models))


def _models_in(folder: Path) -> list[str]:
    found = {file.parent for file in folder.glob("*/config.json")} | set(folder.glob("*.gguf"))
    return [str(path) for path in sorted(found)]


def _with_options(config: Config, host: str | None, port: int | None) -> Config:
    if port is not None and not 0 <= port <= 65535:
        raise ConfigError(f"--port {port}: wanted a port, 0 to 65535")
    server = config.server
    if host is not None:
        server = msgspec.structs.replace(server, host=host)
    if port is not None:
        server = msgspec.structs.replace(server, port=port)
    return msgspec.structs.replace(config, server=server)


def host_of(config: Config, shell: Shell, file: str = "") -> Host:
    """The shell's, unless the configuration changes who wins. Raises ConfigError, which names the
    `file`, for a `replaces` that cannot be."""
    if not config.replaces:
        return shell.host()
    try:
        return Host(environ=shell.environ, replaces=config.replaces)
    except ConfigError as error:
        raise Place(file).error(str(error)) from error


def _host_file(file: Path | None, shell: Shell) -> str:
    """The file that says `server.host`, unless the environment does."""
    return "" if file is None or shell.environ.get("TOKENWIRE_SERVER_HOST") else str(file)


def _summary(config: Config) -> str:
    names = ", ".join(model.name or "(named by its engine)" for model in config.models)
    return f"{len(config.models)} model{'s' * (len(config.models) != 1)}: {names}"
