"""A registry that fails for a while: nothing is lost, no thread ends, and each answer comes in time."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from nbext.core.locks import ProcessLock
from nbext.engine.open import open_dataset
from nbext.errors import StorageError
from nbext.service.accounts.database import Database
from nbext.settings import Secret
from tests.service import postgres
from tests.service.conftest import Running
from tests.service.process import serve
from tests.service.segments.test_segments import Slow, begin, body, eventually


def rename(service: Running, table: str, to: str) -> None:
    with service.container.database.write() as db:
        db.change(f"ALTER TABLE {table} RENAME TO {to}")


def test_a_segment_whose_end_cannot_be_noted_goes_back_and_is_run_again(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    service = Running(data_dir, tmp_path, dataset=dataset)
    try:
        told = begin(service).json()
        cancelled = begin(service, 2).json()
        for _ in range(2):
            assert dataset.asked.acquire(timeout=10)
        rename(service, "segments", "away")
        service.container.segments.scheduler.jobs.get(cancelled["id"]).cancel.asked.set()
        eventually(lambda: service.container.segments.scheduler.running == {told["id"]})
        dataset.go.set()
        eventually(lambda: not service.container.segments.scheduler.running)
        threads = service.container.segments.scheduler.threads
        assert all(thread.is_alive() for thread in threads)
        rename(service, "away", "segments")
        done = service.get(f"/v1/segment/{told['id']}", headers={"Prefer": "wait=20"})
        assert (done.status_code, done.json()["status"]) == (200, "completed")
        assert service.get("/readyz").json()["checks"]["threads"] == "ok"
        assert service.execute(body(3))["status"] == "completed"
        failed = [line for line in service.lines() if line["event"] == "segment not ended"]
        assert {line["segment"] for line in failed} == {told["id"], cancelled["id"]}
    finally:
        dataset.go.set()
        service.stop()


def test_a_registry_that_is_moved_away_while_it_is_used_is_not_made_anew_and_loses_nothing(
    tmp_path,
):
    registry = tmp_path / "service" / "registry.sqlite"
    away = registry.with_name("away.sqlite")
    with serve(tmp_path, key="a-key-of-the-tests") as process:

        def ask(number: int) -> requests.Response:
            headers = {"x-api-key": process.key}
            execute = f"{process.url}/v1/segment/execute"
            return requests.post(execute, json=body(number), headers=headers, timeout=60)

        acknowledged = [ask(1).json()["id"]]
        registry.rename(away)
        # Some with a connection that was open before, and many that need a new one.
        with ThreadPoolExecutor(16) as pool:
            for answer in pool.map(ask, range(2, 40)):
                if answer.status_code == 200:
                    acknowledged.append(answer.json()["id"])
                else:
                    assert (answer.status_code, answer.json()["code"]) == (503, "registry")
        assert not registry.exists()
        process.end(signal.SIGKILL)
    # Its last changes are in the log beside it, which a new one in its place would have deleted.
    with pytest.raises(StorageError, match="-wal, which has its last changes"):
        Database(registry)
    away.rename(registry)
    with serve(tmp_path, key="a-key-of-the-tests") as process:
        for segment in acknowledged:
            answer = process.session.get(f"{process.url}/v1/segment/{segment}", timeout=60)
            assert (answer.status_code, answer.json()["status"]) == (200, "completed")


def test_a_registry_that_somebody_else_is_writing_is_read_all_the_same(
    data_dir, tmp_path, monkeypatch
):
    connected = sqlite3.connect
    # Fifteen seconds, for which a writer waits for its turn, are two here.
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connected(*args, **{**options, "timeout": 2})
    )
    service = Running(data_dir, tmp_path)
    texts = [service.container.keys.add(name, rate="20/day")[1] for name in "abc"]
    try:
        segment = service.execute(body(1))
        with (
            contextlib.closing(connected(tmp_path / "registry.sqlite")) as other,
            ThreadPoolExecutor(3) as pool,
        ):
            other.execute("BEGIN IMMEDIATE")

            def read(text: Secret) -> int:
                headers = {"x-api-key": text.reveal()}
                return requests.get(
                    service.url + segment["links"]["self"], headers=headers, timeout=60
                ).status_code

            # Each has to take a part of its rate first, and counts for itself where that cannot be stored.
            waiting = [pool.submit(read, text) for text in texts]
            time.sleep(0.5)
            # Whoever reads waits for none of them, and is not refused for them.
            assert service.get(segment["links"]["csv"]).status_code == 200
            refused = service.post("/v1/segment/execute", body(2))
            assert (refused.status_code, refused.json()["code"]) == (503, "registry")
            assert service.execute(body(1))["cached"] is True
            assert service.get("/readyz").status_code == 200
            assert [one.result() for one in waiting] == [200] * 3
        eventually(lambda: service.post("/v1/segment/execute", body(2)).status_code == 200)
    finally:
        service.stop()


def test_a_lock_is_held_before_it_has_its_name_and_is_its_owners_alone(tmp_path):
    one, two = ProcessLock(tmp_path / "leases"), ProcessLock(tmp_path / "leases")
    (path,) = (tmp_path / "leases").glob(f"{one.name}*")
    assert (path.suffix, path.stat().st_mode & 0o777) == (".lease", 0o600)
    assert (one.is_alive(two.name), one.others()) == (True, [two.name])
    # A folder that is not mounted now says nothing of the others.
    (tmp_path / "leases").rename(tmp_path / "away")
    assert one.is_alive(two.name)
    (tmp_path / "away").rename(tmp_path / "leases")
    two.release()
    assert not one.is_alive(two.name)
    one.release()
    assert list((tmp_path / "leases").iterdir()) == []


def test_a_folder_of_leases_that_cannot_be_looked_at_stops_no_segment(
    data_dir, tmp_path, monkeypatch
):
    service, scandir = Running(data_dir, tmp_path), os.scandir
    looks, failing = threading.Semaphore(0), threading.Event()

    def looked(path):
        if failing.is_set() and os.fspath(path).endswith("leases"):
            looks.release()
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return scandir(path)

    try:
        monkeypatch.setattr(os, "scandir", looked)
        failing.set()
        assert service.execute(body(1))["status"] == "completed"
        for _ in range(4):
            assert looks.acquire(timeout=10)
        failing.clear()
        assert service.execute(body(2))["status"] == "completed"
        threads = service.container.segments.scheduler.threads
        assert all(thread.is_alive() for thread in threads)
    finally:
        service.stop()


@pytest.mark.postgres
@pytest.mark.slow
def test_a_server_that_does_not_answer_costs_each_caller_a_few_seconds_and_none_later(tmp_path):
    with (
        postgres.server() as server,
        postgres.new_database(server) as url,
        serve(tmp_path, "--registry", url, key="a-key-of-the-tests") as process,
    ):
        execute = f"{process.url}/v1/segment/execute"
        first = process.session.post(execute, json=body(1), timeout=60)
        assert first.status_code == 200

        def asked(path: str, key: str) -> tuple[int, bool]:
            began = time.monotonic()
            answer = requests.get(process.url + path, headers={"x-api-key": key}, timeout=60)
            return answer.status_code, time.monotonic() - began < 30

        with postgres.stopped(url):
            assert asked("/healthz", "") == (200, True)
            assert asked("/readyz", "") == (503, True)
            for key in ("a-key-of-the-tests", "another"):
                assert asked(f"/v1/segment/{first.json()['id']}", key) == (503, True)
            answer = process.session.post(execute, json=body(2), timeout=60)
            assert (answer.status_code, answer.json()["code"]) == (503, "registry")
        eventually(lambda: asked("/readyz", "") == (200, True), 30)
        again = process.session.post(execute, json=body(2), timeout=60)
        assert (again.status_code, again.json()["status"]) == (200, "completed")
        with postgres.stopped(url):
            assert process.end(signal.SIGTERM) == 0
