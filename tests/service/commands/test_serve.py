"""``nbext serve`` as a process: the line when ready, the key's file, signals, the log."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from nbext.cli import main
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import KeyRing
from nbext.service.middleware import Log
from nbext.service.server import listen
from tests.service.conftest import HOLDERS
from tests.service.process import Process, serve


@pytest.fixture(autouse=True)
def as_a_process_that_ends() -> Iterator[None]:
    """Take away what a command that ran in this process has left for the rest of its own."""
    hook = threading.excepthook
    yield
    threading.excepthook = hook
    logging.captureWarnings(False)
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not isinstance(each, Log)]


def test_it_says_one_line_when_ready_keeps_its_key_and_ends_in_order(tmp_path):
    with serve(tmp_path) as running:
        path = tmp_path / "service" / "owner.key"
        assert running.source == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert running.session.get(running.url + "/about", timeout=10).status_code == 200
        assert running.end(signal.SIGINT) == 0
    assert running.key not in running.log.read_text()
    assert path.read_text().strip() == running.key
    assert list((tmp_path / "service" / "leases").iterdir()) == []


_NOTED = """import sys, threading

class Noted:
    @staticmethod
    def find_spec(name, *_):
        if name == "pandas":
            with open({!r}, "a") as file:
                print(threading.current_thread().name, file=file)

sys.meta_path.insert(0, Noted)
"""


@pytest.mark.slow
def test_what_the_first_segments_need_is_loaded_before_any_other_thread_asks_for_it(
    tmp_path, monkeypatch
):
    noted = tmp_path / "threads"
    (tmp_path / "sitecustomize.py").write_text(_NOTED.format(str(noted)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with serve(tmp_path / "data") as running:
        assert running.end(signal.SIGTERM) == 0
    assert noted.read_text() == "MainThread\n"


@pytest.mark.slow
def test_the_log_is_json_and_holds_no_key_address_path_or_statement(tmp_path):
    with serve(tmp_path, key="the-secret-key-of-all") as running:
        post = running.session.post
        post(
            running.url + "/v1/signup/newsletter", json={"email": "someone@example.com"}, timeout=10
        )
        post(running.url + "/v1/signup/newsletter", json={"email": "not-an-address"}, timeout=10)
        post(running.url + "/v1/segment/execute", json=HOLDERS, timeout=60)
        post(
            running.url + "/explain",
            data=b"{",
            headers={"Content-Type": "application/json"},
            timeout=60,
        )
        running.session.get(
            running.url + "/someone@example.com?key=the-secret-key-of-all", timeout=10
        )
        assert running.end(signal.SIGTERM) == 0
    assert running.source == "NBEXT_API_KEY"
    assert not (tmp_path / "service" / "owner.key").exists()
    text = running.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["event"] for line in lines if line["level"] == "warning"][:1] == [
        "the synthetic sample is served: --data has no ingested data"
    ]
    asked = [
        (line["method"], line["route"], line["status"])
        for line in lines
        if line["event"] == "request"
    ]
    assert asked == [
        ("POST", "/v1/signup/newsletter", 202),
        ("POST", "/v1/signup/newsletter", 422),
        ("POST", "/v1/segment/execute", 200),
        ("POST", "/explain", 400),
        ("GET", "unknown", 404),
    ]
    assert all(
        re.fullmatch("[0-9a-f]{16}", line["request_id"])
        for line in lines
        if line["event"] == "request"
    )
    for word in (
        "the-secret-key-of-all",
        "someone",
        "not-an-address",
        str(tmp_path),
        "SELECT",
        "Traceback",
    ):
        assert word not in text


def test_a_port_that_is_taken_is_one_clear_line(tmp_path, capsys, service):
    assert main(["serve", "--data", str(tmp_path), "--port", str(service.port)]) == 2
    assert capsys.readouterr().err == (
        f"ConfigError: Cannot listen on 127.0.0.1 port {service.port}: Address already in use. Choose another --port.\n"
    )


def test_processes_share_their_port_with_no_other_service(tmp_path, capsys):
    with listen("127.0.0.1", 0, shared=True) as other:
        port = other.getsockname()[1]
        assert (
            main(["serve", "--data", str(tmp_path), "--port", str(port), "--processes", "2"]) == 2
        )
    assert capsys.readouterr().err == (
        f"ConfigError: Cannot listen on 127.0.0.1 port {port}: Address already in use. Choose another --port.\n"
    )


def test_options_of_spark_are_part_of_the_engines_url(tmp_path, capsys):
    words = ["serve", "--data", str(tmp_path), "--engine", "duckdb://?threads=1", "--spark-conf"]
    assert main([*words, "spark.b=2"]) == 2
    assert capsys.readouterr().err == (
        "ConfigError: engine: duckdb:// has no option 'spark.b'. Allowed: memory, threads.\n"
    )
    with pytest.raises(SystemExit):
        main([*words, "executor.memory=2g"])
    assert capsys.readouterr().err.endswith(
        "argument --spark-conf: executor.memory=2g is not an option of Spark's, such as spark.executor.memory=2g.\n"
    )


def test_a_share_above_the_whole_is_refused(tmp_path, capsys):
    assert main(["serve", "--data", str(tmp_path), "--keep-gib", "20", "--key-gib", "30"]) == 2
    assert capsys.readouterr().err == (
        "ConfigError: --key-gib 30 is more than --keep-gib 20, of which it is a part.\n"
    )


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path, capsys, port):
    assert main(["serve", "--data", str(tmp_path), "--port", port]) == 2
    assert capsys.readouterr().err.startswith(
        f"ConfigError: Cannot listen on 127.0.0.1 port {port}: "
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--workers", "0"),
        ("--workers", "-1"),
        ("--query-seconds", "nan"),
        ("--query-seconds", "-1"),
        ("--keep-days", "0"),
        ("--keep-days", "inf"),
        ("--keep-gib", "0"),
        ("--key-gib", "-1"),
        ("--keep-gib", "x"),
        ("--keep-gib", "1e-10"),
        ("--lists-gib", "1e12"),
        ("--keep-days", "1e300"),
        ("--workers", "1.5"),
    ],
)
def test_a_number_that_would_serve_nobody_is_refused_at_the_start(capsys, option, value):
    with pytest.raises(SystemExit):
        main(["serve", f"{option}={value}"])
    allowed = (
        "a whole number from 1" if option == "--workers" else "a number above 0, from 1e-9 to 1e9"
    )
    assert f"argument {option}: {value} is not {allowed}." in capsys.readouterr().err


@pytest.mark.slow
def test_an_operator_says_how_much_of_the_disk_a_key_may_take(tmp_path):
    # A quarter of this is a thousand bytes, which one segment takes.
    with serve(tmp_path, "--keep-gib", "0.000004") as running:
        database = Database(tmp_path / "service" / "registry.sqlite")
        key = KeyRing(database).add("analyst")[1].reveal()
        database.close()
        statuses = [
            requests.post(
                running.url + "/v1/segment/execute",
                json={**HOLDERS, "limit": limit},
                headers={"x-api-key": key},
                timeout=120,
            ).status_code
            for limit in (5, 6)
        ]
        assert running.end(signal.SIGTERM) == 0
    assert statuses == [200, 507]


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--root-path", "nbext", "a path such as /nbext: begin with / and end without one."),
        ("--root-path", "/nbext/", "a path such as /nbext: begin with / and end without one."),
        ("--proxy-headers", "*", "an IP address or network, such as 10.0.0.7 or 10.0.0.0/8."),
    ],
)
def test_what_is_said_of_a_proxy_is_checked_at_the_start(capsys, option, value, allowed):
    with pytest.raises(SystemExit):
        main(["serve", f"{option}={value}"])
    assert f"argument {option}: {value} is not {allowed}\n" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--host", "--allow-host"])
def test_a_host_that_is_a_variable_without_a_value_does_not_open_the_service_to_all(capsys, option):
    with pytest.raises(SystemExit):
        main(["serve", option, ""])
    assert (
        f"argument {option}: It is empty. Name a host or an address.\n" in capsys.readouterr().err
    )


def test_an_owners_key_that_can_be_guessed_is_refused_at_the_start(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NBEXT_API_KEY", "short")
    assert main(["serve", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "ConfigError: NBEXT_API_KEY has 5 characters. Use at least 16 that nobody can guess, for example from `openssl"
        " rand -hex 24`.\n"
    )


def children_of(running: Process) -> list[int]:
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    if not children.exists():
        pytest.skip("this platform does not list a process's children")
    # Beside the services there is multiprocessing's own tracker of resources.
    found = [
        (int(pid), Path(f"/proc/{pid}/cmdline").read_bytes())
        for pid in children.read_text().split()
    ]
    return [pid for pid, words in found if b"spawn_main" in words]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(pids: list[int]) -> None:
    until = time.monotonic() + 30
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.02)


def asked(running: Process) -> list[int]:
    """Ask over twenty connections, and return the statuses."""
    # A process that starts anew takes seconds, on a busy machine many.
    return [
        requests.get(
            running.url + "/about", headers={"x-api-key": running.key}, timeout=120
        ).status_code
        for _ in range(20)
    ]


def processes_of_metrics(running: Process) -> set[str]:
    """Ask for the metrics over twenty connections, and return whose they are."""
    texts = [
        requests.get(running.url + "/metrics", headers={"x-api-key": running.key}, timeout=120).text
        for _ in range(20)
    ]
    return {
        name
        for text in texts
        for name in re.findall(r'^nbext_segments_running\{process="(\w+)"\} ', text, re.M)
    }


@pytest.mark.load
def test_processes_share_the_port_and_one_that_is_killed_is_started_anew(tmp_path):
    with serve(tmp_path, "--processes", "2") as running:
        first = children_of(running)
        assert (len(first), asked(running)) == (2, [200] * 20)
        done = running.session.post(
            running.url + "/v1/segment/execute", json=HOLDERS, timeout=60
        ).json()
        os.kill(first[0], signal.SIGKILL)
        # Until then it may still accept a connection, and takes it down with itself.
        ended([first[0]])
        assert asked(running) == [200] * 20, "connections wait for the process that comes"
        assert processes_of_metrics(running) == {"0", "1"}, (
            "one that comes goes on with the former's series"
        )
        again = children_of(running)
        assert (len(again), first[0] in again, first[1] in again) == (2, False, True)
        read = requests.get(
            running.url + done["links"]["self"], headers={"x-api-key": running.key}, timeout=20
        )
        assert read.json()["status"] == "completed"
        assert running.end(signal.SIGTERM) == 0
        ended(again)
    # At most that of the process that was killed, which the next one to look around removes.
    assert (
        len({path.name.partition(".")[0] for path in (tmp_path / "service" / "leases").iterdir()})
        <= 1
    )


@pytest.mark.load
def test_processes_end_with_the_one_that_started_them(tmp_path):
    with serve(tmp_path, "--processes", "2") as running:
        children = children_of(running)
        running.end(signal.SIGKILL)
        ended(children)


@pytest.mark.slow
def test_processes_that_cannot_start_are_one_clear_error(tmp_path, capfd):
    assert (
        main(["serve", "--data", str(tmp_path), "--processes", "2", "--engine", "duckbd://"]) == 2
    )
    assert "ConfigError: " in capfd.readouterr().err


def test_a_registry_of_a_server_without_its_driver_says_what_to_install(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    url = "postgresql://nobody:secret@127.0.0.1:1/none"
    assert main(["serve", "--data", str(tmp_path), "--registry", url]) == 2
    assert capsys.readouterr().err == (
        'ConfigError: A PostgreSQL registry needs psycopg. Install it: pip install "nbext[postgres]"\n'
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///x", "A registry's URL is postgresql://user@host/database."),
        ("postgresql://nobody:secret@127.0.0.1:1/none", "cannot be used as the service's registry"),
        # A password that is not percent-encoded is taken for a host and a database.
        ("postgresql://nobody:pa@secret/secret@127.0.0.1:1/none", "cannot be used as the"),
        ("postgresql://nobody:secret@127.0.0.1:port/none", "The registry's URL cannot be read."),
    ],
)
def test_a_registry_that_is_none_is_said_without_its_password(tmp_path, capsys, url, message):
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    assert main(["serve", "--data", str(tmp_path), "--registry", url]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "secret" not in said
    assert "nobody" not in said
