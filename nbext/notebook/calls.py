"""One call of the client from a cell: a bar while it runs, and Ctrl-C that ends it here and at the service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from nbext.errors import NbextError, QueryCancelled
from nbext.notebook.progress import Bar, View

if TYPE_CHECKING:
    from nbext.client import Client

Result = TypeVar("Result")
# A cell that was interrupted ends within half a second, whether or not the service answers.
CANCEL_SECONDS = 0.3


def call(client: Client, run: Callable[[Bar], Result], *, label: str, view: View) -> Result:
    """Run one call.

    Raises
    ------
    QueryCancelled
        It was interrupted; the service was told, where the segment's id was known.
    """
    bar = Bar(label, view)
    try:
        with bar:
            return run(bar)
    except KeyboardInterrupt:
        pass
    # Raised outside the except block: nothing of the call's frames hangs on our error.
    raise QueryCancelled(f"{label}: interrupted. {tell_service(client, bar.segment_id)}")


def tell_service(client: Client, segment_id: str | None) -> str:
    """Ask the service to stop a segment, without waiting long; return what became of it, in words."""
    if segment_id is None:
        return "The connection was closed; nothing was stored."
    told = threading.Event()

    def cancel() -> None:
        try:
            client.cancel(segment_id)
            told.set()
        except NbextError:
            return

    thread = threading.Thread(target=cancel, name="nbext-cancel", daemon=True)
    thread.start()
    thread.join(CANCEL_SECONDS)
    if told.is_set():
        return "The service was told to stop; nothing was stored."
    return f"The service was asked to stop segment {segment_id} and has not confirmed it; nothing was stored."
