"""The listening socket: bound before anything is loaded, so that a taken port is known at once."""

from __future__ import annotations

import errno
import socket

from tokenwire.core.config import ServerConfig
from tokenwire.core.errors import ConfigError

__all__ = ("BACKLOG", "bind", "url")

BACKLOG = 2048


def bind(config: ServerConfig) -> socket.socket:
    """Bound, not yet listening: clients are refused until the models are loaded.

    Raises ConfigError in words. Port 0 takes a free one.
    """
    host, port = config.host, config.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError, OverflowError) as error:
        raise ConfigError(f"server.host = {host!r}, server.port = {port}: {error}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Why: accepted sockets inherit it; without it small events wait for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigError(_why(error, host, port)) from error
    return listener


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"server.port = {port}: another process listens on {host}:{port};"
            " stop it, or choose another port with --port"
        )
    if error.errno == errno.EACCES:
        return f"server.port = {port}: low ports need a privilege; choose another with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"server.host = {host!r} is not an address of this machine"
    return f"server.host = {host!r}, server.port = {port}: {error.strerror}"


def url(listener: socket.socket) -> str:
    """Where clients reach it."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
