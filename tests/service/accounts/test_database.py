"""Threads that write at the same time do so in turn, and none is told that its part is stored before it is."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from nbext.errors import ConfigError, StorageError
from nbext.service.accounts import audit
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key, KeyRing, Rates, digest_of, parse_rate
from nbext.service.problems import Problem
from tests.service import postgres
from tests.service.conftest import Running, trace


class Counted(Database):
    """A database that notes its commits, and in which threads can be held inside their part."""

    def __init__(self, path):
        self.commits = 0
        self.inside = threading.Semaphore(0)
        super().__init__(path)
        trace(self, self._note)

    def _note(self, statement: str) -> None:
        self.commits += statement == "COMMIT"

    def sign(self, address: str, leave: Future[None] | None = None) -> str:
        with self.write() as db:
            db.add("signups", [{"address": address, "email": address, "consented_at": 0.0}])
            self.inside.release()
            if leave:
                leave.result(timeout=20)
        return address

    def signed(self) -> list[str]:
        return [row.address for row in self.rows("SELECT address FROM signups ORDER BY address")]


@pytest.fixture
def database(tmp_path):
    database = Counted(tmp_path / "registry.sqlite")
    database.commits = 0
    yield database
    database.close()


def test_an_error_of_python_s_own_module_is_not_told_as_damage_of_the_file(database):
    with pytest.raises(sqlite3.ProgrammingError, match="nobody"), database.write() as db:
        db.change("DELETE FROM signups WHERE address = :nobody")


def test_a_flush_of_the_audit_log_ends_when_all_that_was_noted_before_is_written(database):
    log = audit.Audit(database)
    log.note("key.add")
    with ThreadPoolExecutor(2) as pool:
        with database.write():
            first = pool.submit(log.flush)
            while log._waiting:
                time.sleep(0.01)
            second = pool.submit(log.flush)
            assert wait([second], timeout=0.3).done == set()
        first.result(20), second.result(20)
    assert [row.action for row in log.entries()] == ["key.add"]


def test_notes_of_the_audit_log_wait_until_the_registry_can_be_written(database):
    log = audit.Audit(database)
    for action in ("execute", "export"):
        log.note(action, key_id="k", target="sg", client=None)
    with database.write() as db:
        db.change("ALTER TABLE audit RENAME TO away")
    with pytest.raises(StorageError):
        log.flush()
    with database.write() as db:
        db.change("ALTER TABLE away RENAME TO audit")
    log.flush()
    log.flush()
    assert [row.action for row in log.entries()] == ["execute", "export"]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(16) as pool:
        yield pool


def test_writers_that_come_while_one_is_at_work_are_each_committed_after_it(database, pool):
    leave: Future[None] = Future()
    first = pool.submit(database.sign, "0", leave)
    assert database.inside.acquire(timeout=20)
    others = [pool.submit(database.sign, str(number)) for number in range(1, 9)]
    assert not database.inside.acquire(timeout=0.1), "one at a time"
    leave.set_result(None)
    assert (
        [each.result(timeout=20) for each in (first, *others)]
        == database.signed()
        == list("012345678")
    )
    assert database.commits == 9
    database.sign("9")
    assert database.commits == 10


def test_a_connection_is_used_again_and_again(database):
    opened, connect = [], database._place.connect
    database._place.connect = lambda: opened.append(1) or connect()
    for number in range(5):
        database.sign(str(number))
        assert len(database.signed()) == number + 1
    assert opened == []


def test_nobody_goes_on_before_its_part_is_on_the_disk(database, pool):
    leave: Future[None] = Future()
    first = pool.submit(database.sign, "a", leave)
    assert database.inside.acquire(timeout=20)
    second = pool.submit(database.sign, "b")
    assert (first.done(), second.done(), database.signed(), database.commits) == (
        False,
        False,
        [],
        0,
    )
    leave.set_result(None)
    assert (first.result(timeout=20), second.result(timeout=20), database.signed()) == (
        "a",
        "b",
        ["a", "b"],
    )


def test_a_part_that_fails_takes_nothing_of_the_others_with_it(database, pool):
    leave: Future[None] = Future()
    first = pool.submit(database.sign, "a", leave)
    assert database.inside.acquire(timeout=20)
    others = [pool.submit(database.sign, address) for address in ("a", "b", "a", "c")]
    leave.set_result(None)
    errors = [each.exception(timeout=20) for each in (first, *others)]
    assert [type(error) for error in errors] == [
        type(None),
        sqlite3.IntegrityError,
        type(None),
        sqlite3.IntegrityError,
        type(None),
    ]
    assert database.signed() == ["a", "b", "c"]


def test_where_the_whole_transaction_breaks_its_writer_is_told_and_the_next_is_stored(
    database, pool
):
    def spoil() -> None:
        with database.write() as db:
            db.add("signups", [{"address": "a", "email": "a", "consented_at": 0.0}])
            db.change("ROLLBACK")  # as SQLite does by itself where the disk is full
            raise sqlite3.OperationalError("database or disk is full")

    def ended() -> None:
        with database.write() as db:
            db.change("ROLLBACK")

    assert "disk is full" in str(pool.submit(spoil).exception(timeout=20))
    assert isinstance(pool.submit(ended).exception(timeout=20), StorageError), (
        "what was lost is an error"
    )
    assert database.signed() == []
    database.sign("b")
    assert database.signed() == ["b"]


def test_a_transaction_waits_for_the_disk_in_full_also_after_one_that_need_not(database):
    told = []
    for lasting in (True, False, True):
        with database.write(lasting=lasting) as db:
            names = ("synchronous", "journal_mode")
            told.append([db.rows(f"PRAGMA {name}")[0][0] for name in names])
    assert told == [[2, "wal"], [1, "wal"], [2, "wal"]]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE registry SET number = 9", "9"),
        ("ALTER TABLE registry RENAME TO alembic_version", "none"),
    ],
)
def test_the_registry_of_another_nbext_is_refused_in_one_line_and_left_alone(
    tmp_path, change, found
):
    path = tmp_path / "registry.sqlite"
    Database(path).close()
    with contextlib.closing(sqlite3.connect(path)) as registry:
        registry.execute(change)
        registry.commit()
        before = list(registry.iterdump())
        for make in (True, False):
            with pytest.raises(StorageError) as caught:
                Database(path, make=make)
            assert str(caught.value) == (
                f"registry.sqlite is not a registry of this nbext (version {found}; this one reads 3)."
                " Use the nbext that made it, or name another data folder."
            )
        assert list(registry.iterdump()) == before


def test_an_empty_file_becomes_a_registry_only_where_one_may_be_made(tmp_path):
    path = tmp_path / "registry.sqlite"
    path.touch()
    with pytest.raises(
        StorageError, match=r"registry\.sqlite has no tables\. It is not a registry"
    ):
        Database(path, make=False)
    for make in (True, False):
        with contextlib.closing(Database(path, make=make)) as database:
            assert database.id


def test_many_that_open_a_new_registry_at_once_make_it_once(tmp_path, pool):
    opened = list(pool.map(Database, [tmp_path / "registry.sqlite"] * 8))
    with opened[0].write() as db:
        db.change("UPDATE keys SET rate = NULL")
        assert len(db.rows("SELECT * FROM registry")) == 1
    for each in opened:
        each.close()


def test_the_audit_log_is_read_some_at_a_time_whatever_the_registry(registry, monkeypatch):
    monkeypatch.setattr(audit, "_BATCH", 2)
    with contextlib.closing(Database(registry)) as database:
        log = audit.Audit(database)
        for number in range(5):
            log.note("segment.execute", key_id="ab"[number % 2], target=str(number), client=None)
        log.flush()
        assert [each.target for each in log.entries()] == ["0", "1", "2", "3", "4"]
        assert [each.target for each in log.entries(key_ids=["b"])] == ["1", "3"]


def test_a_rate_that_cannot_be_stored_is_counted_in_memory(tmp_path):
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        # As on a full disk: the connection, which is used again, reads and does not write.
        with database._lent() as db:
            db.change("PRAGMA query_only = 1")
        rates, key = Rates(database), Key("a", "a", rate="45/year")
        for _ in range(45):
            if not rates.spend(key):
                rates.take(key)
        assert not rates.spend(key)
        with pytest.raises(Problem, match="This key may send 45/year requests") as caught:
            rates.take(key)
        # The rest of the year, whose last second this is not.
        assert 1 < int(caught.value.headers["Retry-After"]) <= 366 * 24 * 3600


def test_the_window_before_counts_for_the_part_of_it_that_is_less_than_a_window_ago(
    tmp_path, monkeypatch
):
    key, granted = Key("a", "a", rate="100/minute"), 0
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        rates = Rates(database)
        database.change("INSERT INTO rates VALUES ('a', 600.0, 80, 0)")
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        monkeypatch.setattr("nbext.service.accounts.keys._EPOCH", 675.0)
        for _ in range(50):
            with contextlib.suppress(Problem):
                if not rates.spend(key):
                    rates.take(key)
                granted += 1
    # A quarter of the window has passed: three quarters of the 80 count.
    assert granted == 40


# What the first took before it knew of a clock ahead of its own was of an earlier window.
@pytest.mark.parametrize(("ahead", "allowed"), [(0.5, 40), (3.0, 42), (-7200.0, 40)])
def test_two_services_whose_clocks_differ_grant_one_rate_together(
    tmp_path, monkeypatch, ahead, allowed
):
    """As on two machines, on one that slept, or whose clock was set back before the second service began."""
    key, epoch, granted = Key("a", "a", rate="40/second"), 1e9 + 0.4, 0
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        both = [(Rates(database), epoch), (Rates(database), epoch + ahead)]
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        for _ in range(100):
            for rates, clock in both:
                monkeypatch.setattr("nbext.service.accounts.keys._EPOCH", clock)
                with contextlib.suppress(Problem):
                    if not rates.spend(key):
                        rates.take(key)
                    granted += 1
    assert granted == allowed


def test_no_two_keys_have_the_same_text(registry):
    with contextlib.closing(Database(registry)) as database:
        ring = KeyRing(database)
        _, text = ring.add("a")
        ring.add("b")
        same = "UPDATE keys SET digest = :digest WHERE name = 'b'"
        with pytest.raises(database._place.error):
            database.change(same, digest=digest_of(text.reveal()))
        assert ring.find(text.reveal()).name == "a"


def test_what_sqlite_finds_wrong_is_told_where_every_row_can_be_read(tmp_path):
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        assert database.damage() is None
        with contextlib.closing(sqlite3.connect(database.path)) as raw:
            raw.execute("CREATE TABLE more (number INTEGER CHECK (number > 0))")
            raw.execute("PRAGMA ignore_check_constraints = ON")
            raw.execute("INSERT INTO more VALUES (-1)")
            raw.commit()
        assert database.damage() == "CHECK constraint failed in more"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed by Linux")
def test_a_file_that_is_no_registry_is_closed_again(tmp_path):
    path = tmp_path / "registry.sqlite"
    path.write_text("no database, whatever its name says\n" * 100)
    with pytest.raises(StorageError) as caught:
        Database(path)
    assert caught.value is not None
    assert [one for one in Path("/proc/self/fd").iterdir() if one.resolve() == path] == []


def test_a_key_that_was_looked_up_is_known_without_the_registry_and_no_other(tmp_path):
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        ring = KeyRing(database)
        key, text = ring.add("a")
        assert ring.known(text.reveal()) is None
        assert ring.find(text.reveal()) == ring.known(text.reveal()) == key
        assert ring.find("another") is ring.known("another") is None


def test_a_rate_is_a_number_of_requests_in_one_span():
    for text, rate in (
        ("600/minute", (600, 60)),
        ("5/day", (5, 86_400)),
        # What former versions stored with a key.
        ("600/Minute", (600, 60)),
        ("10 per second", (10, 1)),
        ("100/2 minutes", (100, 120)),
        ("10 per 2 minutes", (10, 120)),
    ):
        assert parse_rate(text) == rate, text
    for text in ("0/minute", "10/0 minutes", "10perminute", "10/minute/hour", "10", ""):
        with pytest.raises(ConfigError, match=r"is not a rate\. Write 600/minute"):
            parse_rate(text)


def test_a_rate_is_granted_in_parts_and_no_request_more_or_less(tmp_path):
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        rates, key, taken = Rates(database), Key("a", "a", rate="40/hour"), []
        for _ in range(40):
            if not rates.spend(key):
                rates.take(key)
                taken.append(1)
        assert len(taken) == 20
        with pytest.raises(Problem, match="may send 40/hour"):
            rates.take(key)


def test_each_registry_has_an_id_of_its_own_and_for_good(tmp_path):
    ids = []
    for name in ("one.sqlite", "two.sqlite", "one.sqlite"):
        with contextlib.closing(Database(tmp_path / name)) as database:
            ids.append(database.id)
    assert ids[0] == ids[2] != ids[1]
    assert all(len(one) >= 16 for one in ids)


def test_a_key_lasts_from_now_on(tmp_path):
    with contextlib.closing(Database(tmp_path / "registry.sqlite")) as database:
        before = time.time()
        key, _ = KeyRing(database).add("a", lasts=3600)
        assert before + 3600 <= key.expires_at <= time.time() + 3600


@pytest.mark.postgres
def test_a_registry_that_cannot_be_reached_is_said_once_and_answered_with_503(
    server, data_dir, tmp_path
):
    with postgres.new_database(server) as url:
        running = Running(data_dir, tmp_path / "service", registry=url)
        try:
            assert running.get("/v1/segment/none").status_code == 404
            name = url.rpartition("/")[2]
            postgres.run(server, f"DROP DATABASE {name} WITH (FORCE)")
            answers = [
                running.get("/v1/segment/none"),
                running.get("/about", headers={"x-api-key": "of-no-key-at-all"}),
            ]
            assert [
                (each.status_code, each.json()["code"], each.headers["Retry-After"])
                for each in answers
            ] == [(503, "registry", "5")] * 2
            look, told = running.container.segments.scheduler._look, []
            for _ in range(3):
                look()
                told.append(
                    [line["cause"] for line in running.lines() if line["event"] == "queue unread"]
                )
            assert told[0] == told[2], "once, and not at each look"
            assert told[0] == [
                "The registry's database cannot be used as the service's registry: OperationalError"
            ]
            postgres.run(server, f"CREATE DATABASE {name}")
        finally:
            running.stop()
