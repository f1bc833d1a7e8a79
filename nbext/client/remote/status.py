"""What an answer says of the job and of the call: its id, done, not done, failed; and errors under status 200.

Also where the job's state and its rows are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from nbext.client.decode import State
from nbext.client.remote.content import ForeignPage
from nbext.client.remote.field_names import (
    ECHOES,
    IDS,
    PLAIN_URLS,
    POLLED_AT,
    RESULTS,
    ROWS,
    STATUSES,
    bare,
    by_bare,
    fields_of,
    first_named,
    is_url,
    name_set,
    number_of,
    path_to,
    places,
    state_of,
    truth_of,
)
from nbext.client.remote.profile import ForeignProfile, ambiguous
from nbext.client.validate import is_foreign_id
from nbext.core.rules import SEGMENT_ID, SEGMENT_ID_PATTERN
from nbext.errors import AmbiguousAnswer, ProtocolError
from nbext.http.body import Answer
from nbext.http.errors import one_line, words
from nbext.http.redaction import redacted
from nbext.settings import Secret


def read_job(
    page: ForeignPage, answer: Answer, profile: ForeignProfile, key: Secret | None
) -> None:
    """Read what an answer says of a job into the page."""
    document = page.document
    page.id = _id_of(document, answer.headers, profile) or id_in_location(answer)
    # A path is logged: an id that echoes the key must not become one.
    if page.id is not None and (not is_foreign_id(page.id) or redacted(page.id, key) != page.id):
        raise ProtocolError(
            f"{one_line(page.id, key, 80)!r} is not a segment id: it is too long, or has hidden parts."
        )
    chosen = profile.find("status", document, answer.headers)
    if isinstance(document, str) and profile.state_of(document):
        # A word alone: Allium answers "running". Any other text may be an id.
        chosen = document
    page.word, page.state = status_of(document, chosen, profile.state_of)
    if page.state is None and answer.status == 202:
        page.state = State.RUNNING
    # Without an id a number may be the call's own.
    of_job = page.word is not None and (page.id is not None or not says_whole("status", page.word))
    if of_job and page.state is None:
        page.doubt = _unknown(page.word or "", key)
    page.url = _url_of(document, answer.headers, profile)
    polled = profile.find("poll", document, answer.headers)
    named = _addresses(document, lambda plain: POLLED_AT.fullmatch(plain) is not None)
    found = polled or monitor(answer) or next(iter(named.values()), None)
    found = None if profile.is_absent("poll") else found
    page.poll = None if found is None or (polled is None and page.id) else str(found)
    plain = _addresses(document, PLAIN_URLS.__contains__)
    if page.state is State.RUNNING and page.url in plain.values():
        # The rows are not there yet, if ever: beside an id it is the address of the job itself.
        page.poll, page.url = page.poll or (None if page.id else page.url), None
    page.reason = _reason(document)


def _unknown(word: str, key: Secret | None) -> AmbiguousAnswer:
    """Return the error that asks what a status word means."""
    plain = one_line(word, key, 60)
    written = json.dumps(plain, ensure_ascii=False)
    lines = [f"remote.states.{state} = {written}" for state in ("done", "running", "failed")]
    return AmbiguousAnswer(
        f"nbext does not know what the service's status {plain!r} means. If it means done: `%nbext set {lines[0]}`. "
        f"Otherwise write states.running or states.failed in its place.",
        candidates=lines,
        setting=lines[0],
    )


def id_in_location(answer: Answer) -> str | None:
    if answer.status not in (201, 202):
        return None
    last = re.search(
        rf"/segments?/({SEGMENT_ID_PATTERN})/?(?:\?.*)?\Z", answer.headers.get("Location", "")
    )
    return last[1] if last else None


def monitor(answer: Answer) -> str | None:
    """Return where the state of what was accepted can be asked for, as headers name it."""
    names = (
        ("Operation-Location", "Azure-AsyncOperation", "Location")
        if answer.status in (201, 202)
        else ()
    )
    return next((answer.headers[name] for name in names if answer.headers.get(name)), None)


def _id_of(document: Any, headers: Mapping[str, str], profile: ForeignProfile) -> str | None:
    chosen = profile.find("id", document, headers)
    if chosen is not None or profile.is_absent("id"):
        return None if chosen is None else profile.id_from(str(chosen), document)
    if isinstance(document, str):
        # A word such as "ok" is not an id.
        is_id = SEGMENT_ID.match(document) and state_of(document) is None and len(document) > 2
        return document if is_id else None
    found = {
        path_to(path, name): str(value)
        for path, place in places(document)
        # The id of a JSON-RPC answer is the question's.
        if "jsonrpc" not in place
        for name, value in place.items()
        # JSON-LD's @id is an address.
        if bare(name) in IDS
        and not name.startswith("@")
        and type(value) in (str, int)
        and value != ""
    }
    # The query's id beside that of its run: what ran is asked for by its own.
    runs = {
        path: value for path, value in found.items() if bare(path.rpartition(".")[2]) != "queryid"
    }
    return _only(runs or found, "id", profile.operation)


def _only(found: Mapping[str, str], name: str, operation: str) -> str | None:
    """Return the one value, or None; several different ones are an error."""
    if len(set(found.values())) > 1:
        raise ambiguous(name, list(found), operation)
    return next(iter(found.values()), None)


def _url_of(document: Any, headers: Mapping[str, str], profile: ForeignProfile) -> str | None:
    chosen = profile.find("url", document, headers)
    if chosen is not None or profile.is_absent("url"):
        return None if chosen is None else str(chosen)
    if isinstance(document, str):
        return document if re.match(r"https?://\S+\Z", document) else None
    return _only(_addresses(document, is_url), "url", profile.operation)


def _addresses(document: Any, wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the addresses under the names that are wanted, by path."""
    return {
        path: value
        for path, plain, value in fields_of(places(document))
        if wanted(plain) and isinstance(value, str) and re.match(r"(https?:/)?/\S+\Z", value)
    }


def _reason(document: Any) -> str:
    found = fields_of(places(document))
    return next(filter(None, (words(value) for _, plain, value in found if plain in _REASONS)), "")


_REASONS = name_set("error errors errormessage failurereason reason message statusmessage")


# These speak of the call, and of a job only where nothing else does.
_OF_THE_CALL = {"ok", "success", "successful", "true"}

_FLAGS = {
    State.COMPLETED: name_set(
        "done finished completed complete ready isdone isfinished iscompleted iscomplete isready jobcomplete "
        "isexecutionfinished executionfinished isterminal resultready resultsready"
    ),
    State.RUNNING: name_set(
        "running pending processing inprogress isrunning ispending isprocessing queued loading indexing"
    ),
    State.FAILED: name_set("failed isfailed haserror haserrors iserror"),
    State.CANCELLED: name_set("cancelled canceled iscancelled iscanceled"),
}
_PROGRESS = name_set("progress fractioncomplete completion progressratio")
_PERCENT = name_set(
    "percent percentage percentcomplete percentdone progresspercentage progresspercent completionpercentage "
    "pctcomplete pct completionpct"
)
_ENDS = name_set(
    "completedat finishedat endedat executionendedat completiontime finishtime endtime"
)


def status_of(
    document: Any, chosen: Any, known: Callable[[str], State | None]
) -> tuple[str | None, State | None]:
    """Return the service's own word and the state of the job that an answer speaks of.

    What says that it is not done outranks what says it is. A word without a state is one that nobody knows.

    ``chosen`` is what the settings point to, and ``known`` the state of a word, as they and `state_of` have it.
    """
    if chosen is not None:
        spelled = str(chosen).lower() if isinstance(chosen, bool) else _text(chosen) or str(chosen)
        truth = _OF_TRUTH[chosen] if isinstance(chosen, bool) else None
        return spelled, known(spelled) or truth
    pairs = [(plain, value) for _, plain, value in fields_of(places(document))]
    word = _word(_text(value) for name, value in pairs if name in STATUSES)
    state, flagged, far = known(word) if word else None, _flagged(pairs), _progress(pairs)
    if state in _ENDED_BADLY or flagged in _ENDED_BADLY:
        return word, state if state in _ENDED_BADLY else flagged
    if flagged is not None:
        return word, flagged
    if far is State.RUNNING and (state is None or (word or "").lower() in _OF_THE_CALL):
        return word, far
    if word is not None or far is not None:
        return word, far if word is None else state
    # "completedAt": null, and nothing else that speaks of the state.
    ended = [value for name, value in pairs if name in _ENDS]
    return None, State.RUNNING if ended and not any(ended) else None


def states_in(document: Any, rows: Any) -> dict[str, str]:
    """Return the status words of an answer's inner objects and short lists, by path; not of its rows."""
    todo: list[tuple[str, Any, int]] = [("", document, 0)]
    found: dict[str, str] = {}
    for path, value, depth in todo:
        if value is rows:
            continue
        if isinstance(value, Mapping) and len(value) <= 100 and depth < 4:
            for name, item in value.items():
                several = item if isinstance(item, list) else [item]
                if bare(name) in STATUSES and (path or len(several) > 1):
                    texts = filter(None, map(_text, several[:20]))
                    found |= {path_to(path, name): text for text in texts}
            todo += [
                (path_to(path, name), item, depth + 1)
                for name, item in value.items()
                if bare(name) not in ECHOES
            ]
        elif (
            isinstance(value, list)
            and len(value) <= 50
            and len(todo) < 1000
            and path
            and not _is_of_rows(value)
        ):
            todo += [(f"{path}[{n}]", item, depth + 1) for n, item in enumerate(value)]
    return found


def _is_of_rows(value: list[Any]) -> bool:
    return any(
        isinstance(item, str) and item.startswith("0x")
        for one in value[:3]
        if isinstance(one, Mapping)
        for item in one.values()
    )


_ENDED_BADLY = (State.FAILED, State.TIMED_OUT, State.CANCELLED, State.EXPIRED)
_OF_TRUTH = {True: State.COMPLETED, False: State.RUNNING}


def _word(words: Iterable[str | None]) -> str | None:
    """Return the word that speaks of the job: the innermost; an outer "success" speaks of the call."""
    said = [word for word in words if word]
    own = [word for word in said if word.lower() not in _OF_THE_CALL]
    return next(reversed(own or said), None)


def _text(value: Any) -> str | None:
    """Return a status as text: also of ``{"name": ...}``, and of a number that is not the status of HTTP."""
    for _ in range(3):
        if not isinstance(value, Mapping):
            break
        named = by_bare(value, 50)
        value = first_named(named, (*_IN_AN_OBJECT, *sorted(STATUSES)))
    if isinstance(value, str):
        return None if re.fullmatch(r"\s*|[2-5]\d\d", value) else value
    whole = None if isinstance(value, bool) else number_of(value)
    return None if whole is None or 200 <= whole < 600 else str(whole)


_IN_AN_OBJECT = ("state", "status", "name", "value", "code", "label", "type", "phase")


def _flagged(pairs: list[tuple[str, Any]]) -> State | None:
    found = {
        _OF_TRUTH[truth] if state is State.COMPLETED else state
        for name, value in pairs
        for state, names in _FLAGS.items()
        if name in names
        and (truth := truth_of(value)) is not None
        and (truth or state is State.COMPLETED)
    }
    order = (State.FAILED, State.CANCELLED, State.RUNNING, State.COMPLETED)
    return next((state for state in order if state in found), None)


def _progress(pairs: list[tuple[str, Any]]) -> State | None:
    found = [
        _share(value, name in _PERCENT) for name, value in pairs if name in _PROGRESS | _PERCENT
    ]
    waits = any(name == "queueposition" and (number_of(value) or 0) > 0 for name, value in pairs)
    if waits or State.RUNNING in found:
        return State.RUNNING
    return State.COMPLETED if State.COMPLETED in found else None


def _share(value: Any, percent: bool) -> State | None:
    """Return whether a progress is all of it: 1 may be all or one percent, and says nothing."""
    if isinstance(value, Mapping):
        named = by_bare(value, 50)
        parts = ("done", "completed", "finished", "current", "processed")
        done = number_of(first_named(named, parts))
        total = number_of(named.get("total"))
        if done is None or total is None:
            return None
        return State.RUNNING if done < total else State.COMPLETED
    if isinstance(value, str):
        percent, value = percent or "%" in value, value.strip(" %")
    try:
        share = (
            float(value)
            if isinstance(value, str) or not isinstance(value, bool | list | None)
            else -1.0
        )
    except (ValueError, TypeError, OverflowError):
        return None
    if share < 0 or (share == 1 and not percent):
        return None
    return State.RUNNING if share < (100 if percent or share > 1 else 1) else State.COMPLETED


def says_whole(plain: str, value: Any) -> bool:
    """Say whether a field of that name is one that the rules above read, and says that the job or the call is whole."""
    if plain in STATUSES or plain in ("code", "statuscode", "httpcode", "outcome", "errorcode"):
        number = number_of(value)
        return (
            (number in (0, 1) or 200 <= number < 206)
            if number is not None
            else state_of(str(value)) is not None
        )
    if plain in _PROGRESS | _PERCENT:
        return _share(value, plain in _PERCENT) is not State.RUNNING
    if any(plain in names for names in _FLAGS.values()) or plain in _GOOD:
        return truth_of(value) is not None
    if plain in _MESSAGES:
        # Beside rows, a word of success; and whatever is noted as a remark.
        return (
            re.search(r"(?i)\b(ok|success\w*|completed?|done|finished|found)\b", str(value))
            is not None
        )
    is_time = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?\Z", value)
    return (
        bool(is_time or POLLED_AT.fullmatch(plain))
        or plain in _ERRORS
        or plain in _ENDS
        or is_url(plain)
    )


_ERRORS = (
    "error",
    "errors",
    "errormessage",
    "errormsg",
    "err",
    "fault",
    "exception",
    "errordescription",
    "errorcode",
)
_GOOD = name_set("success ok succeeded issuccess issuccessful successful valid response")
_MESSAGES = name_set("message msg detail reason description title")
_ABOUT_ERRORS = (
    _MESSAGES
    | set(_ERRORS)
    | name_set(
        "code status statuscode type timestamp path instance requestid traceid correlationid documentationurl "
        "fields name statustext httpcode moreinfo help link data result success ok"
    )
)
_BAD_WORDS = name_set("error fail failed failure notok nok ko exception")
_NONE_FOUND = re.compile(r"\s*no\b.{0,60}\bfound", re.IGNORECASE)


def error_in(document: Any, *, receipt: bool = False) -> str | None:
    """Return the words of an error that came under a status of success, or None.

    A ``receipt`` says little, and that is no error: a message alone, or no data.
    """
    if isinstance(document, list):
        some = document[:20]
        is_error = some and all(
            isinstance(one, Mapping) and _is_only_error(by_bare(one), alone=False) for one in some
        )
        return said(some) if is_error else None
    for path, place in places(document):
        named = by_bare(place)
        found = _stated(named) or _worded(named, path)
        if not found and not path and not receipt:
            found = _without_data(named)
        if found:
            return found
    return None


def error_in_rows(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the words of an error that came as a row: alone, or where the rows break off; None without one."""
    # Of a million rows of the same names the first speaks for all.
    odd = (record for record in records if record.keys() != records[0].keys())
    return next(filter(None, map(_error_in_row, [*records[:1], *islice(odd, 1000)])), None)


def _error_in_row(record: Mapping[str, Any]) -> str | None:
    if not record or len(record) > 4:
        return None
    named = by_bare(record)
    code = number_of(named.get("code", named.get("status", named.get("statuscode"))))
    is_code = (
        code is not None and (400 <= code < 600 or code < 0) and bool(_MESSAGES & named.keys())
    )
    if not named.keys() <= _MESSAGES | set(_ERRORS) | {"code", "status", "statuscode"}:
        return None
    is_error = any(named.get(name) not in (None, False, "", [], {}, 0) for name in _ERRORS)
    return (said(record) or "; ".join(map(str, record.values()))) if is_error or is_code else None


def prose_in(names: Sequence[str]) -> str | None:
    """Return the text of a CSV without a row whose first line names no columns: "Internal error, try later".

    >>> prose_in(["Internal error", " try later"]), prose_in(["address"]), prose_in(["id", "amount"])
    ('Internal error, try later', None, None)
    """
    plain = {bare(name) for name in names}
    are_names = len(names) > 1 and all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in names)
    if plain & _COLUMN_NAMES or (are_names and not plain <= _ABOUT_ERRORS):
        return None
    return ",".join(names)


_COLUMN_NAMES = IDS | name_set(
    "address wallet walletaddress owner owneraddress holder holderaddress account tokenaddress"
)


def _stated(named: Mapping[str, Any]) -> str | None:
    # Many services send "error": null, or an empty list of errors, with every good answer.
    for name in _ERRORS:
        value = named.get(name)
        if value not in (None, False, "", [], {}, 0, "0", "false"):
            beside = {key: item for key, item in named.items() if key not in {name, *ROWS}}
            return said(value) or said(beside) or str(value)[:200]
    good = [named[name] for name in _GOOD & named.keys()]
    failed = any(truth_of(value) is False or value == 0 for value in good)
    failed = failed or any(
        truth_of(named.get(name)) is True for name in ("iserror", "haserror", "haserrors")
    )
    # Rows beside it are no words of the error.
    beside = {name: value for name, value in named.items() if name not in ROWS}
    return (said(beside) or "the service says that it failed, but not why") if failed else None


def _worded(named: Mapping[str, Any], path: str) -> str | None:
    """Return an error by its word or code: {"result": "error", "msg": ...}, {"status": "0", "message": "NOTOK"}."""
    numbers = (number_of(named.get(name)) for name in ("code", "statuscode", "status"))
    code = next((number for number in numbers if number is not None), None)
    bad = any(
        isinstance(named.get(name), str) and bare(named[name]) in _BAD_WORDS
        for name in ("status", "result", "type", "code", "message")
    )
    # HTTP's own number for a failure, at the top: {"status": 429, "data": []}.
    http = [number_of(named.get(name)) for name in ("statuscode", "httpstatus", "status")]
    if not path and any(number is not None and 400 <= number < 600 for number in http):
        return said(named) or f"status {next(number for number in http if number is not None)}"
    # An id beside the word is a job's: its failure has an error of its own.
    if (bad and not IDS & named.keys()) or (
        code is not None and 400 <= code < 600 and _MESSAGES & named.keys()
    ):
        return _beside_result(named)
    has_place = "message" in named and ("result" in named or "data" in named)
    if not path and number_of(named.get("status")) == 0 and has_place:
        nothing = not named.get("result") and _NONE_FOUND.match(str(named["message"]))
        return None if nothing else _beside_result(named)
    return None


def _beside_result(named: Mapping[str, Any]) -> str:
    """Return the words of an error, with the result where that is what explains it."""
    result = named.get("result")
    more = result if isinstance(result, str) and bare(result) not in _BAD_WORDS else ""
    return (
        ": ".join(filter(None, (said(named), more[:300])))
        or "the service says that it failed, but not why"
    )


def _without_data(named: Mapping[str, Any]) -> str | None:
    """Return a message that has no data beside it: {"code": 7, "message": ...}, {"data": null, "message": ...}."""
    if not any(isinstance(named.get(name), str) and named[name] for name in _MESSAGES):
        return None
    nothing = any(name in named and named[name] is None for name in RESULTS)
    others = [
        name
        for name, value in named.items()
        if name not in _ABOUT_ERRORS and value not in (None, "", [], {})
    ]
    alone = _is_only_error(named, alone=True)
    return said(named) if alone or (nothing and not others and not IDS & named.keys()) else None


def _is_only_error(named: Mapping[str, Any], *, alone: bool) -> bool:
    """Say whether an object speaks of an error and has nothing else; ``alone``: a message suffices for that."""
    if not named or len(named) > 20:
        return False
    # No rows are data, unless a code says that it failed.
    failed = named.get("code", named.get("errorcode")) not in (None, 0, "0", 200, "200", "ok", "OK")
    has_data = any(
        named.get(name) not in (None, "", {}, [] if failed else None) for name in ("data", "result")
    )
    if has_data or not named.keys() <= _ABOUT_ERRORS or not _MESSAGES & named.keys():
        return False
    if "code" not in named and "errorcode" not in named and "name" in named:
        return False
    return any(
        isinstance(named.get(name), str) for name in ("message", "msg", "detail", "reason")
    ) and (alone or "code" in named or "errorcode" in named or "error" in named)


def said(value: Any) -> str:
    """Return what an error says, in its own words, in whichever fields and at whatever depth they are."""
    found = words(dict(value) if isinstance(value, Mapping) else value)
    return found or "; ".join(_leaves(value, 0))[:400]


def _leaves(value: Any, depth: int) -> list[str]:
    if isinstance(value, str) and depth:
        return [value[:200]]
    if depth > 3 or not isinstance(value, Mapping | list):
        return []
    items = (
        list(value.items())[:8]
        if isinstance(value, Mapping)
        else [("", item) for item in value[:8]]
    )
    return [
        f"{name}: {leaf}" if name and depth < 2 and isinstance(item, list) else leaf
        for name, item in items
        for leaf in _leaves(item, depth + 1)
    ][:5]
