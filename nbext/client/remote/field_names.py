"""The names and words that services use: for ids, states, addresses, rows and counts.

A name is compared without case, ``_``, ``-`` and spaces.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from nbext.client.decode import State
from nbext.core.addresses import looks_like_address

_SEPARATORS = str.maketrans("", "", "_- .@$:")


def bare(name: str) -> str:
    """Return the name without case and separators.

    >>> bare("Segment_ID"), bare("nextPageToken")
    ('segmentid', 'nextpagetoken')
    """
    # Beyond a hundred characters no name is one of ours, and a stranger's may have a million.
    return name[:100].lower().translate(_SEPARATORS)


# A stranger may send a million objects inside of each other; no answer was seen with more than a dozen wrappers.
MOST_PLACES = 1_000
# Nor has any object that wraps others, or any record, so many names: a million take a minute to look at a dozen times.
MOST_NAMES = 10_000


def number_of(value: Any) -> int | None:
    """Return a whole number, also one that is sent as text or with a fraction of 0; None for anything else.

    >>> number_of(25), number_of("25"), number_of("1,234"), number_of(True), number_of("x")
    (25, 25, 1234, None, None)
    """
    if isinstance(value, str) and re.fullmatch(
        r"[0-9]{1,3}(,[0-9]{3}){1,5}|[0-9]{1,18}", value.strip()
    ):
        return int(value.replace(",", ""))
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and abs(value) < 10**18
        and value == int(value)
    ):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def truth_of(value: Any) -> bool | None:
    """Return a truth value, also one that is sent as text; None for anything else.

    >>> truth_of(False), truth_of("true"), truth_of(1), truth_of("maybe")
    (False, True, None, None)
    """
    if isinstance(value, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def is_address(value: Any) -> bool:
    """Say whether a value is the text of an address."""
    return isinstance(value, str) and looks_like_address(value)


def name_set(text: str) -> frozenset[str]:
    """Return names, which mostly are compared by `bare`, written with spaces between."""
    return frozenset(text.split())


def by_bare(place: Mapping[str, Any], most: int = MOST_NAMES) -> dict[str, Any]:
    """Return the values of an object, or of its first ``most`` names, by their names as `bare` has them."""
    return {bare(name): value for name, value in islice(place.items(), most)}


IDS = name_set(
    "id segmentid executionid jobid queryid taskid runid statementid statementhandle queryexecutionid operationid "
    "queryrunid"
)
STATUSES = name_set(
    "status state jobstatus jobstate executionstatus segmentstatus querystatus runstatus phase"
)
# Where the rows are; a plain address beside a job that still runs is where its state is.
PLAIN_URLS = name_set("url href link location")
_RESULTS_AT = re.compile(
    r"((query)?results?|resource|output|download|files?|export|csv|json|data|response|(pre)?signed)(url|uri|href|link|location)|"
    r"download|file"
)
POLLED_AT = re.compile(
    r".*(status|state|poll|monitor|progress|operation).*(url|uri|href|link|location)"
)


def is_url(plain: str) -> bool:
    """Say whether a field of that name holds the address of the rows."""
    return plain in PLAIN_URLS or (
        _RESULTS_AT.fullmatch(plain) is not None and not POLLED_AT.fullmatch(plain)
    )


# An object under one of these is a wrapper, not a record of its own.
WRAPPERS = name_set(
    "data result results segment response payload body job execution query output attributes content embedded "
    "jobreference queryexecution queryrun"
)
# Beside a job's id these mean its rows; lists under any other name describe what was asked.
RESULTS = name_set(
    "data result results items rows records wallets holders hits matches entries values edges nodes response payload "
    "body output content resultset dataset dataarray"
)
ROWS = RESULTS | name_set(
    "owners addresses accounts list member members users tokens nfts collections segment"
)
COLUMNS = name_set(
    "columns fields header headers columnnames columnheaders columnlabels colnames cols schema rowtype columninfo"
)
# Lists under these are about the answer, or a part of it; they are never the rows.
NOT_ROWS = COLUMNS | name_set(
    "preview previews sample samples example examples meta metadata error errors warning warnings message messages "
    "link links filters filter facets aggregations request params parameters pagination page paging chains logs "
    "suggestions suggested trending popular recommended related didyoumean "
    "included relationships stats statistics counts tags partitioninfo"
)
# Where counts and the next page are, beside the rows.
ABOUT = name_set(
    "meta metadata page pagination paging counts pageinfo links link cursors pager info summary resultinfo pageable "
    "responsemetadata resultmetadata pagemetadata paginationinfo paginginfo listinfo collection navigation nav context "
    "stats statistics hits "
    "embedded count total status range view hydraview pagestatus"
)


def is_about(plain: str) -> bool:
    """Say whether an object of that name, without case and separators, speaks of the answer and is no data."""
    return plain in ABOUT or plain.endswith(("metadata", "aggregate", "manifest"))


# Beside the rows these say nothing of whether rows are missing. What is last, next or left may.
_HARMLESS = re.compile(
    r"(?!last|next|max|end|eta|wait|retry|remain|left|resume|after|skip|cut)("
    r".*(id|uuid|guid|version|hash|name|type|kind|format|chain|network|currency|symbol|language|locale|etag|schema|sql|term|"
    r"time|timestamp|date|ms|millis|seconds|took|elapsed|duration|bytes|checksum|standard)|"
    r"self|first|(has)?(prev|previous|before)(page)?|startcursor|column.*|owner|user|author|address|contract|token|collection|server|host|jsonrpc|key|object|model|"
    r"operator|cached|chains|tags|decimals|orderby|order|sort|sortby|asof|block|columncount|title|label|description)"
)
# Objects of what a call costs, and of how it went.
_HARMLESS_PLACES = re.compile(
    r".*(ratelimit|quota|usage|cost|billing|timings?|debug|trace|profile|schema|columns|links|responseheader|params|server|app)"
)


def is_harmless(path: str, plain: str) -> bool:
    """Say whether a field beside the rows, as its name and the objects around it are, says nothing of more rows."""
    inside = path.rpartition(".")[2]
    return bool(
        _HARMLESS.fullmatch(plain) or plain in ECHOES or _HARMLESS_PLACES.fullmatch(bare(inside))
    )


# What was asked for, said again: nothing in it is about the answer.
ECHOES = name_set(
    "request query filters filter params parameters input inputs config definition criteria arguments"
)


def _is_wrapper(_path: str, name: str, _value: Any) -> bool:
    return bare(name) in WRAPPERS


def places(
    document: Any,
    enter: Callable[[str, str, Any], bool] = _is_wrapper,
    *,
    deep: int = 3,
    most: int = MOST_PLACES,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the document's objects that wrap others, outermost first, each with its path.

    ``enter`` says of a path, a name and the object there whether to look into it; ``deep`` and ``most`` bound that.
    """
    todo: deque[tuple[str, Any, int]] = deque([("", document, 0)])
    for _ in range(most):
        if not todo:
            return
        path, place, depth = todo.popleft()
        if not isinstance(place, Mapping) or len(place) > MOST_NAMES:
            continue
        yield path, place
        todo += [
            (path_to(path, name), value, depth + 1)
            for name, value in place.items()
            if depth < deep and isinstance(value, Mapping) and enter(path, name, value)
        ]


def first_named(named: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the value of the first of the names that there is; None without any."""
    return next((named[name] for name in names if name in named), None)


def fields_of(
    found: Iterable[tuple[str, Mapping[str, Any]]],
) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the name without case and separators, and the value of each field of some `places`."""
    for path, place in found:
        for name, value in place.items():
            yield path_to(path, name), bare(name), value


def path_to(path: str, name: str) -> str:
    """Return a JMESPath to a name below a path."""
    plain = (
        name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
        if name
        else False
    )
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
    State.RUNNING: "queued running pending processing progress inprogress started starting submitted accepted created "
    "waiting executing working scheduled initializing initialising initialized preparing building computing "
    "enqueued calculating planning compiling dispatching dispatched retrying received provisioning incomplete "
    "materializing finishing blocked assigned inflight",
}
_STATE_OF = {word: state for state, words in _STATE_WORDS.items() for word in words.split()}
# "not ready" is no completion; neither is anything that will be so.
_NOT_YET = {"not", "almost", "un", "to", "be", "processing", "in", "progress", "awaiting", "being"}


def state_of(word: str) -> State | None:
    """Return the state of a status word; None for one that is not known, or that says that a part is done.

    >>> state_of("JOB_STATE_SUCCEEDED"), state_of("Canceled"), state_of("not ready")
    (<State.COMPLETED: 'completed'>, <State.CANCELLED: 'cancelled'>, <State.RUNNING: 'running'>)
    >>> state_of("warming-up"), state_of("partially_completed")
    (None, None)
    """
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", word[:200])]
    if not parts or any(part.startswith("partial") for part in parts):
        return None
    if "".join(parts[-2:]) in ("timedout", "timeout"):
        return State.TIMED_OUT
    # The last word decides: QUERY_STATE_COMPLETED, Status.DONE, job failed.
    state = _STATE_OF.get(parts[-1])
    return State.RUNNING if state is not None and _NOT_YET & set(parts[:-1]) else state


# The names that services have for the fields of a contract: ours first, theirs without case and separators.
_SAME: dict[str, frozenset[str]] = {
    "address": name_set(
        "contractaddress tokenaddress contract tokencontractaddress collectionaddress addresshash"
    ),
    "name": name_set("tokenname contractname collectionname contractdisplayname displayname"),
    "symbol": name_set(
        "tokensymbol contracttickersymbol tickersymbol ticker contractsymbol collectionsymbol"
    ),
    "decimals": name_set(
        "tokendecimals contractdecimals tokendecimal decimal divisor decimalplaces"
    ),
    "totalSupply": name_set("contracttotalsupply tokentotalsupply supply totaltokens"),
    "logo": name_set("logourl logouri iconurl icon tokenlogo thumbnail image imageurl"),
    "imageUrl": name_set("image imageurl logo logourl collectionlogo thumbnail iconurl"),
    "tokenType": name_set(
        "contracttype standard tokenstandard contractstandard type schema contractkind"
    ),
    "ownerCount": name_set(
        "numowners ownerscount uniqueowners distinctowners holders holderscount distinctownercount"
    ),
    "holders": name_set("holderscount holdercount numholders tokenholders"),
    "verified": name_set("isverified verifiedcontract verifiedcollection safelisted"),
    "possibleSpam": name_set("isspam spam scam isscam spamscore"),
    "deployedBlockNumber": name_set(
        "creationblock deploymentblock blocknumberdeployed creationblocknumber"
    ),
    "contractDeployer": name_set(
        "deployer deployeraddress deployedby creatoraddress contractcreator"
    ),
    "floorPrice": name_set("floor flooreth floorpriceeth"),
    "chainId": name_set("networkid"),
    "chain": name_set("network blockchain chainname"),
}


def to_ours(record: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a contract's record under our names for its fields; the service's other fields stay as they are.

    ``fields`` are our names with their types. Of two fields that could be one of ours neither is renamed.
    """
    by_name: dict[str, list[str]] = {}
    for name in record:
        by_name.setdefault(bare(name), []).append(name)
    new: dict[str, str] = {}
    for ours, kind in fields.items():
        if ours in record:
            continue
        exact = by_name.get(ours.lower(), [])
        others = [
            name
            for plain in _SAME.get(ours, ())
            for name in by_name.get(plain, [])
            if name not in fields
        ]
        found = [
            name
            for name in (exact or others)
            if name not in new and _may_be(record[name], ours, kind)
        ]
        if len(found) == 1:
            new[found[0]] = ours
    renamed = {new.get(name, name): value for name, value in record.items()}
    for name, value in renamed.items():
        # The digits of a whole number, where the column is known to have such.
        is_text = fields.get(name) == "integer" and isinstance(value, str)
        if is_text and re.fullmatch(r"0|[1-9][0-9]{0,17}", value):
            renamed[name] = int(value)
    return renamed


def _may_be(value: Any, ours: str, kind: str) -> bool:
    if ours == "tokenType":
        return isinstance(value, str) and bare(value).startswith(("erc", "bep", "spl"))
    if kind in ("integer", "uint256"):
        return (
            value is None
            or number_of(value) is not None
            or (isinstance(value, str) and value.isdecimal())
        )
    if kind == "boolean":
        return value is None or isinstance(value, bool)
    return not isinstance(value, list | Mapping) and (
        kind != "string" or value is None or isinstance(value, str)
    )
