"""`explain REQUEST.json`: what a request becomes for a model. Serves nothing, runs no engine."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from cyclopts import App
from msgspec import Struct
from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.cli.painting import legend, paint, span_table
from tokenwire.core.cli.serving import choose, host_of, misfits
from tokenwire.core.cli.shell import Shell
from tokenwire.core.config import Config, ModelConfig
from tokenwire.core.detokenizer import PieceTable
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.factory import Services
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.codec import Codec
from tokenwire.core.prompt import Piece, Prompt
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.settings import nearest
from tokenwire.core.wire import HttpRequest

__all__ = ("Explained", "add", "decode", "explained")


class Explained(Struct, frozen=True):
    """A prompt and its pieces, one an id."""

    prompt: Prompt
    pieces: tuple[Piece, ...]


def add(app: App, shell: Shell) -> None:
    """Adds `explain`."""

    @app.command
    def explain(
        request: Path,
        *,
        config: Path | None = None,
        protocol: str = "chat_completions",
    ) -> int:
        """Show the prompt that a request becomes: by turn, client text and special token, with ids.

        Parameters
        ----------
        request
            The body of a request, as JSON.
        config
            The configuration whose model it names. Default: what `serve` serves.
        protocol
            The protocol that the request is in.
        """
        try:
            body = request.read_bytes()
        except OSError as error:
            raise ConfigError(f"{request}: cannot be read: {error.strerror}") from error
        chosen = choose(config, shell)
        host = host_of(chosen, shell, "" if config is None else str(config))
        call = decode(chosen, host, protocol, body)
        for warning in misfits(chosen, host):
            shell.warn(warning)
        _show(explained(chosen, host, call, time.time()), shell)
        return 0


def decode(config: Config, host: Host, protocol: str, body: bytes) -> Call:
    """The call that a body is in a protocol. Raises RequestError, or ConfigError for a protocol
    that asks nothing."""
    host.codecs.find(protocol, "--protocol")
    settings = config.plugins.get(protocol, {})
    codec = host.codecs.build(protocol, settings, lone_services(), f"plugins.{protocol}")
    try:
        call = _call(codec, body)
    except RequestError as error:
        # Why only then: what has the protocol's fields, and a fault in one, is of that protocol.
        if error.code != "missing_field":
            raise
        if not (others := _readers(config, host, protocol, body)):
            raise
        hint = f"; it is a request of {' and of '.join(others)}: say --protocol {others[0]}"
        raise RequestError(error.message + hint, param=error.param, code=error.code) from error
    if call is None:
        raise ConfigError(f"--protocol {protocol}: it has no request that is answered by a model")
    return call


def _call(codec: Codec, body: bytes) -> Call | None:
    """By the first route that gives one."""
    for route in codec.routes:
        if route.method != "POST":
            continue
        request = HttpRequest("POST", route.path, {"content-type": "application/json"}, body=body)
        call = codec.decode(request)
        if isinstance(call, Call):
            return call
    return None


def _readers(config: Config, host: Host, but: str, body: bytes) -> list[str]:
    """Protocols in which the body is a request to a model."""
    found: list[str] = []
    for name in host.codecs:
        if name == but:
            continue
        settings = config.plugins.get(name, {})
        with suppress(RequestError):
            codec = host.codecs.build(name, settings, lone_services(), f"plugins.{name}")
            if _call(codec, body) is not None:
                found.append(name)
    return found


def explained(config: Config, host: Host, call: Call, now: float) -> Explained:
    """What `call` becomes for its model. Raises ConfigError for a model that is not configured."""
    from tokenwire.core.model_parts import assemble

    model = assemble(_model(config, call.model), host, _services(host)).model
    tokenizer = model.renderer.tokenizer
    prompt = model.renderer.prompt(call.dialogue, now, spans=True)
    machine = PieceTable(tokenizer).detokenizer()
    return Explained(prompt, tuple(machine.push(id) for id in prompt.ids))


def _services(host: Host) -> Services:
    """Scripts too, of which there are none here: a tokenizer of theirs then knows bytes alone."""
    services = lone_services()
    if "memory" not in host.stores:
        return services
    return replace(services, scripts=ScriptBook(host.build("store", "memory")))


def _model(config: Config, name: str) -> ModelConfig:
    for model in config.models:
        # Why "": a short-form model has the name that its engine says, so it may be any.
        if name in (model.name, *model.aliases) or model.name == "":
            return model
    names = [known for model in config.models for known in (model.name, *model.aliases)]
    raise ConfigError(f"the request's model '{name}' is not configured{nearest(name, names)}")


def _show(found: Explained, shell: Shell) -> None:
    prompt, pieces = found.prompt, found.pieces
    shell.out.print(paint(prompt, pieces), soft_wrap=True)
    shell.out.print()
    shell.out.print(legend(prompt))
    shell.out.print(span_table(prompt, pieces))
    shell.say(
        f"{len(prompt.ids)} ids; the answer starts in {prompt.phase}; "
        f"fingerprint {prompt.fingerprint[:16]}"
    )
