"""What waits for the engine or the disk holds up nobody who asks for what is there."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from fastapi.dependencies.models import Dependant

from nbext.engine.open import open_dataset
from nbext.engine.query.answers import Dataset
from nbext.service.limits import Limits
from nbext.service.segments import results
from nbext.service.server import ROUTES
from tests.service.conftest import HOLDERS, KEY, Running
from tests.service.segments.test_segments import Slow, body


def dependencies(of: Dependant) -> list[Any]:
    return [call for each in of.dependencies for call in (each.call, *dependencies(each))]


def test_no_request_takes_a_thread_before_its_route_does():
    found = [call for route in ROUTES for call in dependencies(route.dependant)]
    assert found
    # FastAPI calls a dependency that is a plain function in a thread.
    found = [call for call in found if not inspect.isasyncgenfunction(call)]
    assert [call for call in found if not asyncio.iscoroutinefunction(call)] == []


def test_callers_who_wait_for_the_engine_hold_up_nobody_who_reads(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, dataset=dataset)
    try:
        with ThreadPoolExecutor(8) as pool:
            waiting = [
                pool.submit(running.post, "/explain", {**body(n), "parts": True}) for n in range(8)
            ]
            assert dataset.asked.acquire(timeout=20)
            assert running.get("/v1/segment/none").status_code == 404
            assert running.get("/v1/tokens/ethereum/USDC").status_code == 200
            assert not dataset.asked.acquire(blocking=False), (
                "a key's explanations are made one after the other"
            )
            assert not any(each.done() for each in waiting)
            dataset.go.set()
            assert [each.result(timeout=20).status_code for each in waiting] == [200] * 8
    finally:
        dataset.go.set()
        running.stop()


@dataclass(eq=False)
class Far:
    """The sample's dataset, whose contracts come late, as a remote engine's do."""

    real: Dataset
    come: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    @property
    def catalog(self) -> Any:
        self.asked.release()
        assert self.come.wait(20)
        return self.real.catalog


def test_callers_who_wait_for_a_remote_engines_contracts_hold_up_nobody_who_reads(
    data_dir, tmp_path
):
    dataset = Far(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, dataset=dataset)
    try:
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(running.get, "/v1/tokens/ethereum/USDC") for _ in range(4)]
            assert all(
                dataset.asked.acquire(timeout=10) for _ in range(running.container.limits.reading)
            )
            assert running.get("/v1/segment/none").status_code == 404
            assert not any(each.done() for each in waiting)
            dataset.come.set()
            assert [each.result(timeout=20).status_code for each in waiting] == [200] * 4
        assert running.get("/v1/tokens/ethereum/USDC").status_code == 200
    finally:
        dataset.come.set()
        running.stop()


def test_a_small_result_comes_in_one_piece(service):
    small = service.execute(HOLDERS)
    for form in ("json", "csv", "arrow"):
        answer = service.get(small["links"][form])
        assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_an_export_whose_end_http_1_0_does_not_show_is_refused_there(service, monkeypatch):
    """As of a proxy of nginx's defaults, which takes a part of it for the whole where this service is killed."""
    links = service.execute(HOLDERS)["links"]

    def asked(form: str) -> tuple[str, str]:
        with socket.create_connection((service.host, service.port), timeout=10) as raw:
            head = f"GET {links[form]} HTTP/1.0\r\nHost: localhost\r\nx-api-key: {KEY}\r\n\r\n"
            raw.sendall(head.encode())
            head, _, answer = raw.makefile("rb").read().decode("latin-1").partition("\r\n\r\n")
        return head.split()[1], answer

    assert asked("csv") == ("200", service.get(links["csv"]).text)
    monkeypatch.setattr(results, "SMALL", 0)
    for form in ("json", "csv", "arrow"):
        status, answer = asked(form)
        assert (status, json.loads(answer)["code"]) == ("400", "not-http")
    assert service.get(links["csv"]).status_code == 200


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/healthz", {"status": "ok"}),
        (
            "/readyz",
            {
                "status": "ready",
                "data": "sample",
                "checks": {
                    "disk": "ok",
                    "registry": "ok",
                    "results": "ok",
                    "data": "ok",
                    "queue": "ok",
                    "threads": "ok",
                },
            },
        ),
    ],
)
def test_a_probe_needs_no_key_and_may_ask_by_head(service, path, answer):
    asked = requests.get(service.url + path, timeout=10)
    assert (asked.status_code, asked.json()) == (200, answer)
    head = requests.head(service.url + path, timeout=10)
    length = asked.headers["content-length"]
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", length)


def test_a_service_whose_queue_is_full_says_that_it_is_not_ready(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, Limits(workers=1, queue=1), dataset=dataset)

    def asked() -> tuple[int, str, list[str]]:
        answer = running.get("/readyz", headers={"x-api-key": ""})
        return answer.status_code, answer.json()["detail"], answer.json()["checks"]

    try:
        for number in range(2):
            answer = running.post(
                "/v1/segment/execute", body(number), headers={"Prefer": "respond-async"}
            )
            assert answer.status_code == 202
            # The first has left the queue once it asks; the second stays in it.
            assert number or dataset.asked.acquire(timeout=10)
        assert asked() == (503, "The queue is full: 1 of 1 segments wait.", ["queue"])
        assert running.get("/healthz").json() == {"status": "ok"}
    finally:
        dataset.go.set()
        running.stop()


@pytest.mark.slow
def test_the_reserve_is_kept_again_once_there_is_room(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.service.segments.maintenance._FIRST_ROUND", 0.0)
    monkeypatch.setattr("nbext.service.segments.maintenance._ROUND", 0.0)
    running = Running(data_dir, tmp_path)
    try:
        (tmp_path / "reserve").unlink()
        until = time.monotonic() + 60
        while not (tmp_path / "reserve").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        running.stop()
    assert (tmp_path / "reserve").stat().st_size == 1 << 20
