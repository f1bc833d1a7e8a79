"""The queue that all services of a registry share: turns of the keys, bounds, deaths, roles."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from nbext.service.accounts.database import Database, Lent
from nbext.service.accounts.keys import Key, Rates
from nbext.service.limits import Limits, Policy
from nbext.service.problems import Problem
from nbext.service.segments.results import ResultFile
from nbext.service.segments.store import WITHOUT_RESULT, SegmentRecord, SegmentStore

DATA = "a-fingerprint"
WHY = {"code": "cancelled", "detail": "why"}


@pytest.fixture
def store(registry) -> Iterator[SegmentStore]:
    with contextlib.closing(Database(registry)) as database:
        yield SegmentStore(database)


def enter(
    store: SegmentStore, name: str, key: str, *, limit: int = 10, limits: Limits | None = None
) -> SegmentRecord:
    return store.enqueue(
        name, {"limit": limit}, {}, DATA, key=Key(key, key), limits=limits or Limits()
    )


def order(store: SegmentStore, **options) -> list[str]:
    started = []
    while segment := store.start("a-lease", [DATA], **options):
        started.append(segment.id)
    return started


def test_keys_take_turns_however_many_segments_each_has(store):
    for number in range(4):
        enter(store, f"a{number}", "a")
    enter(store, "b0", "b")
    first = store.start("a-lease", [DATA])
    # Whoever comes now takes a turn with the head of the queue, and not behind it.
    for name in ("b1", "c0", "c1"):
        enter(store, name, name[0])
    assert [first.id, *order(store)] == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "a3"]


def test_a_count_goes_before_the_other_segments_of_its_key(store):
    for number in range(3):
        enter(store, f"rows{number}", "a")
    enter(store, "count", "a", limit=0)
    assert order(store) == ["count", "rows0", "rows1", "rows2"]


def test_only_segments_of_the_data_that_is_served_and_of_no_busy_key_are_taken(store):
    enter(store, "a0", "a")
    enter(store, "b0", "b")
    assert store.start("a-lease", ["other-data"]) is None
    assert order(store, busy=["a"]) == ["b0"]
    assert order(store) == ["a0"]
    enter(store, "a1", "a")
    store.fail_of_other_data(["other-data"], before=2**40, why=WHY)
    assert (store.get("a0").status, store.get("a1").status, store.get("a1").error) == (
        "running",
        "failed",
        WHY,
    )


def test_bounds_hold_for_all_services_together(registry, store):
    limits = Limits(queue=6, per_key=4)
    with contextlib.closing(Database(registry)) as another, ThreadPoolExecutor(8) as pool:
        stores = [store, SegmentStore(another)]

        def ask(number: int) -> str:
            try:
                enter(stores[number % 2], f"{number}", f"key {number % 3}", limits=limits)
            except Problem as problem:
                return problem.code
            return "entered"

        told = list(pool.map(ask, range(24)))
        assert (told.count("entered"), store.queued()) == (6, 6)
        for name in order(store):
            store.end(name, "a-lease", "failed", None)
        told = [ask(number * 3) for number in range(30, 36)]
        assert told == ["entered"] * 4 + ["too-many-segments"] * 2


def test_one_segment_is_entered_and_taken_once_by_however_many_services(registry, store):
    with contextlib.closing(Database(registry)) as another, ThreadPoolExecutor(8) as pool:
        stores = [store, SegmentStore(another)] * 8
        assert len(set(pool.map(lambda each: enter(each, "one", "a").created_at, stores))) == 1
        taken = list(
            pool.map(
                lambda numbered: numbered[1].start(f"lease {numbered[0]}", [DATA]),
                enumerate(stores),
            )
        )
        assert [segment.id for segment in taken if segment] == ["one"]


def test_a_claim_is_one_segment_in_however_many_services(registry, store):
    claim = store.claim("again", Key("a", "a"), {"limit": 1})
    with contextlib.closing(Database(registry)) as another, ThreadPoolExecutor(8) as pool:
        stores = [store, SegmentStore(another)] * 4

        def ask(each: SegmentStore) -> float:
            return each.enqueue(
                "one", {"limit": 1}, {}, DATA, key=Key("a", "a"), limits=Limits(), claim=claim
            ).created_at

        assert len(set(pool.map(ask, stores))) == 1
        again = [each.claim("again", Key("a", "a"), {"limit": 1}) for each in stores]
        assert {each.segment for each in again} == {"one"}
    with pytest.raises(Problem, match="another body"):
        store.claim("again", Key("a", "a"), {"limit": 2})


def test_deaths_are_counted_and_orderly_ends_are_not(store):
    enter(store, "one", "a")
    assert store.start("first", [DATA]).attempts == 1
    assert store.requeue("one", "first", killed=False)
    assert store.start("second", [DATA]).attempts == 1
    assert store.requeue("one", "second", killed=True)
    assert not store.requeue("one", "second", killed=True), "another was quicker"
    assert store.start("third", [DATA]).attempts == 2
    assert (store.get("one").key_id, store.get("one").lease) == ("a", "third")


def test_a_segment_that_waits_is_cancelled_by_any_service_and_one_that_runs_by_its_own(store):
    enter(store, "runs", "a")
    store.start("a-lease", [DATA])
    enter(store, "waits", "a")
    assert [store.cancel(name) for name in ("waits", "runs", "none")] == [True, True, False]
    assert (store.get("waits").status, store.get("runs").status) == ("cancelled", "running")
    assert sorted(store.unsettled(["waits", "runs", "none"])) == [("runs", True), ("waits", False)]
    store.end("runs", "a-lease", "cancelled", WHY)
    assert not store.cancel("runs")


@pytest.mark.parametrize("killed", [True, False])
def test_what_was_to_be_cancelled_ends_so_and_is_not_run_again_when_its_service_ends(store, killed):
    enter(store, "one", "a")
    store.start("a-lease", [DATA])
    assert store.cancel("one")
    assert not store.requeue("one", "another-lease", killed=killed)
    assert store.get("one").status == "running"
    assert not store.requeue("one", "a-lease", killed=killed)
    assert (store.get("one").status, store.get("one").error["code"]) == ("cancelled", "cancelled")
    assert order(store) == []


def test_a_result_is_completed_by_the_service_that_runs_it(store):
    enter(store, "one", "a")
    store.start("a-lease", [DATA])
    file = ResultFile("f.arrow", 7, "hash")
    done = {"matched": 2, "returned": 1, "preview": [{"n": "1"}], "result": file, "facts": {}}
    assert not store.complete("one", "another-lease", **done)
    assert store.complete("one", "a-lease", **done)
    found = store.get("one")
    assert (found.status, found.matched, found.preview, found.result) == (
        "completed",
        2,
        [{"n": "1"}],
        done["result"],
    )
    assert enter(store, "one", "b") == found, "it is there"
    assert (store.expire([file], WHY), store.expire([file], WHY)) == ({"one": "f.arrow"}, {})
    enter(store, "one", "b")  # it is made anew
    assert (store.get("one").status, store.get("one").key_id, store.get("one").error) == (
        "queued",
        "b",
        None,
    )


def test_a_key_whose_results_take_too_much_room_is_told_so_and_others_are_not(store):
    store._database.set_policy(Policy(key_bytes=100))
    for number, key in enumerate(("full", "owner", "other")):
        enter(store, f"{number}", key)
        store.start("a-lease", [DATA])
        # The request, the preview and the rest of the answer have 16 bytes more.
        result = ResultFile(f"{number}.arrow", 84 if key != "other" else 83, "hash")
        assert store.complete(
            f"{number}", "a-lease", matched=1, returned=1, preview=[], result=result, facts={}
        )
    with pytest.raises(Problem) as caught:
        enter(store, "more", "full")
    assert (caught.value.code, caught.value.status) == ("quota", 507)
    assert enter(store, "0", "full").status == "completed", "what is there is found"
    enter(store, "more", "owner")
    enter(store, "other", "other")
    store.expire([ResultFile("0.arrow", 84, "hash")], WHY)
    enter(store, "room", "full")
    # Its request has 28 bytes, and 440 are reserved for its ten rows.
    store._database.set_policy(Policy(key_bytes=468))
    with pytest.raises(Problem, match="take 468 bytes, and may take 468"):
        enter(store, "still more", "full")


def test_no_more_room_is_reserved_than_the_largest_answer_takes(store):
    store._database.set_policy(Policy(key_bytes=3 * 10**9))
    facts, key = {"columns": ["address", *["balance"] * 400]}, Key("a", "a")
    for number in range(2):
        # A million rows of 401 columns are refused when they are counted: 249,376 are the most, of 8,064 bytes.
        store.enqueue(f"{number}", {"limit": 1_000_000}, facts, DATA, key=key, limits=Limits())
    with pytest.raises(Problem, match=r"take 4,021,9\d\d,\d{3} bytes"):
        store.enqueue("third", {"limit": 1}, facts, DATA, key=key, limits=Limits())


def test_room_is_reserved_for_accepted_segments_and_settled_when_they_end(store):
    store._database.set_policy(Policy(key_bytes=100_000))
    facts, key = {"columns": ["address", "balance"]}, Key("a", "a")

    def accepted(name: str, limit: int = 500) -> bool:
        with contextlib.suppress(Problem):
            store.enqueue(name, {"limit": limit}, facts, DATA, key=key, limits=Limits())
            return True
        return False

    # 500 rows of two columns may take 42,000 bytes.
    assert [accepted(f"{number}") for number in range(24)] == [True] * 3 + [False] * 21
    assert accepted("a count", limit=0) is False
    store.start("a-lease", [DATA])
    done = {"matched": 2, "returned": 1, "preview": [], "facts": {}}
    store.complete("0", "a-lease", result=ResultFile("f.arrow", 7, "hash"), **done)
    assert (accepted("after one is written"), accepted("more")) == (True, False)
    assert store.cancel("1")
    store.start("a-lease", [DATA])
    store.end("2", "a-lease", "failed", WHY)
    store.fail_of_other_data(["other-data"], before=2**40, why=WHY)
    assert store.stored_bytes() < 1_000


def test_room_is_reserved_of_what_all_keys_may_store_together_and_no_more_than_holders_take(store):
    store._database.set_policy(Policy(keep_bytes=100_000))
    facts = {"columns": ["address", "balance"]}

    def accepted(name: str, **options: int) -> bool:
        with contextlib.suppress(Problem):
            key, limits = Key(name, name), Limits()
            store.enqueue(name, {"limit": 500}, facts, DATA, key=key, limits=limits, **options)
            return True
        return False

    # 500 rows of two columns may take 42,000 bytes: each of these is of another key.
    assert [accepted(f"{number}") for number in range(24)] == [True] * 3 + [False] * 21
    with pytest.raises(Problem, match=r"may take 126,\d{3} bytes, of 100,000 in all") as caught:
        store.enqueue("more", {"limit": 0}, {}, DATA, key=Key("owner", "owner"), limits=Limits())
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "2"})
    for name in order(store):
        store.end(name, "a-lease", "failed", None)
    assert [accepted(f"few {number}", most=3) for number in range(24)] == [True] * 24


def test_a_keys_idempotency_keys_of_a_day_are_bounded(store, monkeypatch):
    monkeypatch.setattr("nbext.service.segments.store._MOST_CLAIMS", 3)
    told = []
    for number in range(5):
        claim = store.claim(f"{number}", Key("a", "a"), {})
        with contextlib.suppress(Problem):
            store.enqueue(
                "one", {"limit": 0}, {}, DATA, key=Key("a", "a"), limits=Limits(), claim=claim
            )
            told.append(number)
    assert told == [0, 1, 2]
    assert store.claim("0", Key("a", "a"), {}).segment == "one"


def test_claims_are_forgotten_when_they_are_a_day_old_and_not_before(store, monkeypatch):
    claim, now = store.claim("again", Key("a", "a"), {}), time.time
    store.enqueue("one", {"limit": 0}, {}, DATA, key=Key("a", "a"), limits=Limits(), claim=claim)
    for hours, found in ((23.9, 1), (24.1, 0)):
        monkeypatch.setattr(time, "time", lambda hours=hours: now() + hours * 3600)
        store.forget_old_claims()
        assert store._database.scalar("SELECT count(*) FROM idempotency") == found


def test_a_clock_that_is_set_back_grants_no_part_of_a_rate_again(store, monkeypatch):
    rates, key, now = Rates(store._database), Key("a", "a", rate="30/hour"), time.time

    def granted() -> int:
        count = 0
        with contextlib.suppress(Problem):
            while True:
                if not rates.spend(key):
                    rates.take(key)
                count += 1
        return count

    assert granted() == 30
    for hours in (-48, -1, 48):
        monkeypatch.setattr(time, "time", lambda hours=hours: now() + hours * 3600)
        assert granted() == 0


def test_results_are_listed_deleted_and_forgotten_in_batches(store, monkeypatch):
    former, found, here = Lent.rows, list[int](), threading.get_ident()

    def counted(*values, **options):
        rows = former(*values, **options)
        # Services of other tests in this process look at their own queues.
        if threading.get_ident() == here:
            found.append(len(rows))
        return rows

    names = [f"{number:04}" for number in range(1_203)]
    with store._database.write() as db:
        db.add(
            "segments",
            [
                {
                    "id": name,
                    "status": "completed",
                    "request": "{}",
                    "facts": "{}",
                    "fingerprint": DATA,
                    "created_at": 0,
                    "used_at": number,
                    "file": f"{name}.arrow",
                    "size": 2,
                    "sha256": "",
                    "stored": 6,
                }
                for number, name in enumerate(names)
            ],
        )
    monkeypatch.setattr(Lent, "rows", counted)
    listed = list(store.results())
    assert [segment_id for segment_id, _ in listed] == names
    # The last one finds that there are no more.
    assert found == [500, 500, 203, 0]
    for before, excess in ((2, 0), (0, 7), (2, 12)):
        assert [result.file for result in store.least_used(before, excess)] == [
            "0000.arrow",
            "0001.arrow",
        ]
    assert len(store.least_used(before=1_203, excess=0)) == 500
    assert store.least_used(before=0, excess=0) == []
    assert (store.stored_bytes(), store.unnamed(["0000.arrow", "stray.arrow"])) == (
        7_218,
        {"stray.arrow"},
    )
    store.expire([result for _, result in listed[:700]], WHY)
    assert (store.stored_bytes(), store.get("0000").status, store.get("0000").result) == (
        5_818,
        "expired",
        None,
    )
    found.clear()
    store.forget(before=600)
    # Of each status without a result; each batch is a transaction.
    assert sorted(found) == [0] * (len(WITHOUT_RESULT) - 1) + [100, 500]
    assert [name for name in names if store.get(name) is None] == names[:600]
    # Their requests are 4 bytes each.
    store.forget(before=0, excess=9)
    assert [name for name in names if store.get(name) is None] == names[:603]


def test_a_rate_holds_for_all_services_together(registry):
    key = Key("a", "a", rate="30/hour")
    with (
        contextlib.closing(Database(registry)) as one,
        contextlib.closing(Database(registry)) as two,
    ):
        services = [Rates(one), Rates(two)]

        def ask(number: int) -> bool:
            service = services[number % 2]
            try:
                if not service.spend(key):
                    service.take(key)
            except Problem:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            allowed = sum(pool.map(ask, range(100)))
        assert allowed == 30
        with pytest.raises(Problem) as refused:
            services[0].take(key)
        assert refused.value.code == "rate-limit"
        assert 1 <= int(refused.value.headers["Retry-After"]) <= 3600


def test_one_service_at_a_time_has_a_role(store):
    alive = {"first", "second"}
    assert [store.lead(name, alive.__contains__) for name in ("first", "second", "first")] == [
        True,
        False,
        True,
    ]
    alive.remove("first")
    assert store.lead("second", alive.__contains__)
    assert not store.lead("first", alive.__contains__)
