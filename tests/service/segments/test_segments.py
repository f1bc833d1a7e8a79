"""Segments that take their time: waiting, cancelling, repeating, expiring, and two services on one folder."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from nbext.core import wire
from nbext.core.strict_json import canonical_json
from nbext.engine.dataset import Cancel, QueryResult, Question
from nbext.engine.open import open_dataset
from nbext.engine.query.answers import Dataset
from nbext.errors import QueryCancelled, QueryTimeout
from nbext.service.limits import Limits, Policy
from nbext.service.middleware import Log
from nbext.service.segments.maintenance import Maintenance
from tests.service.conftest import HOLDERS, KEY, USDC, Running, trace


@dataclass(eq=False)
class Slow:
    """The sample's dataset, whose questions do not begin before they are let go; they stop as the engine's do."""

    real: Dataset
    go: threading.Event = field(default_factory=threading.Event)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> QueryResult:
        self.asked.release()
        while not self.go.wait(0.01):
            if cancel and cancel.asked.is_set():
                raise QueryCancelled("cancelled")
            if cancel and cancel.deadline and time.monotonic() > cancel.deadline:
                raise QueryTimeout("too slow")
        return self.real.ask(question, limit=limit, cancel=cancel)


@pytest.fixture
def slow(data_dir, tmp_path):
    """A service whose questions wait; two at once, three more in the queue."""
    dataset = Slow(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, Limits(queue=3, query_seconds=20), dataset=dataset)
    running.dataset = dataset
    yield running
    dataset.go.set()
    running.stop()


def body(number: int) -> dict[str, Any]:
    return {"filters": {"token": {"token": "USDC", "balance": {"min": str(number)}}}, "limit": 10}


def begin(service: Running, number: int = 1, **headers: str):
    return service.post(
        "/v1/segment/execute", body(number), headers={"Prefer": "wait=0", **headers}
    )


def test_a_caller_who_does_not_wait_is_told_where_to_ask(slow):
    answer = begin(slow)
    segment = answer.json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/segment/{segment['id']}"
    assert int(answer.headers["Retry-After"]) >= 1
    assert segment["status"] in ("queued", "running")
    assert (segment["completedAt"], segment["durationMs"], segment["preview"]) == (None, None, [])
    waiting = slow.get(answer.headers["Location"])
    assert (waiting.status_code, waiting.headers["Location"]) == (202, answer.headers["Location"])
    for form in ("json", "csv", "arrow"):
        early = slow.get(segment["links"][form])
        assert (early.status_code, early.json()["code"], early.headers["Retry-After"]) == (
            409,
            "not-ready",
            "1",
        )
    slow.dataset.go.set()
    done = slow.get(answer.headers["Location"], headers={"Prefer": "wait=20"})
    assert (done.status_code, done.json()["status"]) == (200, "completed")
    assert slow.get(segment["links"]["json"]).status_code == 200


@pytest.mark.slow
def test_a_caller_waits_no_longer_than_it_prefers(slow):
    began = time.monotonic()
    answer = begin(slow, Prefer="respond-async, wait=1")
    assert answer.status_code == 202
    assert 0.9 < time.monotonic() - began < 15


def test_a_running_segment_is_cancelled_and_may_be_run_again(slow):
    first = begin(slow).json()
    assert slow.dataset.asked.acquire(timeout=10)
    cancelled = slow.delete(f"/v1/segment/{first['id']}")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert cancelled.json()["error"]["code"] == "cancelled"
    assert slow.get(first["links"]["json"]).json()["code"] == "not-completed"
    assert slow.delete(f"/v1/segment/{first['id']}").json()["code"] == "finished"
    slow.dataset.go.set()
    assert slow.execute(body(1))["status"] == "completed"


def test_a_waiting_segment_is_cancelled_at_once(slow):
    begin(slow, 1), begin(slow, 2)
    third = begin(slow, 3).json()
    assert third["status"] == "queued"
    slow.delete(f"/v1/segment/{third['id']}")
    assert slow.get(f"/v1/segment/{third['id']}").json()["status"] == "cancelled"


def test_a_full_queue_is_503_and_leaves_nothing_behind(slow):
    taken = [begin(slow, number).status_code for number in range(6)]
    assert taken[:2] == [202, 202]
    refused = begin(slow, 99, **{"Idempotency-Key": "later"})
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (
        503,
        "busy",
        "2",
    )
    slow.dataset.go.set()
    eventually(lambda: not slow.container.segments.store.queued())
    eventually(lambda: not slow.container.segments.scheduler.running)
    again = slow.post("/v1/segment/execute", body(99), headers={"Idempotency-Key": "later"})
    assert (again.status_code, "Idempotency-Replayed" in again.headers) == (200, False)


def test_one_key_may_not_fill_the_queue(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    running = Running(data_dir, tmp_path, Limits(per_key=2), dataset=dataset)
    try:
        assert [begin(running, number).status_code for number in (1, 2, 3)] == [202, 202, 429]
        assert begin(running, 3).json()["code"] == "too-many-segments"
        assert begin(running, 1).status_code == 202
    finally:
        dataset.go.set()
        running.stop()


def hang_up(service: Running, *, after: threading.Semaphore, headers: str = "") -> None:
    raw = json.dumps(body(7)).encode()
    head = f"POST /v1/segment/execute HTTP/1.1\r\nHost: localhost\r\nx-api-key: {KEY}\r\n"
    head += f"Content-Length: {len(raw)}\r\n{headers}"
    with socket.create_connection((service.host, service.port), timeout=10) as caller:
        caller.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + raw)
        assert after.acquire(timeout=10)


def eventually(check, seconds: float = 10.0):
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_a_segment_nobody_waits_for_any_more_is_cancelled(slow):
    hang_up(slow, after=slow.dataset.asked)
    cancelled = "SELECT id FROM segments WHERE status = 'cancelled'"
    eventually(lambda: slow.container.database.rows(cancelled))


@dataclass(eq=False)
class Reluctant(Slow):
    """Its questions stop only when they may, however long ago they were asked to."""

    stop: threading.Event = field(default_factory=threading.Event)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> QueryResult:
        self.asked.release()
        while not self.go.wait(0.01):
            if cancel and cancel.asked.is_set() and self.stop.is_set():
                raise QueryCancelled("cancelled")
        return self.real.ask(question, limit=limit, cancel=cancel)


@pytest.mark.parametrize("how", ["hang up", "hang up and repeat", "cancel", "cancel elsewhere"])
def test_who_asks_for_a_segment_that_is_just_being_cancelled_asks_for_another_run(
    data_dir, tmp_path, how
):
    dataset = Reluctant(open_dataset(data_dir))
    one = Running(data_dir, tmp_path, Limits(cancel_seconds=0.1), dataset=dataset)
    other = None
    try:
        headers = {"Idempotency-Key": "again"} if how == "hang up and repeat" else {}
        if how.startswith("cancel"):
            path = f"/v1/segment/{begin(one, 7).json()['id']}"
            assert dataset.asked.acquire(timeout=10)
            if how == "cancel elsewhere":
                same = Reluctant(open_dataset(data_dir), dataset.go, dataset.asked, dataset.stop)
                other = Running(data_dir, tmp_path, Limits(cancel_seconds=0.1), dataset=same)
            assert (other or one).delete(path).status_code == 202
        else:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            hang_up(one, after=dataset.asked, headers=lines)
            jobs = one.container.segments.scheduler.jobs
            eventually(lambda: [job.cancel.asked.is_set() for job in jobs.values()] == [True])
        with ThreadPoolExecutor(1) as pool:
            again = pool.submit((other or one).post, wire.EXECUTE, body(7), headers=headers)
            time.sleep(0.5)
            dataset.stop.set()
            assert dataset.asked.acquire(timeout=10), "it runs anew"
            dataset.go.set()
            answer = again.result(timeout=20)
        assert (answer.status_code, answer.json()["status"]) == (200, "completed")
        assert "Idempotency-Replayed" not in answer.headers
    finally:
        dataset.go.set(), dataset.stop.set()
        one.stop()
        if other:
            other.stop()


def test_a_segment_whose_id_was_told_outlives_its_callers(slow):
    told = begin(slow, 7).json()
    assert slow.dataset.asked.acquire(timeout=10)
    slow.dataset.asked.release()
    hang_up(slow, after=slow.dataset.asked)
    slow.dataset.go.set()
    answer = slow.get(f"/v1/segment/{told['id']}", headers={"Prefer": "wait=10"})
    assert answer.json()["status"] == "completed"


def test_one_idempotency_key_is_one_segment_however_often_it_comes(service):
    headers = {"Idempotency-Key": "eight-at-once"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: service.post("/v1/segment/execute", HOLDERS, headers=headers), range(8)
            )
        )
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len({answer.json()["id"] for answer in answers}) == 1
    again = service.post("/v1/segment/execute", HOLDERS, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["id"] == answers[0].json()["id"]
    other = service.post("/v1/segment/execute", {**HOLDERS, "limit": 51}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")
    _, text = service.container.keys.add("another caller", rate=None)
    free = service.post(
        "/v1/segment/execute",
        {**HOLDERS, "limit": 51},
        headers={**headers, "x-api-key": text.reveal()},
    )
    assert free.status_code == 200


@pytest.mark.parametrize("path", ["/profile", "/changes"])
def test_a_profile_and_changes_are_one_segment_under_one_idempotency_key(service, path):
    body = {"filters": HOLDERS["filters"], **({"since": "30d"} if path == "/changes" else {})}
    headers = {"Idempotency-Key": path[1:]}
    usual = {} if path == "/changes" else {"least": wire.LEAST}
    first, again = (service.post(path, each, headers=headers) for each in (body, body | usual))
    assert [each.headers.get("Idempotency-Replayed") for each in (first, again)] == [None, "true"]
    assert first.json()["id"] == again.json()["id"]
    refused = service.post("/v1/segment/execute", HOLDERS, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency-key-reused")


@pytest.mark.parametrize("key", ["asOf", "chain"])
def test_a_repeat_under_an_idempotency_key_has_the_filters_that_the_first_call_had(service, key):
    chains = service.get("/about").json()["data"]["chains"]
    (last,) = (one["lastBlock"] for one in chains if one["chain"] == "ethereum")
    given = {"asOf": last, "chain": "ethereum"}[key]
    plain, ids = {**HOLDERS, "limit": 61}, set()
    # The first is stored: its words are not those of who asks for the same segment after it.
    for asked in ({**plain, "filters": {**plain["filters"], key: given}}, plain):
        headers = {"Idempotency-Key": f"{key}-{len(asked['filters'])}"}
        first, again = (
            service.post("/v1/segment/execute", asked, headers=headers).json() for _ in range(2)
        )
        assert first["filters"] == again["filters"] == asked["filters"]
        ids |= {first["id"], again["id"]}
    assert len(ids) == 1


def test_the_plan_alone_that_was_made_first_gives_way_to_a_new_one(service, monkeypatch):
    monkeypatch.setattr("nbext.service.segments.analysis._MOST", 3)
    dataset = service.container.generations.newest
    planner = service.container.segments.planner(dataset, None, Cancel(), private=True)
    plans = [planner.plan(body(number)) for number in range(5)]
    known = {text: one.plan for text, one in planner.known.items()}
    assert known == {canonical_json(body(number)): plans[number] for number in (2, 3, 4)}


def plan_known(service, dataset, asked):
    return service.container.segments.planned.get(dataset, {}).get(canonical_json(asked))


def test_the_times_of_many_points_and_of_their_spans_are_looked_up_together(service, monkeypatch):
    dataset = service.container.generations.newest
    filters = {
        "token": {"token": "UNI", "heldSince": "30d"},
        "transfer": {"token": "UNI", "after": "14d", "before": "1d"},
        "activity": {"last": {"before": "2d"}},
    }
    bodies = [{"filters": {**filters, "asOf": f"{number}d"}} for number in range(1, 31)]
    read, statements = dataset.clock._read, []
    monkeypatch.setattr(
        dataset.clock, "_read", lambda write: statements.append(write) or read(write)
    )
    planner = service.container.segments.planner(dataset, None, Cancel(), private=True)
    assert len(planner.plans(bodies)) == 30
    # The points', and those that their spans begin and end at; and whether blocks have times at all.
    assert len(statements) <= 3


@pytest.mark.parametrize("name", ["", "a b", "x" * 256, "é"])
def test_an_idempotency_key_that_cannot_be_kept_is_400(service, name):
    answer = service.post(
        "/v1/segment/execute", HOLDERS, headers={"Idempotency-Key": name.encode()}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-header")


def test_a_claim_is_kept_for_a_day_and_no_longer(service):
    headers = {"Idempotency-Key": "an old one"[3:].replace(" ", "-")}
    service.post("/v1/segment/execute", HOLDERS, headers=headers)

    def age(hours: float) -> None:
        with service.container.database.write() as db:
            made = time.time() - hours * 3600
            aged = "UPDATE idempotency SET created_at = :made WHERE name = :name"
            db.change(aged, made=made, name=headers["Idempotency-Key"])

    age(23.9)
    assert (
        service.post("/v1/segment/execute", {**HOLDERS, "limit": 3}, headers=headers).status_code
        == 422
    )
    age(24.1)
    fresh = service.post("/v1/segment/execute", {**HOLDERS, "limit": 3}, headers=headers)
    assert (fresh.status_code, "Idempotency-Replayed" in fresh.headers) == (200, False)


def test_claims_segments_and_sign_ups_outlive_the_service(data_dir, tmp_path):
    first = Running(data_dir, tmp_path)
    before = first.post("/v1/segment/execute", HOLDERS, headers={"Idempotency-Key": "one"})
    rows = first.get(before.json()["links"]["csv"]).content
    first.post("/v1/signup/newsletter", {"email": "a@b.co"})
    first.stop()
    second = Running(data_dir, tmp_path)
    try:
        again = second.post("/v1/segment/execute", HOLDERS, headers={"Idempotency-Key": "one"})
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json() == before.json()
        assert second.get(before.json()["links"]["csv"]).content == rows
        assert [each.email for each in second.container.signups.all()] == ["a@b.co"]
    finally:
        second.stop()


def test_a_service_that_ends_puts_running_segments_back_and_the_next_one_finishes_them(
    data_dir, tmp_path
):
    dataset = Slow(open_dataset(data_dir))
    first = Running(data_dir, tmp_path, dataset=dataset)
    told = begin(first).json()
    assert dataset.asked.acquire(timeout=10)
    first.stop()
    second = Running(data_dir, tmp_path)
    try:
        answer = second.get(f"/v1/segment/{told['id']}", headers={"Prefer": "wait=20"})
        assert (answer.status_code, answer.json()["status"]) == (200, "completed")
        assert answer.json()["createdAt"] == told["createdAt"]
    finally:
        second.stop()


def test_two_services_on_one_folder_share_segments_and_stop_each_others(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    one = Running(data_dir, tmp_path, dataset=dataset)
    told = begin(one).json()
    assert dataset.asked.acquire(timeout=10)
    # Not before: it takes from the same queue.
    two = Running(data_dir, tmp_path)
    try:
        seen = two.get(f"/v1/segment/{told['id']}")
        assert (seen.status_code, seen.json()["status"]) == (202, "running")
        assert begin(two).json()["id"] == told["id"]
        assert two.delete(f"/v1/segment/{told['id']}").status_code == 202
        eventually(lambda: two.get(f"/v1/segment/{told['id']}").json()["status"] == "cancelled")
        # Either may take the next one from their queue.
        dataset.go.set()
        done = two.execute(body(1))
        assert one.get(done["links"]["csv"]).content == two.get(done["links"]["csv"]).content
        assert one.execute(body(1))["cached"] is True
    finally:
        dataset.go.set()
        one.stop()
        two.stop()


def test_a_caller_of_one_service_waits_for_a_segment_that_another_runs(data_dir, tmp_path):
    dataset = Slow(open_dataset(data_dir))
    one = Running(data_dir, tmp_path, dataset=dataset)
    begin(one)
    assert dataset.asked.acquire(timeout=60)
    # Not before: it takes from the same queue.
    two = Running(data_dir, tmp_path)
    try:
        threading.Timer(0.5, dataset.go.set).start()
        assert two.execute(body(1))["status"] == "completed"
    finally:
        one.stop()
        two.stop()


def test_a_damaged_result_is_set_aside_and_the_others_are_served(data_dir, tmp_path):
    first = Running(data_dir, tmp_path)
    kept = [first.execute(body(number)) for number in (1, 2, 3)]
    files = [first.container.segments.store.get(segment["id"]).result.file for segment in kept]
    first.stop()
    whole = (tmp_path / "results" / files[0]).read_bytes()
    (tmp_path / "results" / files[0]).write_bytes(whole[:-1])
    flipped = bytearray((tmp_path / "results" / files[1]).read_bytes())
    flipped[len(flipped) // 2] ^= 1
    (tmp_path / "results" / files[1]).write_bytes(bytes(flipped))
    second = Running(data_dir, tmp_path)
    try:
        # Of one that was cut the description says so, too, before anybody has read a row.
        read = second.get(f"/v1/segment/{kept[0]['id']}")
        assert (read.status_code, read.json()["status"]) == (200, "expired")
        assert second.get(kept[0]["links"]["json"]).status_code == 410
        assert second.get(kept[1]["links"]["csv"]).json()["code"] == "expired"
        assert second.get(kept[2]["links"]["csv"]).status_code == 200
        assert sorted(path.name for path in (tmp_path / "aside").iterdir()) == sorted(files[:2])
        warnings = [line["event"] for line in second.lines() if line["level"] == "warning"]
        assert warnings == ["damaged result set aside"] * 2
        assert second.execute(body(1))["cached"] is False
        assert second.get(kept[0]["links"]["json"]).json()["data"] == kept[0]["preview"]
    finally:
        second.stop()


def test_a_damaged_result_is_set_aside_by_the_service_itself_before_anybody_reads_it(
    data_dir, tmp_path, monkeypatch
):
    first = Running(data_dir, tmp_path)
    kept = [first.execute(body(number)) for number in (1, 2)]
    files = [first.container.segments.store.get(segment["id"]).result.file for segment in kept]
    first.stop()
    cut = tmp_path / "results" / files[0]
    cut.write_bytes(cut.read_bytes()[:-1])
    monkeypatch.setattr("nbext.service.segments.maintenance._FIRST_ROUND", 0)
    second = Running(data_dir, tmp_path)
    try:
        eventually(lambda: not cut.exists(), 60)
        assert [path.name for path in (tmp_path / "aside").iterdir()] == files[:1]
        statuses = [second.get(f"/v1/segment/{one['id']}").json()["status"] for one in kept]
        assert statuses == ["expired", "completed"]
    finally:
        second.stop()


def test_a_result_past_its_keeping_is_410_and_is_made_anew_when_asked_for(service):
    segment = service.execute(body(41))
    with service.container.database.write() as db:
        aged = "UPDATE segments SET used_at = used_at - 31 * 86400 WHERE id = :id"
        db.change(aged, id=segment["id"])
    service.container.maintenance.trim_results()
    answer = service.get(segment["links"]["csv"])
    assert (answer.status_code, answer.json()["code"]) == (410, "expired")
    assert answer.json()["detail"].startswith("Results are stored for 30 days.")
    assert service.get(f"/v1/segment/{segment['id']}").json()["status"] == "expired"
    again = service.execute(body(41))
    assert (again["id"], again["cached"]) == (segment["id"], False)
    assert service.get(segment["links"]["csv"]).status_code == 200


def test_an_answer_of_too_many_values_is_507_with_the_numbers(service, monkeypatch):
    monkeypatch.setattr("nbext.engine.dataset.MOST_VALUES", 20)
    answer = service.post("/v1/segment/execute", {**body(7), "limit": 500})
    values = (
        "The answer would have 1,500 values: 500 rows of 3 columns. The service returns at most 20."
    )
    assert (answer.status_code, answer.json()["code"]) == (507, "resource-limit")
    assert (
        answer.json()["detail"]
        == f"{values} Lower the limit to 6, or name fewer tokens and collections."
    )


def test_a_registry_that_cannot_be_read_is_reported_once_and_looked_after_again_later(
    data_dir, tmp_path
):
    running, log = Running(data_dir, tmp_path), io.StringIO()
    container = running.container
    # Not started: its work is done here, and when nobody else does any.
    maintenance = Maintenance(container.segments, container.audit, Log(log), lambda: None)
    adopt = container.segments.scheduler.adopt

    def rename(table: str, to: str) -> None:
        with container.database.write() as db:
            db.change(f"ALTER TABLE {table} RENAME TO {to}")

    try:
        for _ in range(2):
            rename("segments", "away")
            for _ in range(3):
                maintenance._do("adopt", adopt)
            rename("away", "segments")
            maintenance._do("adopt", adopt)
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        assert [(line["event"], line["work"], line["error"]) for line in lines] == [
            ("maintenance failed", "adopt", "StorageError")
        ] * 2
        assert running.execute(body(50))["status"] == "completed"
    finally:
        running.stop()


def test_writing_the_rows_heeds_the_deadline_too_and_leaves_no_file(data_dir, tmp_path):
    class Late(Slow):
        """Answers when the time is over."""

        def ask(
            self, question: Question, *, limit: int, cancel: Cancel | None = None
        ) -> QueryResult:
            answer = self.real.ask(question, limit=limit)
            while cancel.reason() is None:
                time.sleep(0.01)
            return answer

    running = Running(
        data_dir, tmp_path, Limits(query_seconds=0.1), dataset=Late(open_dataset(data_dir))
    )
    try:
        answer = running.post("/v1/segment/execute", body(1))
        assert (answer.status_code, answer.json()["code"]) == (504, "query-timeout")
        assert list((tmp_path / "results").glob("*.arrow")) == []
    finally:
        running.stop()


def test_the_least_recently_used_results_go_when_all_together_are_too_big(data_dir, tmp_path):
    running = Running(data_dir, tmp_path)
    try:
        kept = [running.execute(body(number)) for number in (1, 2, 3)]
        running.container.maintenance.trim_results()
        files = sorted(
            (tmp_path / "results").glob("*.arrow"), key=lambda path: path.stat().st_mtime
        )
        # Requests and previews count, too.
        together = running.container.segments.store.stored_bytes()
        assert together > sum(path.stat().st_size for path in files) + 3 * len(
            json.dumps(kept[0]["filters"])
        )
        running.container.database.set_policy(Policy(keep_bytes=together - 1))
        running.container.maintenance.trim_results()
        statuses = [running.get(segment["links"]["self"]).json()["status"] for segment in kept]
        assert statuses == ["expired", "completed", "completed"]
        gone = "The result was deleted to make room for newer ones. Execute the segment again for a new one."
        assert running.get(kept[0]["links"]["csv"]).json()["detail"] == gone
        assert sorted((tmp_path / "results").glob("*.arrow")) == sorted(files[1:])
    finally:
        running.stop()


def test_results_give_way_as_soon_as_newer_ones_are_stored(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.service.segments.maintenance._FIRST_ROUND", 3600.0)
    running = Running(data_dir, tmp_path, policy={"keep_bytes": 30_000, "key_bytes": 30_000})
    try:
        for number in range(12):
            assert running.execute(body(100 + number))["status"] == "completed"
        eventually(lambda: running.container.segments.store.stored_bytes() <= 30_000)
        files = sum(path.stat().st_size for path in (tmp_path / "results").glob("*.arrow"))
        assert 0 < files <= 30_000
    finally:
        running.stop()


def test_no_segment_has_more_wallets_than_its_plan_says_at_most(service):
    few = service.execute({**HOLDERS, "limit": 3})
    rows = service.get(few["links"]["json"]).json()["data"]
    some = {"wallet": {"in": [row["address"] for row in rows]}}
    held, nft = HOLDERS["filters"], {"nft": {"nft": "BAYC"}}
    active = {"activity": {"transfers": {"min": 1}}}
    for filters, known in (
        (held, True),
        ({**held, **nft}, True),
        ({"any": [held, nft, some]}, True),
        ({"segment": {"id": few["id"]}}, True),
        (some, True),
        ({**active, **nft}, True),
        (active, False),
        ({"not": held}, False),
        ({"any": [held, active]}, False),
        ({"token": {"token": "USDC", "balance": {"min": "0"}}}, False),
        ({**held, "asOf": "2025-06-01"}, False),
    ):
        asked = {"filters": filters, "limit": 0}
        with service.container.generations.acquire() as data:
            planner = service.container.segments.planner(data, None, Cancel())
            most = planner.plan(asked).whole.most()
        assert (most is not None) == known, filters
        matched = service.execute(asked)["counts"]["matched"]
        assert most is None or 0 < matched <= most, filters


def test_a_plan_is_made_again_for_other_data_and_for_what_names_a_segment_or_a_list(
    service, data_dir
):
    few = service.execute({**HOLDERS, "limit": 4})
    rows = service.get(few["links"]["json"]).json()["data"]
    sent = b"".join(bytes.fromhex(row["address"][2:]) for row in rows)
    kind = {"Content-Type": "application/octet-stream"}
    listed = service.session.post(f"{service.url}/lists", data=sent, headers=kind, timeout=60)
    plain = {"filters": {"token": {"token": "USDC", "balance": {"min": "7"}}}, "limit": 5}
    naming = [
        {"filters": {"segment": {"id": few["id"]}}},
        {"filters": {"wallet": {"in": few["id"]}}},
        {"filters": {"wallet": {"list": listed.json()["id"]}}},
    ]
    for one in (plain, *naming):
        service.execute(one)
    with service.container.generations.acquire() as data:
        assert [plan_known(service, data, one) is None for one in (plain, *naming)] == [0, 1, 1, 1]
        assert plan_known(service, data, {**plain, "limit": 6}) is None
        again = service.execute(plain)
        assert (again["cached"], again["filters"]) == (True, plain["filters"])
    with contextlib.closing(open_dataset(data_dir)) as other:
        assert plan_known(service, other, plain) is None


def test_an_answer_that_is_kept_is_given_while_its_segment_has_its_result_and_to_whom_it_is_of(
    service,
):
    asked = {**HOLDERS, "limit": 19}
    same = {**asked, "filters": {"token": {"token": USDC, "balance": {"min": "1"}}}}
    made, *again = [service.execute(asked) for _ in range(4)]
    assert again == [{**made, "cached": True}] * 3
    with service.container.generations.acquire() as data:
        assert plan_known(service, data, asked).answer
    for _ in range(3):
        assert service.execute(same) == {**again[0], "filters": same["filters"]}
        assert service.execute(asked) == again[0]
    secret = service.container.keys.add("secret", private=True)[1].reveal()
    own = [service.execute(asked, headers={"x-api-key": secret}) for _ in range(4)]
    assert {each["id"] for each in own} == {own[0]["id"]} != {made["id"]}
    assert [each["cached"] for each in own] == [False, True, True, True]
    assert service.execute(asked) == again[0]
    claim = {"Idempotency-Key": "kept-0"}
    for replayed in (None, "true"):
        answer = service.post("/v1/segment/execute", asked, headers=claim)
        assert answer.headers.get("Idempotency-Replayed") == replayed
    service.delete(f"{made['links']['self']}?result=delete")
    assert [service.execute(asked)["cached"] for _ in range(3)] == [False, True, True]
    service.container.segments.results.folder.joinpath(
        service.container.segments.store.get(made["id"]).result.file
    ).unlink()
    assert service.execute(asked)["cached"] is False


@pytest.mark.slow
def test_an_explanation_that_a_service_does_not_wait_for_at_its_end_is_answered_and_ends_too(slow):
    before = set(threading.enumerate())
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(slow.post, "/explain", {**body(1), "parts": True})
        assert slow.dataset.asked.acquire(timeout=30)
        # As long as uvicorn waits for those that it answers.
        slow.server.config.timeout_graceful_shutdown = 0
        slow.server.should_exit = True
        answer = told.result()
    assert (answer.status_code, answer.json()["detail"]) == (
        503,
        "The service is stopping. Try again soon.",
    )
    # Else the process would wait for it, for as long as a query may take.
    eventually(lambda: not set(threading.enumerate()) - before)


@pytest.mark.slow
def test_a_service_that_ends_tells_its_waiting_callers_where_to_ask(data_dir, tmp_path):
    running = Running(data_dir, tmp_path, dataset=Slow(open_dataset(data_dir)))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(running.post, "/v1/segment/execute", body(1))
        eventually(lambda: running.container.segments.scheduler.running)
        running.server.should_exit = True
        answer = waiting.result(timeout=20)
    running.stop()
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    assert answer.headers["Location"] == f"/v1/segment/{answer.json()['id']}"


def test_a_new_segment_is_three_changes_of_the_registry_and_is_answered_without_another_look(
    data_dir, tmp_path
):
    running = Running(data_dir, tmp_path, policy={"audit_days": 0})
    try:
        running.execute()
        ran: list[tuple[str, str]] = []

        def note(statement: str) -> None:
            ran.append((threading.current_thread().name, statement.split(maxsplit=1)[0]))

        trace(running.container.database, note)
        running.execute({**HOLDERS, "limit": 51})
        trace(running.container.database, None)
    finally:
        running.stop()
    # A thread that has nothing to run looks for the next one by itself, and maintenance while something runs.
    words = [
        word
        for thread, word in ran
        if thread != "nbext-maintenance"
        and (not thread.startswith("nbext-job-") or word != "SELECT")
    ]
    assert words == [
        "SELECT",  # is it there?
        *("PRAGMA", "BEGIN"),
        "SELECT",
        "SELECT",
        "INSERT",
        "COMMIT",  # entered
        *("PRAGMA", "BEGIN"),
        "UPDATE",
        "COMMIT",  # begun
        *("PRAGMA", "BEGIN"),
        "UPDATE",
        "COMMIT",  # completed
    ]


def test_a_segment_waits_for_the_disk_before_its_id_is_told_and_where_it_is_awaited_with_its_result(
    slow,
):
    synchronous, changes = dict[str, str](), list[str]()

    def note(statement: str) -> None:
        thread, (word, *rest) = threading.current_thread().name, statement.split()
        if word == "PRAGMA":
            synchronous[thread] = rest[-1]
        elif word in ("INSERT", "UPDATE") and thread != "nbext-maintenance":
            told = rest[2] if word == "UPDATE" else rest[1]
            changes.append(f"{synchronous[thread]} {word} {told}")

    trace(slow.container.database, note)
    assert begin(slow).status_code == 202
    eventually(lambda: slow.container.segments.scheduler.running)
    assert sorted(changes) == [
        "FULL UPDATE used_at",
        "NORMAL INSERT segments",
        "NORMAL UPDATE status",  # it runs
    ]
    slow.dataset.go.set()
    slow.execute(body(1))
    changes.clear()
    slow.execute(body(2))
    assert changes == ["NORMAL INSERT segments", "NORMAL UPDATE status", "FULL UPDATE status"]
    changes.clear()
    again = slow.post("/v1/segment/execute", body(2), headers={"Idempotency-Key": "call"})
    trace(slow.container.database, None)
    assert (again.status_code, again.json()["status"]) == (200, "completed")
    assert changes[0] == "NORMAL INSERT idempotency"
    assert "FULL UPDATE used_at" in changes


def test_memory_is_given_back_after_every_answer_of_the_engine(service, monkeypatch):
    class Counted(threading.Event):
        times = 0

        def set(self):
            self.times += 1
            super().set()

    given, freed = threading.Semaphore(0), Counted()
    monkeypatch.setattr("nbext.service.segments.maintenance.give_back_memory", given.release)
    monkeypatch.setattr(service.container.segments.scheduler, "freed", freed)
    asked = {"filters": HOLDERS["filters"]}
    for number, (path, sent) in enumerate(
        (
            ("/explain", asked),
            ("/funnel", asked),
            ("/counts", {"segments": [asked], "counts": [[0]]}),
            ("/holdings", {"wallets": [USDC]}),
            ("/v1/segment/execute", {**HOLDERS, "limit": 77}),
        )
    ):
        assert service.post(path, sent).status_code == 200, path
        eventually(lambda most=number: freed.times > most)
    assert freed.times == 5
    assert given.acquire(timeout=30)


def test_a_stored_answer_is_given_with_the_warnings_of_its_callers_own_words(service):
    zero = {"token": {"token": "USDC", "balance": {"min": "0"}}}
    worded = [{"filters": one, "limit": 10} for one in (zero, {"all": [zero]}, zero)]
    found = [service.post("/v1/segment/execute", one).json() for one in worded]
    assert [(one["id"], one["cached"]) for one in found] == [
        (found[0]["id"], cached) for cached in (False, True, True)
    ]
    assert [one["warnings"][0].partition(":")[0] for one in found] == [
        "/filters/token/balance/min",
        "/filters/all/0/token/balance/min",
        "/filters/token/balance/min",
    ]


def test_an_answer_of_nobody_explains_itself_in_its_callers_own_words(service, slow):
    nobody = {"token": {"token": "USDC", "balance": {"min": "1000000000000"}}}
    dated = {"filters": {**nobody, "activity": {"last": {"after": "1d"}}}}
    explained = service.post("/explain", dated).json()
    activity = explained["canonical"]["filters"]["activity"]
    numbered = {"filters": {**nobody, "activity": activity}}
    said = {}
    for written in ("1d", "number"):
        words = service.post("/explain", dated if written == "1d" else numbered).json()
        said[written] = words["words"].removeprefix("wallets that ").partition(" and ")[2]
    assert said["1d"] != said["number"]

    def last_words(answer):
        lines = answer.json()["warnings"]
        assert [line.partition(".")[0] for line in lines] == [
            "No wallet matches",
            "Together, in this order: 0: nobody is left with "
            '"hold at least 1,000,000,000,000 USDC on ethereum"',
        ]
        return lines[0].removesuffix(".").partition("; ")[2].partition(" ")[2]

    for first, second in ((dated, numbered), (numbered, dated)):
        answers = [service.post("/v1/segment/execute", one) for one in (first, second)]
        expected = [said["1d" if one is dated else "number"] for one in (first, second)]
        assert [last_words(one) for one in answers] == expected
        assert answers[1].json()["cached"]
    # Also who joins one that is under way.
    waiting = {"Prefer": "wait=0"}
    accepted = slow.post("/v1/segment/execute", dated, headers=waiting)
    assert accepted.status_code == 202
    slow.dataset.go.set()
    assert last_words(slow.post("/v1/segment/execute", numbered)) == said["number"]
    # Of whoever reads it nobody knows the words: it is told in the segment's.
    path = accepted.json()["links"]["self"]
    assert last_words(slow.get(path)) == said["number"]
    assert last_words(slow.post("/v1/segment/execute", dated)) == said["1d"]
