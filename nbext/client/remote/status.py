"""Where a job stands, in whichever words a service says it."""

from __future__ import annotations

import re
from enum import Enum


class State(Enum):
    """What a status word means for whoever waits."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


_WORDS = {
    State.COMPLETED: "completed complete completion success successful succeeded succeed done finished finish ready ok "
    "available processed fulfilled ended resolved",
    State.FAILED: "failed failure fail error errored rejected invalid crashed exception aborted_with_error broken",
    State.TIMED_OUT: "timeout timedout",
    State.CANCELLED: "cancelled canceled cancel aborted stopped terminated killed revoked",
    State.EXPIRED: "expired gone deleted purged evicted",
}
_STATE_OF = {word: state for state, words in _WORDS.items() for word in words.split()}
# "not ready" and "partially completed" are no completion; neither is anything that will be so.
_NOT_YET = {"not", "partial", "partially", "almost", "un", "incomplete", "to", "be", "processing", "in", "progress"}


def state_of(word: str) -> State:
    """Return the state of a status word; a word that is not known counts as running.

    >>> state_of("JOB_STATE_SUCCEEDED"), state_of("Canceled"), state_of("warming-up")
    (<State.COMPLETED: 'completed'>, <State.CANCELLED: 'cancelled'>, <State.RUNNING: 'running'>)
    """
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", word)]
    if "".join(parts[-2:]) in ("timedout", "timeout"):
        return State.TIMED_OUT
    if not parts or _NOT_YET & set(parts[:-1]):
        return State.RUNNING
    # The last word decides: QUERY_STATE_COMPLETED, Status.DONE, job failed.
    return _STATE_OF.get(parts[-1], State.RUNNING)
