"""A segment that runs while the notebook goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from nbext.errors import DeadlineExceeded, QueryCancelled
from nbext.http.deadline import SCOPE, Scope
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.line import Args
from nbext.notebook.results.deliver import converted, print_notes
from nbext.notebook.results.progress import in_background

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client
    from nbext.client.segment_run import Progress
    from nbext.notebook.session import Session

Status = Literal["running", "completed", "failed", "cancelled"]


class BackgroundSegment:
    """A handle on a segment: look at its ``status``, wait for its ``result()``, ``await`` it, ``cancel()`` it.

    ``seen`` gets the handle and each report of how far it is, and ``told`` makes of the table what is returned, once.
    """

    def __init__(
        self,
        client: Client,
        query: SegmentQuery,
        *,
        seen: Callable[[BackgroundSegment, Progress], object] = lambda *_: None,
        told: Callable[[pd.DataFrame], Any] = lambda table: table,
    ) -> None:
        self._client, self.query, self._seen, self._tell = client, query, seen, told
        self._table: Any = None
        self._scope, self._cancelled = Scope(), threading.Event()
        self.segment_id: str | None = None
        # A daemon: a kernel that is shut down does not wait for the segment.
        self._future = in_background(self._run, "nbext-background")

    @property
    def status(self) -> Status:
        """The state of the run: running, completed, failed or cancelled."""
        # A cancelled segment may run on at the service until the thread has noticed; it is lost to us either way.
        if not self._future.done():
            return "cancelled" if self._cancelled.is_set() else "running"
        error = self._future.exception()
        if error is None:
            return "completed"
        return "cancelled" if isinstance(error, QueryCancelled) else "failed"

    def result(self, timeout: float | None = None) -> Any:
        """Return the table, waiting for it.

        Raises
        ------
        DeadlineExceeded
            The table is not there after ``timeout`` seconds; the segment runs on.
        NbextError
            The segment failed; the error is the one that the magic would have raised.
        """
        # Raised outside of the except block, so that our error has no other as its context.
        try:
            return self._told(self._future.result(timeout))
        except TimeoutError:
            pass
        raise DeadlineExceeded(
            f"The segment is still running after {timeout:g} s.", segment_id=self.segment_id
        )

    def cancel(self) -> None:
        """Stop the segment, here and at our own service; once its id is known, where it is not yet."""
        self._cancelled.set()
        if self.segment_id is not None:
            self._scope.end()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._told((yield from asyncio.wrap_future(self._future).__await__()))

    def _told(self, frame: pd.DataFrame) -> Any:
        if self._table is None:
            self._table = self._tell(frame)
        return self._table

    def __repr__(self) -> str:
        return f"<segment in the background: {self.status}>"

    def _run(self) -> pd.DataFrame:
        # Ended as Ctrl-C ends a call, which then has our own service stop the segment.
        SCOPE.set(self._scope)
        # Whose service it is decides how its answers are read; one that cannot be asked now fails below.
        _ = self._client.is_ours
        return self.query.run(self._client, progress=self._report)

    def _report(self, progress: Progress) -> None:
        self.segment_id = progress.segment_id or self.segment_id
        # Not while the answer comes that has its id: without that it would run on at the service.
        if self._cancelled.is_set() and (self.segment_id or progress.phase == "running"):
            self._scope.end()
        self._seen(self, progress)


def start_segment(session: Session, query: SegmentQuery, args: Args) -> BackgroundSegment | None:
    """Run a query in a thread and return its handle, or store it under the name that the line gives."""
    # A remote service may be silent for half a minute: it is first asked by the thread. Only the key is asked for here.
    is_remote = session.client is None and session.settings["base_url"]
    client = session.unasked_client() if is_remote else session.connected()
    # Its lists are read now: the notebook may change them while the segment runs.
    with query.located():
        client.request_for(*query.request)

    def told(frame: pd.DataFrame) -> Any:
        # The first time that the table is asked for: nobody reads what the thread prints.
        print_notes(frame, args)
        return converted(frame, args, client.settings)

    handle = BackgroundSegment(client, query, told=told)

    def note(future: Future[pd.DataFrame]) -> None:
        if future.exception() is None:
            session.history.add(query, future.result())
            session.suspicious.learn(future.result())

    # The history lists what ran, even if nobody ever asks for the result.
    handle._future.add_done_callback(note)
    if (name := args["out"]) is None:
        return handle
    # Stored although nothing has finished: the handle is the only way to the result.
    session.names[name] = handle
    print(f"{name} = {handle!r}; {name}.result() waits for the table")
    return None
