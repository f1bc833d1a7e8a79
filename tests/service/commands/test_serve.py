"""``nbext serve`` as a process: the line when ready, the key's file, signals, the log."""

from __future__ import annotations

import json
import re
import signal
import stat

import pytest

from nbext.cli import main
from tests.service.conftest import HOLDERS
from tests.service.process import serve


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


def test_the_log_is_json_and_holds_no_key_address_path_or_statement(tmp_path):
    with serve(tmp_path, key="the-secret-key") as running:
        post = running.session.post
        post(running.url + "/v1/signup/newsletter", json={"email": "someone@example.com"}, timeout=10)
        post(running.url + "/v1/signup/newsletter", json={"email": "not-an-address"}, timeout=10)
        post(running.url + "/v1/segment/execute", json=HOLDERS, timeout=60)
        post(running.url + "/explain", data=b"{", headers={"Content-Type": "application/json"}, timeout=60)
        running.session.get(running.url + "/someone@example.com?key=the-secret-key", timeout=10)
        assert running.end(signal.SIGTERM) == 0
    assert running.source == "NBEXT_API_KEY"
    assert not (tmp_path / "service" / "owner.key").exists()
    text = running.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    asked = [(line["method"], line["route"], line["status"]) for line in lines if line["event"] == "request"]
    assert asked == [
        ("POST", "/v1/signup/newsletter", 202), ("POST", "/v1/signup/newsletter", 422),
        ("POST", "/v1/segment/execute", 200), ("POST", "/explain", 400), ("GET", "unknown", 404),
    ]
    assert all(re.fullmatch("[0-9a-f]{16}", line["request_id"]) for line in lines if line["event"] == "request")
    for word in ("the-secret-key", "someone", "not-an-address", str(tmp_path), "SELECT", "Traceback"):
        assert word not in text


def test_a_port_that_is_taken_is_one_clear_line(tmp_path, capsys, service):
    assert main(["serve", "--data", str(tmp_path), "--port", str(service.port)]) == 2
    assert capsys.readouterr().err == (
        f"ConfigError: Cannot listen on 127.0.0.1 port {service.port}: Address already in use. Choose another --port.\n"
    )


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path, capsys, port):
    assert main(["serve", "--data", str(tmp_path), "--port", port]) == 2
    assert capsys.readouterr().err.startswith(f"ConfigError: Cannot listen on 127.0.0.1 port {port}: ")


@pytest.mark.parametrize(("option", "value"), [
    ("--workers", "0"), ("--workers", "-1"), ("--query-seconds", "nan"), ("--query-seconds", "-1"),
    ("--keep-days", "0"), ("--keep-days", "inf"),
])
def test_a_number_that_would_serve_nobody_is_refused_at_the_start(capsys, option, value):
    with pytest.raises(SystemExit):
        main(["serve", f"{option}={value}"])
    allowed = "a whole number from 1" if option == "--workers" else "a number above 0"
    assert f"argument {option}: {value} is not {allowed}." in capsys.readouterr().err
