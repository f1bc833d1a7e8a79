"""A segment that runs while the notebook goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal

from nbext.errors import DeadlineExceeded, NbextError, QueryCancelled
from nbext.notebook.cell.request import Query

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client
    from nbext.client.segment_run import Progress
    from nbext.notebook.session import Session

Status = Literal["running", "completed", "failed", "cancelled"]


class Background:
    """A handle on a segment: look at its ``status``, wait for its ``result()``, ``await`` it, ``cancel()`` it."""

    def __init__(self, client: Client, query: Query) -> None:
        self._client, self._query = client, query
        self._future: Future[pd.DataFrame] = Future()
        self._cancelled = threading.Event()
        self.segment_id: str | None = None

    @property
    def status(self) -> Status:
        """Where it stands: running, completed, failed or cancelled."""
        # Until the thread has noticed, a cancelled one still runs at the service.
        if not self._future.done():
            return "cancelled" if self._cancelled.is_set() else "running"
        error = self._future.exception()
        if error is None:
            return "completed"
        return "cancelled" if isinstance(error, QueryCancelled) else "failed"

    def result(self, timeout: float | None = None) -> pd.DataFrame:
        """Return the table, waiting for it.

        Raises
        ------
        DeadlineExceeded
            It is not there after ``timeout`` seconds; the segment runs on.
        NbextError
            The segment failed; as the magic itself would have.
        """
        # Two steps, so that our error carries no other as its context.
        try:
            return self._future.result(timeout)
        except TimeoutError:
            pass
        raise DeadlineExceeded(
            f"the segment is not finished after {timeout:g} s and runs on.", segment_id=self.segment_id
        )

    def cancel(self) -> None:
        """Stop it, here and at the service."""
        self._cancelled.set()
        if self.segment_id is not None and not self._future.done():
            self._client.cancel(self.segment_id)

    def __await__(self) -> Generator[Any, None, pd.DataFrame]:
        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        return f"<segment in the background: {self.status}>"

    def run(self) -> None:
        """Run the query to its end; the thread's whole work."""
        query = self._query
        # The thread ends here, whatever comes: an error belongs to whoever asks for the result.
        failure: NbextError
        try:
            frame = self._client.execute_segment(
                query.filters, query.operator, query.file_type, query.limit, progress=self._report
            )
        except NbextError as error:
            failure = query.located(error)
        else:
            self._future.set_result(frame)
            return
        if self._cancelled.is_set():
            failure = QueryCancelled("segment: cancelled by its handle.")
        self._future.set_exception(failure)

    def _report(self, progress: Progress) -> None:
        self.segment_id = progress.segment_id or self.segment_id
        if self._cancelled.is_set():
            raise QueryCancelled("segment: cancelled by its handle.")


def start(session: Session, query: Query) -> Background:
    """Run a query in a thread and return its handle."""
    handle = Background(session.client, query)

    def note(future: Future[pd.DataFrame]) -> None:
        if future.exception() is None:
            session.history.add(query, future.result().attrs.get("nbext", {}))
            session.seen.learn(future.result())

    # The history lists what ran, also where nobody ever asks for the result.
    handle._future.add_done_callback(note)
    threading.Thread(target=handle.run, name="nbext-background", daemon=True).start()
    return handle
