"""Threads that write at the same time do so in turn, and none is told that its part is stored before it is."""


from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from nbext.service.accounts.database import Database


class Counted(Database):
    """A database that notes its commits, and in which threads can be held inside their part."""

    def __init__(self, path):
        self.commits = 0
        self.inside = threading.Semaphore(0)
        super().__init__(path)

    def _connect(self):
        db = super()._connect()
        db.set_trace_callback(self._note)
        return db

    def _note(self, statement):
        self.commits += statement == "COMMIT"

    def sign(self, address: str, leave: Future[None] | None = None) -> str:
        with self.write() as db:
            db.execute("INSERT INTO signups VALUES (?, ?, 0)", (address, address))
            self.inside.release()
            if leave:
                leave.result(timeout=20)
        return address

    def signed(self) -> list[str]:
        with self.read() as db:
            return [row[0] for row in db.execute("SELECT address FROM signups ORDER BY address")]


@pytest.fixture
def database(tmp_path):
    database = Counted(tmp_path / "registry.sqlite")
    database.commits = 0
    yield database
    database.close()


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
    assert [each.result(timeout=20) for each in (first, *others)] == database.signed() == list("012345678")
    assert database.commits == 9
    database.sign("9")
    assert database.commits == 10


def test_nobody_goes_on_before_its_part_is_on_the_disk(database, pool):
    leave: Future[None] = Future()
    first = pool.submit(database.sign, "a", leave)
    assert database.inside.acquire(timeout=20)
    second = pool.submit(database.sign, "b")
    assert (first.done(), second.done(), database.signed(), database.commits) == (False, False, [], 0)
    leave.set_result(None)
    assert (first.result(timeout=20), second.result(timeout=20), database.signed()) == ("a", "b", ["a", "b"])


def test_a_part_that_fails_takes_nothing_of_the_others_with_it(database, pool):
    leave: Future[None] = Future()
    first = pool.submit(database.sign, "a", leave)
    assert database.inside.acquire(timeout=20)
    others = [pool.submit(database.sign, address) for address in ("a", "b", "a", "c")]
    leave.set_result(None)
    errors = [each.exception(timeout=20) for each in (first, *others)]
    assert [type(error) for error in errors] == [
        type(None), sqlite3.IntegrityError, type(None), sqlite3.IntegrityError, type(None)
    ]
    assert database.signed() == ["a", "b", "c"]


def test_where_the_whole_transaction_breaks_its_writer_is_told_and_the_next_is_stored(database, pool):
    def spoil() -> None:
        with database.write() as db:
            db.execute("INSERT INTO signups VALUES ('a', 'a', 0)")
            db.execute("ROLLBACK")  # as SQLite does by itself where the disk is full
            raise sqlite3.OperationalError("database or disk is full")

    def ended() -> None:
        with database.write() as db:
            db.execute("ROLLBACK")

    assert "disk is full" in str(pool.submit(spoil).exception(timeout=20))
    assert isinstance(pool.submit(ended).exception(timeout=20), sqlite3.OperationalError), "what was lost is an error"
    assert database.signed() == []
    database.sign("b")
    assert database.signed() == ["b"]


def test_a_transaction_waits_for_the_disk_in_full(database):
    with database.write() as db:
        assert (db.execute("PRAGMA synchronous").fetchone()[0], db.execute("PRAGMA journal_mode").fetchone()[0]) == (
            2, "wal"
        )
