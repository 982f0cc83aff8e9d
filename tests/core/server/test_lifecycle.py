"""From bind to exit status, in real processes."""

from __future__ import annotations

import signal
import socket
import threading

import pytest

SERVERS = pytest.mark.parametrize("http", ["granian", "uvicorn"])


def stream(server, events: int, pause: float) -> tuple[threading.Thread, list[bytes]]:
    """Reads a whole stream in a thread; returns once its first piece is there."""
    raw = server.socket()
    body = b'{"events": %d, "pause": %f}' % (events, pause)
    head = b"POST /stream HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % len(body)
    raw.sendall(head + body)
    got = [raw.recv(65536)]

    def read() -> None:
        with raw:
            try:
                while part := raw.recv(65536):
                    got.append(part)
            except OSError:
                pass

    thread = threading.Thread(target=read)
    thread.start()
    return thread, got


@SERVERS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once_with_0(launch, http, number):
    server = launch(http=http).wait_started()
    with server.client() as client:  # an idle connection, kept alive
        client.get("/health")
        assert server.stop(number) == 0
    assert "Traceback" not in server.log


def is_refused(server) -> bool:
    try:
        server.socket().close()
    except ConnectionRefusedError:
        return True
    return False


@SERVERS
def test_nothing_new_is_taken_while_draining(launch, http):
    server = launch(http=http, drain_timeout=30).wait_started()
    thread, _ = stream(server, 15, 0.1)
    server.process.send_signal(signal.SIGTERM)
    server.wait(lambda: "requests are running" in server.log)
    server.wait(lambda: is_refused(server))
    assert server.process.wait(60) == 0
    thread.join()


@SERVERS
def test_drain_lets_streams_end_and_exits_0(launch, http):
    server = launch(http=http, drain_timeout=30).wait_started()
    thread, got = stream(server, 12, 0.1)
    assert server.stop() == 0, server.log
    thread.join()
    assert b"".join(got).count(b"data: ") == 12
    assert b"".join(got).endswith(b"0\r\n\r\n")


@SERVERS
def test_a_stream_that_outlives_the_drain_is_cut_off(launch, http):
    server = launch(http=http, drain_timeout=0.2).wait_started()
    thread, got = stream(server, 10_000, 0.1)
    assert server.stop() == 0, server.log
    thread.join()
    assert b"".join(got).count(b"data: ") < 1000
    assert "cut off" in server.log


@SERVERS
def test_a_second_signal_ends_the_wait(launch, http):
    server = launch(http=http, drain_timeout=600).wait_started()
    thread, _ = stream(server, 100_000, 0.1)
    server.process.send_signal(signal.SIGTERM)
    server.wait(lambda: "requests are running" in server.log)
    assert server.stop() == 1
    thread.join()


@SERVERS
def test_a_client_that_never_reads_does_not_hold_the_exit(launch, http):
    server = launch(http=http, drain_timeout=0.2).wait_started()
    with server.socket(receive_buffer=8192) as raw:
        raw.sendall(b"POST /flood HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n")
        server.wait(lambda: server.seen()["flooded"] > 0)
        assert server.stop() == 0, server.log


def test_a_taken_port_is_said_in_words(launch):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        server = launch(port=port)
        assert server.process.wait(60) == 1
    assert f"server.port = {port}: another process listens on 127.0.0.1:{port}" in server.log
    assert "Traceback" not in server.log


def test_two_servers_never_share_a_port(launch):
    first = launch().wait_started()
    second = launch(port=first.port)
    assert second.process.wait(60) == 1
    assert "another process listens" in second.log


def test_a_host_that_is_not_ours_is_said_in_words(launch):
    server = launch(host="203.0.113.9")
    assert server.process.wait(60) == 1
    assert "server.host = '203.0.113.9' is not an address of this machine" in server.log


def test_debug_on_a_public_host_is_refused(launch):
    server = launch(host="0.0.0.0", debug=True)
    assert server.process.wait(60) == 1
    assert "server.allow_mock_public" in server.log


@pytest.mark.parametrize("workers", [1, 2])
def test_a_backend_that_cannot_start_is_said_in_words(launch, workers):
    server = launch("open_broken", workers=workers)
    assert server.process.wait(60) == 1
    assert "models.m.tokenizer: no such file" in server.log
    assert "Traceback" not in server.log


@pytest.mark.parametrize("path", ["/metrics", "/echo"])
def test_a_health_path_with_another_use_is_said_in_words(launch, path):
    server = launch(health_check=path)
    assert server.process.wait(60) == 1
    assert f"server.health_check = {path!r}: that path has another use" in server.log
    assert "Traceback" not in server.log


def test_ipv6(launch):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    server = launch(host="::1").wait_started()
    with server.client() as client:
        assert client.get("/health").status_code == 200
    assert server.stop() == 0
