"""The names and words that services use: for ids, states, addresses, rows and counts.

A name is compared without case, ``_``, ``-`` and spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nbext.client.decode import State


def bare(name: str) -> str:
    """Return the name without case and separators.

    >>> bare("Segment_ID"), bare("nextPageToken")
    ('segmentid', 'nextpagetoken')
    """
    return "".join(c for c in name.lower() if c not in "_- .")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDS = _words("id segmentid executionid jobid queryid taskid runid")
STATUSES = _words("status state jobstatus jobstate executionstatus segmentstatus querystatus runstatus phase")
URLS = _words(
    "url href link location downloadurl fileurl resulturl resultsurl exporturl outputurl csvurl jsonurl download "
    "downloadlink signedurl presignedurl resultlocation outputlocation file"
)
# An object under one of these is a wrapper, not a record of its own.
WRAPPERS = _words("data result results segment response payload body job execution query output attributes content")
ROWS = _words(
    "data result results items rows wallets owners holders addresses accounts records entries list members users "
    "hits matches tokens nfts collections values content payload response body output segment"
)
COLUMNS = _words("columns fields header headers columnnames columnheaders schema")
# Lists under these are about the answer, or a part of it; they are never the rows.
NOT_ROWS = COLUMNS | _words(
    "preview previews sample samples example examples meta metadata error errors warning warnings message messages "
    "link links filters filter facets aggregations request params parameters pagination page paging chains logs "
    "included relationships stats statistics counts tags"
)
# How many rows this answer has; how many there are in all; either of the two.
RETURNED = _words("returned rowcount numrows returnedcount resultcount itemcount")
TOTALS = _words("total totalcount totalrows totalresults totalitems totalrecords matched totalhits")
COUNTS = _words("count length numresults")
# Where counts and the next page are, beside the rows.
ABOUT = _words("meta metadata page pagination paging counts pageinfo links")


def places(document: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the document's objects that wrap others, outermost first, each with its path."""
    todo: list[tuple[str, Any, int]] = [("", document, 0)]
    while todo:
        path, value, depth = todo.pop(0)
        if not isinstance(value, Mapping):
            continue
        yield path, value
        if depth < 3:
            todo += [(joined(path, name), item, depth + 1) for name, item in value.items() if bare(name) in WRAPPERS]


def joined(path: str, name: str) -> str:
    """Return a JMESPath to a name below a path."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit() if name else False
    # JMESPath takes JSON's escapes, so that nothing in a stranger's name hides or runs where the path is shown.
    quoted = name if plain else json.dumps(name)
    return f"{path}.{quoted}" if path else quoted


_STATE_WORDS = {
    State.COMPLETED: "completed complete completion success successful succeeded succeed done finished finish ready ok "
    "available processed fulfilled ended resolved",
    State.FAILED: "failed failure fail error errored rejected invalid crashed exception aborted_with_error broken",
    State.TIMED_OUT: "timeout timedout",
    State.CANCELLED: "cancelled canceled cancel aborted stopped terminated killed revoked",
    State.EXPIRED: "expired gone deleted purged evicted",
}
_STATE_OF = {word: state for state, words in _STATE_WORDS.items() for word in words.split()}
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
