"""Stops a service where it is about to use the registry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from nbext.service.accounts.database import Database

# For how long the second operation may wait for the first one, which is stopped, before that goes on (seconds).
PATIENCE = 3.0


class Pausing:
    """While it is entered, `at` stops the thread that is about to use a registry for the n-th time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._left = 0
        self._stopped, self._go_on = threading.Event(), threading.Event()
        self._threads = ThreadPoolExecutor(2)

    def __enter__(self) -> Pausing:
        self._former = Database.rows, Database.write
        rows, write = self._former

        def counted(database: Database, sql: str, **values: Any) -> Any:
            self._step(database)
            return rows(database, sql, **values)

        @contextmanager
        def counting(database: Database, **options: Any) -> Iterator[Any]:
            self._step(database)
            with write(database, **options) as lent:
                yield lent

        Database.rows, Database.write = counted, counting
        return self

    def __exit__(self, *_: object) -> None:
        Database.rows, Database.write = self._former
        self._threads.shutdown()

    def _step(self, database: Database) -> None:
        with self._lock:
            if database is not self._database:
                return
            self._left -= 1
            if self._left:
                return
            self._database = None
            self._stopped.set()
        self._go_on.wait(2 * PATIENCE)

    def at(
        self, number: int, database: Database, first: Callable[[], Any], second: Callable[[], Any]
    ) -> tuple[Any, Any] | None:
        """Return what both operations return, the second one run within the first.

        None where the first has ended by then.
        """
        self._stopped.clear()
        self._go_on.clear()
        self._left, self._database = number, database
        one = self._threads.submit(first)
        while not self._stopped.wait(0.01):
            if one.done() and not self._stopped.wait(0.05):
                with self._lock:
                    self._database = None
                if not self._stopped.is_set():
                    return None
        two = self._threads.submit(second)
        try:
            two.exception(PATIENCE)
        except TimeoutError:
            pass
        finally:
            self._go_on.set()
        return one.result(), two.result()
