"""What runs beside a cell: one thread for one task, whose result or error a future holds."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(task: Callable[[], T], name: str, *, daemon: bool = True) -> Future[T]:
    """Start a task in a thread of its own, and return its future. Python's end waits for it unless it is a daemon.

    >>> in_background(lambda: 1 + 1, "sum").result()
    2
    """
    future: Future[T] = Future()
    # A kernel routes output by context: without a copy a thread's output may land in another cell.
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(task))
        except BaseException as error:  # noqa: BLE001  the edge of a thread: the future raises it
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=daemon).start()
    return future
