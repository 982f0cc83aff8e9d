"""The operators' routes, in Litestar: health, readiness, metrics, plugins, scripts. No protocol."""

from __future__ import annotations

import logging

import msgspec
from litestar import Litestar, Request, Response, delete, get, put, route
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler

from tokenwire.core import __version__
from tokenwire.core.config import ServerConfig
from tokenwire.core.errors import (
    CallError,
    ConfigError,
    ErrorKind,
    RequestError,
    ServiceError,
    StoreError,
)
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.server.backend import Backend, Opened
from tokenwire.core.server.edge import error_reply
from tokenwire.core.server.metrics import Metrics
from tokenwire.core.server.openapi import describe
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.wire import Route

__all__ = ("admin_app",)

log = logging.getLogger(__name__)
JSON = "application/json"
TAKEN = ("/engines", "/metrics", "/openapi.json", "/plugins", "/ready")

Asked = Request[object, object, State]
Handlers = list[HTTPRouteHandler]


def admin_app(opened: Opened, metrics: Metrics, config: ServerConfig) -> Litestar:
    backend = opened.backend
    routes: list[Route] = []
    handlers = [
        *_probes(backend, config, routes),
        *_figures(opened, metrics, routes),
        *_scripts(backend.scripts, routes),
        *_prompts(backend, config, routes),
    ]
    routes.append(Route("GET", "/openapi.json", "This description"))
    described = _json(describe(backend.flow.routes, routes))

    @get("/openapi.json", sync_to_thread=False)
    def openapi() -> Response[bytes]:
        return _reply(described)

    return Litestar(
        [*handlers, openapi],
        openapi_config=None,
        logging_config=None,
        exception_handlers={
            CallError: _call_error,
            StoreError: _store_error,
            HTTPException: _http_error,
            Exception: _bug,
        },
    )


def _probes(backend: Backend, config: ServerConfig, routes: list[Route]) -> Handlers:
    paths = ["/health"]
    alias = config.health_check
    if alias is not None and alias not in paths:
        if alias in TAKEN or backend.flow.routes.match("GET", alias).codec is not None:
            raise ConfigError(f"server.health_check = {alias!r}: that path has another use")
        paths.append(alias)
    routes += [Route("GET", path, "Whether the process lives") for path in paths]
    routes.append(Route("GET", "/ready", "Whether calls can be answered"))
    alive = _json({"status": "ok", "version": __version__})

    @get(paths, sync_to_thread=False)
    def health() -> Response[bytes]:
        return _reply(alive)

    @get("/ready", sync_to_thread=False)
    def ready() -> Response[bytes]:
        is_ready, reason = backend.ready()
        body: dict[str, object] = {
            "ready": is_ready,
            "models": list(backend.models()),
        }
        if not is_ready:
            body["reason"] = reason
        return _reply(_json(body), 200 if is_ready else 503)

    return [health, ready]


def _figures(opened: Opened, metrics: Metrics, routes: list[Route]) -> Handlers:
    media = ("text/plain", "application/openmetrics-text")
    routes.append(Route("GET", "/metrics", "Figures for Prometheus", media=media))
    routes.append(Route("GET", "/engines", "What each model's engine is, and is doing"))
    routes.append(Route("GET", "/plugins", "What is installed"))
    listed = _json({"plugins": opened.plugins})

    @get("/metrics", sync_to_thread=False)
    def figures(request: Asked) -> Response[bytes]:
        body, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    @get("/engines", sync_to_thread=False)
    def engines() -> Response[bytes]:
        return _reply(_json({"engines": opened.backend.engine_statuses()}))

    @get("/plugins", sync_to_thread=False)
    def plugins() -> Response[bytes]:
        return _reply(listed)

    return [figures, engines, plugins]


def _scripts(scripts: ScriptBook | None, routes: list[Route]) -> Handlers:
    """Only a mock model plays scripts; without one the routes are not there."""
    if scripts is None:
        return []
    path = "/mock/scripts/{name}"
    routes.append(Route("GET", "/mock/scripts", "The names of all scripts"))
    routes.append(Route("PUT", path, "Tell the mock what to produce"))
    routes.append(Route("GET", path, "What a script became"))
    routes.append(Route("DELETE", path, "Forget a script"))

    # Why first: Litestar's own answer names the methods of the first handler of a path alone.
    @route("/mock/scripts/{name:str}", http_method="OPTIONS", status_code=204, sync_to_thread=False)
    def options() -> Response[None]:
        return Response(None, headers={"allow": "DELETE, GET, OPTIONS, PUT"})

    @get("/mock/scripts")
    async def list_scripts() -> Response[bytes]:
        return _reply(_json({"scripts": await scripts.names()}))

    @put("/mock/scripts/{name:str}")
    async def put_script(request: Asked) -> Response[bytes]:
        name = request.path_params["name"]
        script = await scripts.put(name, await request.body())
        return _reply(_json({"name": name, "tokens": len(script.tokens)}))

    @get("/mock/scripts/{name:str}")
    async def get_script(request: Asked) -> Response[bytes]:
        name = request.path_params["name"]
        script = await scripts.load(name)
        if script is None:
            raise _no_script(name)
        return _reply(_json(script))

    @delete("/mock/scripts/{name:str}", status_code=200)
    async def delete_script(request: Asked) -> Response[bytes]:
        name = request.path_params["name"]
        if not await scripts.delete(name):
            raise _no_script(name)
        return _reply(_json({"name": name}))

    return [options, list_scripts, put_script, get_script, delete_script]


def _no_script(name: str) -> RequestError:
    return RequestError(f"there is no mock script {name!r}", kind=ErrorKind.NOT_FOUND)


def _prompts(backend: Backend, config: ServerConfig, routes: list[Route]) -> Handlers:
    if not config.debug:
        return []
    routes.append(Route("GET", "/debug/prompts/{request_id}", "What a recent request rendered to"))

    @get("/debug/prompts/{request_id:str}", sync_to_thread=False)
    def prompt(request: Asked) -> Response[bytes]:
        request_id = request.path_params["request_id"]
        found = backend.recent_prompt(request_id)
        if found is None:
            raise RequestError(
                f"no recent request has the id {request_id!r} (the reply's x-request-id)",
                kind=ErrorKind.NOT_FOUND,
            )
        return _reply(_json(found.prompt))

    return [prompt]


def _plain(value: object) -> object:
    if isinstance(value, TokenIds):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not shown")


def _json(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain)


def _reply(body: bytes, status: int = 200) -> Response[bytes]:
    return Response(body, status_code=status, media_type=JSON)


def _failed(error: CallError, headers: dict[str, str] | None = None) -> Response[bytes]:
    reply = error_reply(error)
    head = {**reply.headers, **(headers or {})}
    return Response(reply.body, status_code=reply.status, media_type=JSON, headers=head)


def _call_error(_: Asked, error: CallError) -> Response[bytes]:
    return _failed(error)


def _store_error(request: Asked, error: StoreError) -> Response[bytes]:
    """Its message may name machines of ours, so the client is not told it."""
    log.warning("%s: %s", request.scope["path"], error)
    message = "the store that keeps this cannot be reached now; the server's log says why"
    return _failed(ServiceError(ErrorKind.UNAVAILABLE, message, retry_after=1.0))


KINDS = {404: ErrorKind.NOT_FOUND, 405: ErrorKind.METHOD_NOT_ALLOWED}


def _http_error(request: Asked, error: HTTPException) -> Response[bytes]:
    """What Litestar itself refuses. Anything but 404 and 405 is a plain 400 or 500."""
    kind = KINDS.get(error.status_code)
    if kind is None:
        return _failed(ServiceError() if error.status_code >= 500 else RequestError(error.detail))
    path = request.scope["path"]
    words = {
        ErrorKind.NOT_FOUND: f"there is nothing at {path}; GET /openapi.json lists what there is",
        ErrorKind.METHOD_NOT_ALLOWED: f"{path} does not take {request.scope['method']}",
    }
    return _failed(RequestError(words[kind], kind=kind), dict(error.headers or {}))


def _bug(request: Asked, error: Exception) -> Response[bytes]:
    log.error("%s failed", request.scope["path"], exc_info=error)
    return _failed(ServiceError())
