"""A bar for calls that take their time: it appears after half a second and takes itself away."""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from nbext.core.untrusted_text import html, visible

if TYPE_CHECKING:
    from nbext.client.segment_run import Progress

DELAY = 0.5
_REFRESH = 0.5


class View(Protocol):
    """Where a bar is drawn."""

    def show(self, text: str, share: float | None) -> None:
        """Draw, or draw again; ``share`` is 0 to 1, None where the end is not known."""

    def close(self) -> None:
        """Take it away."""


class Bar:
    """Reports of one call, drawn while it runs. It is the client's ``progress`` callback itself.

    >>> with Bar("segment", view) as bar:
    ...     client.execute_segment(filters, progress=bar)  # doctest: +SKIP
    """

    def __init__(self, label: str, view: View, delay: float = DELAY) -> None:
        self.segment_id: str | None = None
        self._label, self._view, self._delay = label, view, delay
        self._last: Progress | None = None
        self._stop = threading.Event()
        # A kernel routes output by context: without a copy a thread's output may land in another cell.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._draw,), name="nbext-bar", daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        self._last = progress
        self.segment_id = progress.segment_id or self.segment_id

    def __enter__(self) -> Bar:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Waited for, so that the bar is gone before the result is shown.
        self._stop.set()
        self._thread.join(1)

    def _draw(self) -> None:
        if self._stop.wait(self._delay):
            return
        while True:
            self._view.show(*self._now())
            if self._stop.wait(_REFRESH):
                break
        self._view.close()

    def _now(self) -> tuple[str, float | None]:
        seconds = int(time.monotonic() - self._started)
        last = self._last
        if last is None or last.phase == "running":
            status = visible(last.status) if last and last.status else "waiting"
            return f"{self._label}: {status}, {seconds} s", None
        text = f"{self._label}: {last.done / 1e6:,.1f} MB"
        if not last.total:
            return f"{text}, {seconds} s", None
        return f"{text} of {last.total / 1e6:,.1f} MB, {seconds} s", min(1.0, last.done / last.total)


class NotebookView:
    """A bar as HTML that is updated in place: it needs no widgets, so it shows in every front end."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float | None) -> None:
        """Draw the bar, or draw it again in its place."""
        value = "" if share is None else f' value="{share:.3f}"'
        bar = f"<progress{value}></progress> <small>{html(text)}</small>"
        self._publish({"text/html": bar, "text/plain": text})

    def close(self) -> None:
        """Leave nothing to be seen."""
        if self._handle is not None:
            self._publish({"text/html": "", "text/plain": ""})

    def _publish(self, data: dict[str, str]) -> None:
        from IPython.display import DisplayHandle

        if self._handle is None:
            self._handle = DisplayHandle()  # type: ignore[no-untyped-call]  # IPython's own is untyped
            self._handle.display(data, raw=True)
        else:
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


class NoView:
    """Nothing: for those who asked for no bar, and for files, where a line written over itself is noise."""

    def show(self, text: str, share: float | None) -> None:
        """Draw nothing."""

    def close(self) -> None:
        """Take nothing away."""


def view_for(shell: object, *, wanted: bool = True) -> View:
    """Return the view that fits a shell: a kernel's front end draws HTML, a terminal text."""
    if not wanted:
        return NoView()
    if getattr(shell, "kernel", None) is not None:
        return NotebookView()
    return TerminalView() if sys.stderr.isatty() else NoView()
