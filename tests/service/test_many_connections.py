"""More connections than a service has descriptors for: files are still opened, and the log stays short and is JSON."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from nbext.service.server import most_connections
from tests.service.process import serve
from tests.service.segments.test_segments import body


@pytest.mark.slow
def test_idle_connections_past_the_descriptors_cost_no_result_and_no_log(tmp_path: Path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        assert most_connections() == 96
        started = serve(tmp_path, key="a-key-of-the-tests")
        process = started.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    host, _, port = process.url.removeprefix("http://").partition(":")
    execute, held = f"{process.url}/v1/segment/execute", []
    try:
        asked = [process.session.post(execute, json=body(n), timeout=60).json() for n in (1, 2)]
        rows = [process.session.get(process.url + each["links"]["csv"]).content for each in asked]
        refused = 0
        for _ in range(300):
            connection = socket.create_connection((host, int(port)), timeout=10)
            held.append(connection)
        for connection in held[100:]:
            connection.settimeout(10)
            refused += connection.recv(4096).startswith(b"HTTP/1.1 503 ")
        assert refused == 200
        # The session's own connection is one that entered.
        again = [process.session.get(process.url + each["links"]["csv"]).content for each in asked]
        assert again == rows
        for connection in held:
            connection.close()
        until = time.monotonic() + 30
        while process.session.get(f"{process.url}/readyz", timeout=60).status_code != 200:
            assert time.monotonic() < until
        lines = [json.loads(line) for line in process.log.read_text().splitlines()]
        told = [line["more"] for line in lines if line["event"] == "connection refused"]
        assert told
        assert len(told) < 30
        metrics = process.session.get(f"{process.url}/metrics", timeout=60).text
        (count,) = (
            float(line.split()[1])
            for line in metrics.splitlines()
            if line.startswith("nbext_connections_refused_total ")
        )
        assert count >= 200
    finally:
        for connection in held:
            connection.close()
        started.__exit__(None, None, None)
