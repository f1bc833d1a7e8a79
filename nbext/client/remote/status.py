"""What an answer says of the job and of the call: its id, done, not done, failed; and errors under status 200.

Also where the job's state and its rows are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from nbext.client.decode import State
from nbext.client.remote.content import ForeignPage
from nbext.client.remote.field_names import (
    IDS,
    PLAIN_URLS,
    POLLED_AT,
    ROWS,
    STATUSES,
    bare,
    by_bare,
    fields_of,
    first_named,
    is_url,
    names,
    number_of,
    places,
    state_of,
    truth_of,
    vocabulary,
)
from nbext.client.remote.profile import ForeignProfile, ambiguous
from nbext.client.validate import is_foreign_id
from nbext.core.rules import SEGMENT_ID, SEGMENT_ID_PATTERN
from nbext.errors import AmbiguousAnswer, ProtocolError
from nbext.http.body import Answer
from nbext.http.errors import one_line, words


def read_job(page: ForeignPage, answer: Answer, profile: ForeignProfile) -> None:
    """Read what an answer says of a job into the page."""
    document, headers = page.document, answer.headers
    is_begun = answer.status in (201, 202)
    own = re.search(rf"/segments?/({SEGMENT_ID_PATTERN})/?(?:\?.*)?\Z", headers.get("Location", ""))
    page.id = _id_of(document, headers, profile) or (own[1] if own and is_begun else None)
    if page.id is not None and not is_foreign_id(page.id):
        raise ProtocolError(
            f"{one_line(page.id, length=80)!r} is not a segment id: it is too long, or has hidden parts."
        )
    chosen = profile.find("status", document, headers)
    if isinstance(document, str) and profile.state_of(document):
        # A word alone: Allium answers "running". Any other text may be an id.
        chosen = document
    page.word, page.state = status_of(document, chosen, profile.state_of)
    # Without an id a number may be the call's own.
    of_job = page.word is not None and (page.id is not None or not says_whole("status", page.word))
    if of_job and page.state is None and answer.status != 202:
        page.doubt = _unknown(page.word or "", profile)
    fields = [("", "url", document)]
    if not isinstance(document, str):
        fields = list(fields_of(places(document)))
    reasons = (words(value) for _, name, value in fields if name in _REASONS)
    page.reason = next(filter(None, reasons), "")
    found = [
        (path, name, value)
        for path, name, value in fields
        if isinstance(value, str) and re.match(r"(https?:/)?/\S+\Z", value)
    ]
    poll, url = (profile.find(name, document, headers) for name in ("poll", "url"))
    if url is None and not profile.is_absent("url"):
        urls = {path: value for path, name, value in found if is_url(name)}
        url = _only(urls, "url", profile.operation)
    if poll is None and not page.id and not profile.is_absent("poll"):
        named = [headers.get(name) for name in _MONITORS if is_begun]
        named += [value for _, name, value in found if POLLED_AT.fullmatch(name)]
        poll = next(filter(None, named), None)
    # 202 says that it is accepted, and later that it still runs; where to ask may have been said before.
    begun = answer.status == 202 or (page.empty and (page.id or poll))
    page.state = page.state or (State.RUNNING if begun else None)
    plain = [value for _, name, value in found if name in PLAIN_URLS]
    if page.state is State.RUNNING and url in plain:
        # The rows are not there yet, if ever: beside an id it is the address of the job itself.
        poll, url = poll or (None if page.id else url), None
    # Django REST framework names each object's own address: its description is there, and not its rows.
    if url in plain and str(url).rstrip("/").endswith(f"/segment/{page.id}"):
        url = None
    page.poll, page.url = (None if one is None else str(one) for one in (poll, url))


_MONITORS = ("Operation-Location", "Azure-AsyncOperation", "Location")


def _unknown(word: str, profile: ForeignProfile) -> AmbiguousAnswer:
    """Return the error that asks what a status word means."""
    plain = one_line(word, length=60)
    lines = [profile.adding(f"states.{state}", [plain]) for state in ("done", "running", "failed")]
    return AmbiguousAnswer(
        f"nbext does not know what the service's status {plain!r} means. If it means done: `%nbext set {lines[0]}`. "
        f"Otherwise write states.running or states.failed in its place.",
        candidates=lines,
        setting=lines[0],
    )


def _id_of(document: Any, headers: Mapping[str, str], profile: ForeignProfile) -> str | None:
    chosen = profile.find("id", document, headers)
    if chosen is not None or profile.is_absent("id"):
        return None if chosen is None else str(chosen)
    if isinstance(document, str):
        # A word such as "ok" is not an id.
        is_id = SEGMENT_ID.match(document) and state_of(document) is None and len(document) > 2
        return document if is_id else None
    # The id of a JSON-RPC answer is the question's, and JSON-LD's @id is an address.
    holders = ((path, place) for path, place in places(document) if "jsonrpc" not in place)
    found = {
        path: str(value)
        for path, plain, value in fields_of(holders)
        if plain in IDS and type(value) in (str, int) and value != "" and '"@' not in path
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


_REASONS = names("reasons")


_OF_THE_CALL = names("states.of_the_call")
_FLAGS = {
    state: names(f"flags.{state.value}")
    for state in (State.FAILED, State.CANCELLED, State.RUNNING, State.COMPLETED)
}
_SHARES, _PERCENT, _ENDS = names("progress.share"), names("progress.percent"), names("ends")


def status_of(
    document: Any, chosen: Any, known: Callable[[str], State | None]
) -> tuple[str | None, State | None]:
    """Return the service's own word and the state of the job that an answer speaks of.

    What says that it is not done outranks what says it is. A word without a state is one that nobody knows.

    ``chosen`` is what the settings point to, and ``known`` the state of a word, as they and `state_of` have it.
    """
    if chosen is not None:
        spelled = status_text(chosen) or str(chosen).lower()
        return spelled, known(spelled) or _OF_TRUTH.get(truth_of(chosen))
    pairs = [(plain, value) for _, plain, value in fields_of(places(document))]
    texts = [status_text(value) for name, value in pairs if name in STATUSES]
    # The innermost speaks of the job; an outer "success" of the call.
    spoken = sorted(filter(None, texts), key=lambda text: text.lower() not in _OF_THE_CALL)
    word = spoken[-1] if spoken else None
    state, is_calls = known(word) if word else None, (word or "").lower() in _OF_THE_CALL
    said = {state, *(_flag(name, value) for name, value in pairs)}
    if word is None or is_calls:
        said |= {_share(name, value) for name, value in pairs}
        ends = [value for name, value in pairs if name in _ENDS]
        # "completedAt": null, and nothing else that speaks of the state.
        said |= {State.RUNNING} if ends and not any(ends) and said == {None} else set()
    order = (*ENDED_BADLY, State.RUNNING, State.COMPLETED)
    return word, next((one for one in order if one in said), None)


ENDED_BADLY = (State.FAILED, State.TIMED_OUT, State.CANCELLED, State.EXPIRED)
_OF_TRUTH: dict[bool | None, State] = {True: State.COMPLETED, False: State.RUNNING}


def status_text(value: Any) -> str | None:
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


def _flag(name: str, value: Any) -> State | None:
    """Return what a field that is true or false says of the state."""
    truth = truth_of(value)
    state = next((state for state, flags in _FLAGS.items() if name in flags), None)
    if state is State.COMPLETED and truth is not None:
        return _OF_TRUTH[truth]
    return state if truth else None


def _share(name: str, value: Any) -> State | None:
    """Return whether a progress is all of it: 1 may be all or one percent, and says nothing."""
    percent = name in _PERCENT
    if name == "queueposition":
        return State.RUNNING if number_of(value) else None
    if not percent and name not in _SHARES:
        return None
    if isinstance(value, Mapping):
        named = by_bare(value, 50)
        parts = ("done", "completed", "finished", "current", "processed")
        done, total = number_of(first_named(named, parts)), number_of(named.get("total"))
        return None if done is None or total is None else _OF_TRUTH[done >= total]
    if isinstance(value, str):
        percent, value = percent or "%" in value, value.strip(" %")
    try:
        share = -1.0 if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        return None
    is_clear = share >= 0 and (percent or share != 1)
    return _OF_TRUTH[share >= (100 if percent or share > 1 else 1)] if is_clear else None


def says_whole(plain: str, value: Any) -> bool:
    """Say whether a field of that name is one that the rules here read, and says that the job or the call is whole."""
    number, text = number_of(value), str(value)
    if plain in STATUSES | _OUTCOMES:
        is_good = number in (0, 1) or 200 <= (number or 0) < 206
        return is_good if number is not None else state_of(text) is not None
    if plain in _MESSAGES:
        # Beside rows, a word of success.
        pattern = r"(?i)\b(ok|success\w*|completed?|done|finished|found)\b"
        return re.search(pattern, text) is not None
    if plain in _TRUTHS:
        return truth_of(value) is not None
    is_time = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?\Z", value)
    return bool(is_time or POLLED_AT.fullmatch(plain)) or plain in _READ or is_url(plain)


_OUTCOMES = names("outcomes")
_ERRORS, _GOOD, _MESSAGES = names("errors"), names("good"), names("messages")
_ABOUT_ERRORS = names("errors", "messages", "about_errors")
_CODES, _BAD_WORDS, _FAILED_FLAGS = names("codes"), names("bad_words"), names("flags.failed")
_TRUTHS = _GOOD.union(*_FLAGS.values())
_READ = _ERRORS | _SHARES | _PERCENT | names("ends")
_NONE_FOUND = re.compile(r"\s*no\b.{0,60}\bfound", re.IGNORECASE)


def error_in(document: Any, *, receipt: bool = False) -> str | None:
    """Return the words of an error that came under a status of success, or None.

    A ``receipt`` says little, and that is no error: a message alone, or no data.
    """
    if isinstance(document, list):
        some = [by_bare(one) if isinstance(one, Mapping) else {} for one in document[:20]]
        is_error = bool(some) and all(
            one.keys() & {"code", "errorcode", "error"} and _is_message(one) for one in some
        )
        return said(document[:20]) if is_error else None
    found = (
        _error_of(by_bare(place), top=not path, receipt=receipt) for path, place in places(document)
    )
    return next(filter(None, found), None)


def error_in_rows(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the words of an error that came as a row: alone, or where the rows break off; None without one."""
    # Of a million rows of the same names the first speaks for all.
    odd = (record for record in records if record.keys() != records[0].keys())
    some = map(by_bare, [*records[:1], *islice(odd, 1000)])
    errors = (
        _error_of(named, top=False, receipt=True)
        for named in some
        if 0 < len(named) <= 4 and named.keys() <= _ERRORS | _MESSAGES | _CODES
    )
    return next(filter(None, errors), None)


def _error_of(named: Mapping[str, Any], *, top: bool, receipt: bool) -> str | None:
    """Return the words of the error that an object speaks of; None of any other object."""
    # Rows beside an error are not its words.
    beside = {
        name: value
        for name, value in named.items()
        if not (isinstance(value, list) and name in ROWS) and name not in _ERRORS
    }
    # Many services send "error": null, or an empty list of errors, with every good answer.
    for name in vocabulary()["errors"]:
        if named.get(name) not in (None, False, "", [], {}, 0, "0", "false"):
            return said(named[name]) or said(beside) or str(named[name])[:200]
    codes = {name: number_of(named[name]) for name in _CODES & named.keys()}
    http = [n for n in codes.values() if n and (400 <= n < 600 or n < 0)]
    result, message = named.get("result"), str(named.get("message"))
    bad = any(
        isinstance(named.get(name), str) and bare(named[name]) in _BAD_WORDS
        for name in ("status", "result", "type", "code", "message")
    )
    # Etherscan's 0 is a failure, unless nothing was found.
    has_place = "message" in named and ("result" in named or "data" in named)
    zero = top and codes.get("status") == 0 and has_place
    is_error = (
        any(truth_of(named[name]) is False or named[name] == 0 for name in _GOOD & named.keys())
        or any(truth_of(named.get(name)) for name in _FAILED_FLAGS - {"failed"})
        # An id beside the word is a job's: its failure has an error of its own.
        or (bad and not IDS & named.keys())
        or (http and (_MESSAGES & named.keys() or (top and codes.get("code") not in http)))
        or (zero and (result or not _NONE_FOUND.match(message)))
        or (top and not receipt and _is_message(named))
    )
    if not is_error:
        return None
    more = result[:300] if isinstance(result, str) and bare(result) not in _BAD_WORDS else ""
    found = dict.fromkeys(filter(None, (said(beside), more)))
    return ": ".join(found) or "the service says that it failed, but not why"


def _is_message(named: Mapping[str, Any]) -> bool:
    """Say whether an object has a message, and no data: {"code": 7, "message": ...}, {"data": null, "message": ...}."""
    # No rows are data, unless a code says that it failed.
    failed = named.get("code", named.get("errorcode")) not in (None, 0, "0", 200, "200", "ok", "OK")
    empty: tuple[Any, ...] = (None, "", {}, [] if failed else None)
    some = {name: value for name, value in named.items() if value not in empty}
    # What has a name, and no code, is a thing with a description.
    is_thing = "name" in some and not {"code", "errorcode"} & some.keys()
    is_data = is_thing or {"data", "result"} & some.keys() or not some.keys() <= _ABOUT_ERRORS
    texts = [some.get(name) for name in ("message", "msg", "detail", "reason")]
    return not is_data and any(isinstance(text, str) for text in texts)


def prose_in(header: Sequence[str]) -> str | None:
    """Return the text of a CSV without a row whose first line names no columns: "Internal error, try later".

    >>> prose_in(["Internal error", " try later"]), prose_in(["address"]), prose_in(["id", "amount"])
    ('Internal error, try later', None, None)
    """
    plain = {bare(name) for name in header}
    are_names = len(header) > 1 and all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in header)
    if plain & _COLUMN_NAMES or (are_names and not plain <= _ABOUT_ERRORS):
        return None
    return ",".join(header)


_COLUMN_NAMES = names("ids", "column_names")


def said(value: Any) -> str:
    """Return what an error says, in its own words, in whichever fields and at whatever depth they are."""
    return words(value) or "; ".join(_leaves(value))[:400]


def _leaves(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value[:200]]
    if depth > 3 or not isinstance(value, Mapping | list):
        return []
    items = value.items() if isinstance(value, Mapping) else (("", item) for item in value)
    return [
        f"{name}: {leaf}" if name and isinstance(item, list) else leaf
        for name, item in islice(items, 8)
        for leaf in _leaves(item, depth + 1)
    ][:5]
