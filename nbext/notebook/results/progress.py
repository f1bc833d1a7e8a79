"""What runs beside a cell: a task in a thread, and the bar of a call that takes longer than half a second."""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nbext.core.untrusted_text import html, visible

if TYPE_CHECKING:
    from nbext.client.segment_run import Progress

T = TypeVar("T")
DELAY = 0.5
_REFRESH = 0.5


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


def how_far(progress: Progress) -> tuple[str, float | None]:
    """Return how far a call is, and how much of it is done, from 0 to 1, where that is known."""
    if progress.phase == "running":
        return visible(progress.status) or "running", None
    share = min(1.0, progress.done / progress.total) if progress.total else None
    # Of fewer bytes the line would say 0.0 MB.
    if progress.done < 50_000:
        return "fetching", share
    done = f"{progress.done / 1e6:,.1f} MB"
    return f"{done} of {progress.total / 1e6:,.1f} MB" if progress.total else done, share


class Bar:
    """The bar of one call: a context around it, and the client's ``progress`` callback.

    >>> with Bar("segment", view) as bar:
    ...     client.execute_segment(filters, progress=bar)  # doctest: +SKIP
    """

    def __init__(
        self, label: str, view: NotebookView | TerminalView | None, delay: float = DELAY
    ) -> None:
        self._label, self._view, self._delay = label, view, delay
        self._line: tuple[str, float | None] = "waiting", None
        # Which a line that was given may say itself.
        self._says_seconds = True
        self._stop = threading.Event()
        self._drawing: Future[None] | None = None

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        self._line = how_far(progress)

    def at(self, text: str, share: float) -> None:
        """Take a line to show, and how much is done, from 0 to 1."""
        self._line, self._says_seconds = (visible(text), min(1.0, share)), False

    def __enter__(self) -> Bar:
        self._started = time.monotonic()
        if self._view is not None:
            self._drawing = in_background(partial(self._draw, self._view), "nbext-bar")
        return self

    def __exit__(self, *raised: object) -> None:
        # Waited for, so that the bar is gone before the result is displayed.
        self._stop.set()
        if self._drawing is not None:
            wait([self._drawing], 1)

    def _draw(self, view: NotebookView | TerminalView) -> None:
        if self._stop.wait(self._delay):
            return
        while True:
            text, share = self._line
            seconds = f", {int(time.monotonic() - self._started)} s" * self._says_seconds
            view.show(f"{self._label}: {text}{seconds}", share)
            if self._stop.wait(_REFRESH):
                break
        view.close()


class NotebookView:
    """A bar as HTML that is updated in place. It needs no widgets, so every front end displays it."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float | None) -> None:
        """Draw the bar, or draw it again in its place; ``share`` is 0 to 1, None where the end is not known."""
        value = "" if share is None else f' value="{share:.3f}"'
        bar = f"<progress{value}></progress> <small>{html(text)}</small>"
        self._publish({"text/html": bar, "text/plain": text})

    def close(self) -> None:
        """Replace the bar by nothing."""
        self._publish({})

    def _publish(self, data: dict[str, str]) -> None:
        from IPython.display import DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()  # type: ignore[no-untyped-call]  # IPython's own is untyped
            # Of no type, as it is in the end: strict nbval passes over updates, and compares what is displayed.
            self._handle.display({}, raw=True)
        self._handle.update(data, raw=True)


class TerminalView:
    """One line on stderr, written over itself."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str, share: float | None) -> None:
        """Write the line over the last one."""
        done = "" if share is None else f" ({share:.0%})"
        line = text + done
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        """Blank the line."""
        sys.stderr.write("\r" + " " * self._width + "\r")
        sys.stderr.flush()


def view_for(shell: object, *, wanted: bool = True) -> NotebookView | TerminalView | None:
    """Return the view for a shell: HTML in a kernel's front end, text in a terminal; None for no bar."""
    if not wanted:
        return None
    if getattr(shell, "kernel", None) is not None:
        return NotebookView()
    # In a file, a line that is written over itself is noise.
    return TerminalView() if sys.stderr.isatty() else None
