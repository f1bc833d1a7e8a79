"""What waits for the engine or the disk holds up nobody who asks for what is there."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant

from nbext.engine.dataset import Dataset
from nbext.engine.open import open_dataset
from nbext.service.app import ROUTES
from nbext.service.segments.jobs import Job, Jobs
from tests.service.conftest import HOLDERS, Running
from tests.service.segments.test_segments import Slow, body


def dependencies(of: Dependant) -> list[Any]:
    return [call for each in of.dependencies for call in (each.call, *dependencies(each))]


def test_no_request_takes_a_thread_before_its_route_does():
    found = [call for route in ROUTES for call in dependencies(route.dependant)]
    assert found
    # FastAPI calls a dependency that is a plain function in a thread.
    assert [call for call in found if not asyncio.iscoroutinefunction(call)] == []


def test_callers_who_wait_for_the_engine_hold_up_nobody_who_reads(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, dataset=dataset)
    try:
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(running.post, "/explain", {**body(n), "parts": True}) for n in range(8)]
            assert all(dataset.asked.acquire(timeout=10) for _ in waiting)
            assert running.get("/v1/segment/none").status_code == 404
            assert running.get("/v1/tokens/ethereum/USDC").status_code == 200
            assert not any(each.done() for each in waiting)
            dataset.go.set()
            assert [each.result(timeout=20).status_code for each in waiting] == [200] * 8
    finally:
        dataset.go.set()
        running.stop()


@dataclass
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


def test_callers_who_wait_for_a_remote_engines_contracts_hold_up_nobody_who_reads(data_dir, tmp_path):
    dataset = Far(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, dataset=dataset)
    try:
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(running.get, "/v1/tokens/ethereum/USDC") for _ in range(4)]
            assert all(dataset.asked.acquire(timeout=10) for _ in waiting)
            assert running.get("/v1/segment/none").status_code == 404
            assert not any(each.done() for each in waiting)
            dataset.come.set()
            assert [each.result(timeout=20).status_code for each in waiting] == [200] * 4
        assert running.get("/v1/tokens/ethereum/USDC").status_code == 200
    finally:
        dataset.come.set()
        running.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_next_segments_are_asked_while_the_last_ones_are_kept(workers):
    begun, answered, keep = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def run(job: Job) -> None:
        begun.release()
        assert answered.acquire(timeout=20)
        jobs.answered(job)
        assert keep.wait(20)

    jobs = Jobs(run, workers=workers)
    all_of_them = [Job(str(number), None, "") for number in range(workers + 1)]
    for job in all_of_them:
        jobs.submit(job)
    for _ in range(workers):
        assert begun.acquire(timeout=20)
    assert (jobs.queued, begun.acquire(timeout=0.1)) == (1, False), "no more are asked at once"
    answered.release()
    assert begun.acquire(timeout=20), "one is being kept, so the last may ask"
    assert not any(job.done.done() for job in all_of_them)
    for _ in range(workers):
        answered.release()
    keep.set()
    for job in all_of_them:
        job.done.result(timeout=20)
    jobs.close(1)


def test_a_small_result_comes_in_one_piece(service):
    small = service.execute(HOLDERS)
    for form in ("json", "csv", "arrow"):
        answer = service.get(small["links"][form])
        assert int(answer.headers["Content-Length"]) == len(answer.content)
