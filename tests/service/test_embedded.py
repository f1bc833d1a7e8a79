"""The service inside this process: started once, survives an interrupt, ends and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import requests

from nbext import embedded
from nbext.errors import ConfigError, NoService


def about(running: embedded.Embedded) -> requests.Response:
    return requests.get(
        running.base_url + "/about", headers={"x-api-key": running.api_key.reveal()}, timeout=10
    )


@pytest.fixture
def running(tmp_path):
    started = embedded.start(tmp_path)
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
    threads = [threading.Thread(target=lambda: found.append(embedded.start(tmp_path))) for _ in range(4)]
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
    again = embedded.start(tmp_path)
    assert again is not running
    assert about(again).status_code == 200
    again.stop()


def test_an_engine_that_is_none_is_said_before_anything_starts(tmp_path):
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match="is not the URL of an engine"):
        embedded.start(tmp_path, engine="duckbd://")
    assert {thread.name for thread in set(threading.enumerate()) - before if thread.name == "nbext-service"} == set()


def test_without_the_local_extra_it_says_what_the_two_choices_are(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "_NEEDED", ("fastapi", "no_such_module_of_nbext"))
    with pytest.raises(NoService, match=r"nbext\[local\]"):
        embedded.start(tmp_path)


def test_a_forked_child_starts_its_own_and_the_process_ends_in_order(tmp_path):
    code = """
        import os, sys, requests
        from pathlib import Path
        from nbext import embedded
        folder = Path(sys.argv[1])
        mine = embedded.start(folder)
        child = os.fork()
        if child == 0:
            own = embedded.start(folder)
            answer = requests.get(own.base_url + "/about", headers={"x-api-key": own.api_key.reveal()}, timeout=10)
            own.stop()
            os._exit(0 if own.base_url != mine.base_url and answer.status_code == 200 else 1)
        assert os.waitpid(child, 0)[1] == 0
        answer = requests.get(mine.base_url + "/about", headers={"x-api-key": mine.api_key.reveal()}, timeout=10)
        print(answer.status_code)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert (ended.stdout, ended.returncode) == ("200\n", 0), ended.stderr
    assert list((tmp_path / "service" / "leases").iterdir()) == []
