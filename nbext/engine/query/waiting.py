"""Wait for a question that runs in another thread, until it ends or should be ended."""

from __future__ import annotations

import time
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from nbext.engine.dataset import Cancel
from nbext.errors import NbextError, QueryCancelled, QueryTimeout

if TYPE_CHECKING:
    import pyarrow as pa

# How soon a cancelled question is noticed, in seconds.
TICK = 0.05


def ended(running: Future[pa.Table], cancel: Cancel | None) -> NbextError | None:
    """Wait for the end; return None then, or why the question should be ended now."""
    while not wait([running], TICK if cancel else None).done:
        if cancel and cancel.asked.is_set():
            return QueryCancelled("the segment was cancelled.")
        if cancel and cancel.deadline is not None and time.monotonic() >= cancel.deadline:
            return QueryTimeout("the segment ran past its time limit.")
    return None
