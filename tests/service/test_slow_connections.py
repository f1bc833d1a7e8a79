"""Connections that send half a request: closed in time, and nobody else waits for them."""

from __future__ import annotations

import socket
import time

import pytest

from nbext.service.limits import Limits
from tests.service.conftest import KEY, Running

HALF = b"GET /about HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def quick(data_dir, tmp_path):
    running = Running(data_dir, tmp_path, Limits(arrive_seconds=1.0))
    yield running
    running.stop()


def closed_after(connection: socket.socket, began: float) -> float:
    connection.settimeout(20)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"G", HALF])
def test_half_a_head_is_closed_in_time(quick, sent):
    began = time.monotonic()
    with socket.create_connection((quick.host, quick.port), timeout=10) as connection:
        connection.sendall(sent)
        assert 0.5 < closed_after(connection, began) < 9


@pytest.mark.slow
def test_a_head_that_trickles_is_closed_in_time(quick):
    began = time.monotonic()

    def trickle(connection: socket.socket) -> None:
        for byte in HALF * 3:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with (
        socket.create_connection((quick.host, quick.port), timeout=10) as connection,
        pytest.raises((ConnectionResetError, BrokenPipeError)),
    ):
        trickle(connection)
    assert time.monotonic() - began < 9


@pytest.mark.slow
def test_a_second_request_on_a_kept_connection_has_to_arrive_in_time_too(quick):
    with socket.create_connection((quick.host, quick.port), timeout=10) as connection:
        connection.sendall(HALF + f"x-api-key: {KEY}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        connection.sendall(HALF)
        assert closed_after(connection, began) < 9


@pytest.mark.slow
def test_a_pause_between_requests_is_no_half_request(quick):
    first = quick.get("/about")
    time.sleep(1.5)
    assert quick.get("/about").json() == first.json()


@pytest.mark.load
def test_400_half_open_connections_do_not_keep_others_from_being_served(data_dir, tmp_path):
    running = Running(data_dir, tmp_path)
    held = []
    try:
        for _ in range(400):
            held.append(socket.create_connection((running.host, running.port), timeout=10))
            held[-1].sendall(HALF)
        began, took = time.monotonic(), []
        for path in ("/about", "/v1/tokens/ethereum/USDC", "/healthz"):
            asked = time.monotonic()
            assert running.get(path).status_code == 200
            took.append(time.monotonic() - asked)
        # Where one stays open, reading from it times out.
        closed = [closed_after(connection, began) for connection in held]
        print(
            f"400 half-open connections: others served in at most {max(took):.2f} s, closed in {max(closed):.1f} s"
        )
    finally:
        for connection in held:
            connection.close()
        running.stop()
