"""A form's requests, off the main thread: one at a time, and of those that wait only the latest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# A thread without work ends after this many seconds; the next request starts another.
IDLE = 30.0
Task = Callable[[], None]


class Background:
    """Runs one task at a time in a thread of its own.

    A task that waits (for the one before it, or for its delay) is replaced by the next one asked for: typing
    fast, or a slow service, never lines requests up. What a task raises goes to ``failed``.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: tuple[float, Task] | None = None
        self._running = False
        self._thread: threading.Thread | None = None

    def ask(self, task: Task, *, after: float = 0.0) -> None:
        """Run the task, in ``after`` seconds at the earliest, instead of any that still waits."""
        with self._changed:
            self._waiting = (time.monotonic() + after, task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="nbext-form")
                self._thread.start()
            self._changed.notify_all()

    def hurry(self) -> None:
        """Let the task that waits for its delay, if any, run now."""
        with self._changed:
            if self._waiting is not None:
                self._waiting = (0.0, self._waiting[1])
                self._changed.notify_all()

    def drop(self) -> None:
        """Forget the task that waits, if any."""
        with self._changed:
            self._waiting = None
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Wait until nothing waits or runs; say whether that came true in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None and not self._running, timeout)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception as error:  # noqa: BLE001  the edge of a widget: what it catches is shown in the form
                self._failed(error)
            with self._changed:
                self._running = False
                self._changed.notify_all()

    def _next(self) -> Task | None:
        with self._changed:
            while self._waiting is None or self._waiting[0] > time.monotonic():
                left = IDLE if self._waiting is None else self._waiting[0] - time.monotonic()
                if not self._changed.wait(left) and self._waiting is None:
                    self._thread = None
                    return None
            task, self._waiting, self._running = self._waiting[1], None, True
            return task
