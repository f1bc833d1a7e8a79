"""How much one key may have at once, and in which order the keys' work is done."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nbext.core.locks import ProcessLock
from nbext.engine.dataset import Cancel
from nbext.errors import QueryTimeout
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.limits import Bound, Limits
from nbext.service.middleware import Log
from nbext.service.problems import Problem
from nbext.service.scheduling import Lane, Scheduler, SegmentJob
from nbext.service.segments.store import SegmentStore
from tests.service.conftest import Running

DATA = "a-fingerprint"


def turns(threads=1, per_key=100, seconds=9):
    return Lane(Bound("requests", per_key=per_key, in_all=200, threads=threads), seconds)


def test_keys_take_turns_however_many_requests_each_sends():
    async def main() -> list[str]:
        done: list[str] = []
        some = turns()
        many = [some.run("busy", lambda _, n=n: done.append(f"busy {n}")) for n in range(50)]
        asked = [asyncio.ensure_future(one) for one in many]
        await asyncio.sleep(0)
        for key in "ab":
            asked.append(asyncio.ensure_future(some.run(key, lambda _, key=key: done.append(key))))
        await asyncio.gather(*asked)
        return done

    done = asyncio.run(main())
    assert done == ["busy 0", "a", "b", *(f"busy {number}" for number in range(1, 50))]


def test_one_key_never_has_all_threads():
    async def main() -> int:
        most, now, lock = 0, 0, threading.Lock()

        def work(cancel: Cancel) -> None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1

        some = turns(threads=3)
        await asyncio.gather(*(some.run("busy", work) for _ in range(20)))
        return most

    assert asyncio.run(main()) == 1


def test_the_time_of_work_begins_with_its_turn():
    async def main() -> None:
        some = turns()
        first = some.run("a", lambda _: (time.sleep(0.1), time.monotonic()))
        second = some.run("b", lambda cancel: cancel.deadline)
        (_, ended), deadline = await asyncio.gather(first, second)
        assert deadline >= ended + 9
        with pytest.raises(QueryTimeout):
            await turns(seconds=0.1).run("a", lambda cancel: (time.sleep(0.2), cancel.check()))

    asyncio.run(main())


def test_who_hangs_up_while_waiting_leaves_the_queue_to_the_others():
    async def main() -> list[str]:
        done: list[str] = []
        some, go = turns(per_key=2), threading.Event()
        first = asyncio.ensure_future(some.run("a", lambda _: go.wait(20)))
        gone = asyncio.ensure_future(some.run("a", lambda _: done.append("gone")))
        await asyncio.sleep(0.05)
        with pytest.raises(Problem) as caught:
            await some.run("a", lambda _: done.append("refused"))
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "2"})
        gone.cancel()
        await asyncio.sleep(0)
        last = asyncio.ensure_future(some.run("a", lambda _: done.append("last")))
        go.set()
        await asyncio.gather(first, last)
        return done

    assert asyncio.run(main()) == ["last"]


def test_a_share_is_free_again_and_leaves_nothing_behind():
    share = Lane(Bound("exports", per_key=1, in_all=2))
    with share.taken("a"), share.taken("b"):
        for key, status, code in (("a", 429, "too-many-at-once"), ("c", 503, "busy")):
            with pytest.raises(Problem) as caught, share.taken(key):
                pass
            assert (
                caught.value.status,
                caught.value.code,
                caught.value.headers["Retry-After"],
            ) == (status, code, "2")
    with share.taken("a"):
        pass
    assert not share._taken


def test_a_lane_has_nothing_of_a_key_that_has_nothing_in_it():
    async def main() -> Lane:
        some = turns()
        await asyncio.gather(*(some.run("ab"[n % 2], lambda _: None) for n in range(6)))
        return some

    lane = asyncio.run(main())
    assert (lane.total, lane._taken, lane._turns) == (0, {}, {})


class Segments:
    """A scheduler over a registry of its own; ``run`` says what each segment does before it ends."""

    def __init__(self, folder: Path, run: Callable[[SegmentJob], None], workers: int) -> None:
        self.database = Database(folder / "registry.sqlite")
        self.store, self.lease = SegmentStore(self.database), ProcessLock(folder / "leases")
        self.log = io.StringIO()

        def answer(job: SegmentJob) -> None:
            run(job)
            self.store.end(job.id, self.lease.name, "failed", None)

        self.scheduler = Scheduler(
            self.store,
            self.lease,
            answer,
            fingerprints=lambda: [DATA],
            limits=Limits(workers=workers),
            log=Log(self.log),
        )

    def enter(self, name: str, key: str) -> SegmentJob:
        with self.scheduler.entering(SegmentJob(name)) as job:
            self.store.enqueue(name, {"limit": 1}, {}, DATA, key=Key(key, key), limits=Limits())
        return job


@contextlib.contextmanager
def segments(
    folder: Path, run: Callable[[SegmentJob], None], workers: int = 2
) -> Iterator[Segments]:
    made = Segments(folder, run, workers)
    try:
        yield made
    finally:
        made.scheduler.close(1)
        made.lease.release()
        made.database.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_next_segments_are_asked_while_the_last_ones_are_stored(workers, tmp_path):
    begun, answered, keep = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def run(job: SegmentJob) -> None:
        begun.release()
        assert answered.acquire(timeout=20)
        some.scheduler.storing(job)
        assert keep.wait(20)

    with segments(tmp_path, run, workers) as some:
        jobs = [some.enter(f"sg_{number}", "a") for number in range(workers + 1)]
        for thread in some.scheduler.threads:
            thread.start()
        for _ in range(workers):
            assert begun.acquire(timeout=20)
        assert (some.store.queued(), begun.acquire(timeout=0.1)) == (1, False), (
            "no more are asked at once"
        )
        answered.release()
        assert begun.acquire(timeout=20), "one is being stored, so the last may ask"
        assert not any(job.done.done() for job in jobs)
        for _ in range(workers):
            answered.release()
        keep.set()
        for job in jobs:
            job.done.result(timeout=20)


def test_beside_the_segments_of_one_key_there_is_room_for_one_of_another(tmp_path):
    begun, go = threading.Semaphore(0), threading.Event()
    running: list[str] = []

    def run(job: SegmentJob) -> None:
        running.append(job.id)
        begun.release()
        assert go.wait(20)

    with segments(tmp_path, run) as some:
        jobs = [some.enter(f"long {number}", "busy") for number in range(4)]
        for thread in some.scheduler.threads:
            thread.start()
        for _ in range(2):
            assert begun.acquire(timeout=20)
        assert not begun.acquire(timeout=0.1)
        jobs += [some.enter(name, key) for name, key in (("short", "a"), ("second", "a"))]
        jobs.append(some.enter("third", "b"))
        assert begun.acquire(timeout=20)
        assert not begun.acquire(timeout=0.1)
        assert running == ["long 0", "long 1", "short"]
        go.set()
        for job in jobs:
            job.done.result(timeout=20)


@pytest.mark.parametrize("where", ["start", "running", "end"])
def test_no_thread_ends_of_what_fails_at_any_place_of_a_segment(where, tmp_path, monkeypatch):
    former, failed = getattr(SegmentStore, where), threading.Semaphore(0)
    # As many as there are threads, and more.
    fails = iter(range(20))

    def failing(*values, **options):
        # Only what is undone shows that it goes back: its end fails for the first one alone.
        if next(fails, None) is not None:
            failed.release()
            raise ValueError("of a kind that nobody expects")
        return former(*values, **options)

    monkeypatch.setattr(SegmentStore, where, failing)
    monkeypatch.setattr("nbext.service.scheduling._LOOK", 0.001)
    with segments(tmp_path, lambda job: None) as some:
        if where == "running":
            some.scheduler._in_doubt = True
        for thread in some.scheduler.threads:
            thread.start()
        some.enter("sg_1", "a")
        for _ in range(20):
            assert failed.acquire(timeout=20)
        until = time.monotonic() + 20
        while some.store.get("sg_1").status != "failed":
            assert time.monotonic() < until
            time.sleep(0.005)
        assert all(thread.is_alive() for thread in some.scheduler.threads)


def test_a_segment_that_is_begun_anew_before_its_last_run_is_over_here_takes_no_thread_with_it(
    tmp_path,
):
    begun, go = threading.Semaphore(0), threading.Event()

    def run(job: SegmentJob) -> None:
        some.store.end(job.id, some.lease.name, "failed", None)
        begun.release()
        assert go.wait(20)

    with segments(tmp_path, run) as some:
        for thread in some.scheduler.threads:
            thread.start()
        first = some.enter("sg_1", "a")
        assert begun.acquire(timeout=20)
        some.enter("sg_1", "a")
        assert begun.acquire(timeout=20), "the second run"
        second = some.scheduler.jobs.get("sg_1")
        assert first is not second
        go.set()
        for job in (first, second):
            job.done.result(timeout=20)
        third = some.enter("sg_2", "a")
        third.done.result(timeout=20)
        assert some.scheduler.running == set()
        assert all(thread.is_alive() for thread in some.scheduler.threads)


def test_all_segments_of_a_killed_service_are_taken_over_though_its_lease_is_gone(tmp_path):
    with segments(tmp_path, lambda job: None) as some:
        killed = ProcessLock(tmp_path / "leases")
        for name in ("sg_1", "sg_2"):
            some.store.enqueue(name, {"limit": 1}, {}, DATA, key=Key("a", "a"), limits=Limits())
            some.store.start(killed.name, [DATA])
        # As the system does, which leaves the file.
        killed._db.close()
        # As whoever looks whether it lives, which takes its lease away.
        assert (some.lease.is_alive(killed.name), some.lease.others()) == (False, [])
        some.scheduler.adopt()
        assert [some.store.get(name).status for name in ("sg_1", "sg_2")] == ["queued"] * 2


@pytest.mark.parametrize(("cancelled", "status"), [(True, "cancelled"), (False, "failed")])
def test_a_segment_whose_second_service_is_killed_fails_unless_it_was_cancelled(
    tmp_path, cancelled, status
):
    with segments(tmp_path, lambda job: None) as some:
        some.store.enqueue("sg_1", {"limit": 1}, {}, DATA, key=Key("a", "a"), limits=Limits())
        for _ in range(2):
            killed = ProcessLock(tmp_path / "leases")
            some.store.start(killed.name, [DATA])
            killed._db.close()
            if some.store.get("sg_1").attempts == 2 and cancelled:
                assert some.store.cancel("sg_1")
            some.scheduler.adopt()
        assert some.store.get("sg_1").status == status


def test_a_service_that_ends_takes_the_mark_of_its_life_away(data_dir, tmp_path):
    running = Running(data_dir, tmp_path)
    before = len(list((tmp_path / "leases").iterdir()))
    running.stop()
    assert (before, list((tmp_path / "leases").iterdir())) == (1, [])
