"""The service inside this process: started once, survives an interrupt, ends and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import requests

from nbext import embedded
from nbext.errors import ConfigError, NoService
from nbext.settings import service_folder


def about(running: embedded.Embedded) -> requests.Response:
    return requests.get(
        running.base_url + "/about", headers={"x-api-key": running.api_key.reveal()}, timeout=10
    )


@pytest.fixture
def running(tmp_path):
    started = embedded.start_service(tmp_path)
    yield started
    started.stop()


def test_it_answers_on_loopback_with_a_key_of_its_own(running):
    assert running.base_url.startswith("http://127.0.0.1:")
    assert about(running).json()["data"]["synthetic"] is True
    assert requests.get(running.base_url + "/about", timeout=10).status_code == 401
    assert running.api_key.reveal() not in repr(running)
    assert len(running.api_key.reveal()) >= 32


def test_one_process_has_one_service_for_a_folder(running, tmp_path):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(embedded.start_service(tmp_path)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [running] * 4


def test_an_interrupt_of_the_cell_does_not_reach_it(running):
    def cell() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(5)

    with pytest.raises(KeyboardInterrupt):
        cell()
    assert about(running).status_code == 200


def test_a_service_that_is_about_to_end_is_not_asked_any_more(running):
    running._server.should_exit = True
    assert not running.is_alive
    assert running.refresh() is None
    running._thread.join(20)


def test_a_restart_keeps_the_port_and_the_key(running):
    again = running.restart()
    assert (again.base_url, again.api_key) == (running.base_url, running.api_key)
    assert not running.is_alive
    assert about(again).status_code == 200
    again.stop()
    assert not again.is_alive
    with pytest.raises(requests.ConnectionError):
        about(again)


def test_a_service_that_ended_is_started_anew_when_it_is_asked_for(running, tmp_path):
    running.stop()
    again = embedded.start_service(tmp_path)
    assert again is not running
    assert about(again).status_code == 200
    again.stop()


def test_an_engine_that_is_none_is_said_before_anything_starts(tmp_path):
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match="is not the URL of an engine"):
        embedded.start_service(tmp_path, engine="duckbd://")
    assert {
        thread.name
        for thread in set(threading.enumerate()) - before
        if thread.name == "nbext-service"
    } == set()


def test_without_the_local_extra_it_says_what_the_two_choices_are(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "_NEEDED", ("fastapi", "no_such_module_of_nbext"))
    with pytest.raises(NoService, match=r"nbext\[local\]"):
        embedded.start_service(tmp_path)


FORK = """
import os, sys, threading, time, requests
from pathlib import Path
from nbext import embedded
folder = Path(sys.argv[1])

def answers(running):
    key = {"x-api-key": running.api_key.reveal()}
    return requests.get(running.base_url + "/about", headers=key, timeout=10).status_code == 200

mine = embedded.start_service(folder)
"""


def forked(code: str, folder: Path) -> tuple[str, int]:
    ended = subprocess.run(
        [sys.executable, "-c", FORK + textwrap.dedent(code), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout, ended.returncode


@pytest.mark.slow
def test_a_forked_child_asks_the_service_of_its_parent_whatever_locks_were_held_at_the_fork(
    tmp_path,
):
    code = """
        with embedded._starting:
            child = os.fork()
            if child == 0:
                asked = embedded.start_service(folder)
                asked.stop()
                os._exit(0 if asked is mine and asked.is_alive and answers(asked) else 1)
        assert os.waitpid(child, 0)[1] == 0
        print(answers(mine))
    """
    assert forked(code, tmp_path) == ("True\n", 0)
    assert list((service_folder(tmp_path, notebook=True) / "leases").iterdir()) == []


@pytest.mark.slow
def test_a_forked_child_sees_that_the_service_of_its_parent_has_ended(tmp_path):
    code = """
        asked, ask = os.pipe()
        ended, end = os.pipe()
        child = os.fork()
        if child == 0:
            before = mine.is_alive
            os.write(ask, b"!")
            os.read(ended, 1)
            os._exit(0 if before and not mine.is_alive else 1)
        os.read(asked, 1)
        mine.stop()
        os.write(end, b"!")
        print(os.waitpid(child, 0)[1])
    """
    assert forked(code, tmp_path) == ("0\n", 0)
