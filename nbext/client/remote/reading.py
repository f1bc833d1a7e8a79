"""The decoder of a stranger's answers: what one says, whatever its shape: a table, a job, or where to find either.

In order: what the settings say, the HTTP status, the content, an error in it, then exactly one table, one
id, one address. Of two equal readings none is taken: `AmbiguousAnswer` names both, and the line that chooses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from nbext.client.decode import Reading, State, Want, read_arrow
from nbext.client.files import csv_text
from nbext.client.http.body import Answer, Incoming, retry_after
from nbext.client.http.errors import of_problem, shown, words
from nbext.client.remote import content, tables
from nbext.client.remote.field_names import IDS, STATUSES, URLS, WRAPPERS, bare, joined, places, state_of
from nbext.client.remote.paging import next_of, stated
from nbext.client.remote.profile import Profile, pasteable
from nbext.core.constants import SEGMENT_ID, SEGMENT_ID_PATTERN
from nbext.core.operations import ARROW_TYPE
from nbext.core.strict_json import NotJson
from nbext.errors import AmbiguousAnswer, ApiError, ProtocolError
from nbext.settings import Secret

NO_PROFILE: Final = Profile({})


class Stranger:
    """Decodes the answers of a service that is not ours, as the settings under ``remote`` say and as they look."""

    def __init__(self, remote: Mapping[str, Any], key: Secret, max_body: int) -> None:
        self._profile, self._key, self._max_body = Profile(remote), key, max_body
        self.types: Mapping[str, str] = self._profile.types

    def read(self, came: Incoming, want: Want, types: Mapping[str, str]) -> Reading:
        """Return what the answer says; CSV and Arrow become tables while they arrive, anything else is read whole."""
        kind = came.content_type
        if want in (Want.SEGMENT, Want.TABLE):
            if kind == ARROW_TYPE:
                return Reading(table=read_arrow(came), stated=stated(None, came.headers))
            if kind in csv_text.MEDIA_TYPES or (kind in csv_text.VAGUE_TYPES and _looks_like_csv(came)):
                table = csv_text.read_stream(came, {**self.types, **types})
                return Reading(table=table, stated=stated(None, came.headers))
        return read(came.whole(self._max_body), want, self._profile, self._key)


def _looks_like_csv(came: Incoming) -> bool:
    head = came.peek(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    return head[:1] not in (b"", b"{", b"[", b'"', b"<") and (b"\n" in head or b"," in head)


def read(answer: Answer, want: Want, profile: Profile = NO_PROFILE, key: Secret | None = None) -> Reading:
    """Return what the answer says."""
    try:
        return _read(answer, want, profile, key)
    except RecursionError:
        # What JSON still takes may be too deep for those who walk it.
        raise ProtocolError("The answer is nested too deeply.") from None
    except NotJson as error:
        raise ProtocolError(f"The answer is not JSON: {error}.") from None


def _read(answer: Answer, want: Want, profile: Profile, key: Secret | None) -> Reading:
    found = content.opened(answer)
    if found.table is not None:
        return Reading(table=found.table, warnings=found.warnings)
    reading = Reading(document=found.document, warnings=found.warnings, retry_after=retry_after(answer.headers))
    if found.empty:
        return _of_nothing(answer, want, reading)
    _read_job(reading, answer, want, profile, key)
    _raise_error(reading, answer.status if found.status is None else found.status, want, profile, key)
    if want is Want.RECORD:
        reading.records = [_record(reading.document, profile)]
    elif want is not Want.RECEIPT:
        _read_table(reading, answer, profile)
    _check(reading, want, key)
    return reading


def _of_nothing(answer: Answer, want: Want, reading: Reading) -> Reading:
    reading.id = _id_in_location(answer)
    if want is Want.RECEIPT:
        return reading
    if want is Want.SEGMENT and reading.id and answer.status in (201, 202):
        reading.state = State.RUNNING
        return reading
    raise ProtocolError(f"The service answered {answer.status} without a body instead of {want.value}.")


def _read_job(reading: Reading, answer: Answer, want: Want, profile: Profile, key: Secret | None) -> None:
    if want is not Want.SEGMENT:
        return
    document = reading.document
    reading.id = _id_of(document, profile) or _id_in_location(answer)
    if reading.id is not None and not SEGMENT_ID.match(reading.id):
        raise ProtocolError(f"{shown(reading.id, key, 80)!r} is not a segment id. Ids have letters, digits, - and _.")
    reading.word = _word_of(document, profile)
    if reading.word is not None:
        reading.state = state_of(reading.word)
    elif answer.status == 202:
        reading.state = State.RUNNING
    reading.url = _url_of(document, profile)
    reading.reason = _reason(document)


def _id_in_location(answer: Answer) -> str | None:
    if answer.status not in (201, 202):
        return None
    last = re.search(rf"/segments?/({SEGMENT_ID_PATTERN})/?(?:\?.*)?\Z", answer.headers.get("Location", ""))
    return last[1] if last else None


def _id_of(document: Any, profile: Profile) -> str | None:
    chosen = profile.find("id", document)
    if chosen is not None:
        return str(chosen)
    if isinstance(document, str):
        # A word such as "ok" is not an id.
        is_id = SEGMENT_ID.match(document) and state_of(document) is State.RUNNING and len(document) > 2
        return document if is_id else None
    found = {
        joined(path, name): str(value)
        for path, place in places(document)
        for name, value in place.items()
        if bare(name) in IDS and (isinstance(value, str) or type(value) is int) and value != ""
    }
    return _only(found, "id")


def _only(found: Mapping[str, str], name: str) -> str | None:
    """Return the one value, or None; several different ones are an error."""
    if len(set(found.values())) > 1:
        raise _ambiguous(name, list(found))
    return next(iter(found.values()), None)


def _ambiguous(name: str, candidates: list[str]) -> AmbiguousAnswer:
    line = pasteable(name, candidates[0])
    # Names of fields are a stranger's text too.
    named = ", ".join(shown(path, length=80) for path in candidates[:6])
    return AmbiguousAnswer(
        f"The answer has {len(candidates)} candidates for its {name}: {named}. "
        f"Choose one with `%nbext set {line}`, or with that line under [tool.nbext] in pyproject.toml.",
        candidates=candidates,
        setting=line,
    )


def _word_of(document: Any, profile: Profile) -> str | None:
    chosen = profile.find("status", document)
    if chosen is not None:
        return str(chosen)
    # The innermost place speaks of the job; an outer "success" speaks of the call.
    word = None
    for _, place in places(document):
        for name, value in place.items():
            if bare(name) in STATUSES:
                word = _status_text(value) or word
    return word


def _status_text(value: Any) -> str | None:
    if isinstance(value, Mapping):
        value = next((value[name] for name in value if bare(name) in (*STATUSES, "code", "value")), None)
    return value if isinstance(value, str) and re.search("[A-Za-z]", value) else None


def _url_of(document: Any, profile: Profile) -> str | None:
    chosen = profile.find("url", document)
    if chosen is not None:
        return str(chosen)
    if isinstance(document, str):
        return document if re.match(r"https?://\S+\Z", document) else None
    found = {
        joined(path, name): value
        for path, place in places(document)
        for name, value in place.items()
        if bare(name) in URLS and isinstance(value, str) and re.match(r"(https?:/)?/\S+\Z", value)
    }
    return _only(found, "url")


def _reason(document: Any) -> str:
    for _, place in places(document):
        for name in place:
            if bare(name) in ("error", "errors", "errormessage", "failurereason", "reason", "message", "statusmessage"):
                said = words(place[name])
                if said:
                    return said
    return ""


def _raise_error(reading: Reading, status: int, want: Want, profile: Profile, key: Secret | None) -> None:
    """Raise the error inside an answer of status 200; a failed job is known by its state."""
    if reading.id is not None and reading.state is not None and "error" not in profile:
        return
    document = reading.document
    chosen = profile.find("error", document)
    said = words(chosen) if chosen else _error_in(document)
    if said is None and status < 400:
        return
    problem = document if isinstance(document, dict) else {}
    # A gateway that turns every answer into a 200 leaves the status in the body.
    inner = next((v for k, v in problem.items() if bare(k) in ("statuscode", "code", "status") and type(v) is int), 0)
    status = inner if 400 <= inner < 600 else status
    if status >= 400:
        raise of_problem(status, problem, said or words(document), key)
    raise ApiError(f"The service answered with an error: {shown(said, key, 400)}", status=status, problem=problem)


def _error_in(document: Any) -> str | None:
    for path, place in places(document):
        named = {bare(name): value for name, value in place.items()}
        # Many services send "error": null, or an empty list of errors, with every good answer.
        for name in ("error", "errors", "errormessage"):
            if named.get(name) not in (None, False, "", [], {}, 0):
                return words(named[name]) or str(named[name])
        failed = named.get("success") is False or named.get("ok") is False or named.get("succeeded") is False
        if failed or (not path and named.get("status") in ("error", "fail", "failed", "failure", "ERROR")):
            return words(place) or "the service says that it failed, but not why"
    return None


def _record(document: Any, profile: Profile) -> dict[str, Any]:
    """Return the one record of an answer: its object, or the one that its wrappers hold."""
    # The path was set for segments: where it leads to nothing, the record is where it always is.
    chosen = profile.find("rows", document)
    document = document if chosen is None else chosen
    # {"data": {"token": {...}}}: no service was seen to wrap a record more than thrice.
    for _ in range(4):
        if isinstance(document, list):
            if len(document) != 1:
                raise ProtocolError(f"Expected one record, but {len(document):,} came.")
            document = document[0]
        inner = _wrapped(document)
        if inner is None:
            break
        document = inner
    if not isinstance(document, dict) or not document:
        raise ProtocolError(f"Expected one record, but the answer is {_kind(document)}.")
    return document


_RECORD_WRAPPERS = WRAPPERS | {"token", "nft", "collection", "contract", "asset", "item", "items", "tokens", "nfts"}
_RECORD_FIELDS = {"address", "contractaddress", "tokenaddress", "name", "symbol", "decimals", "tokentype"}


def _wrapped(document: Any) -> Any:
    if not isinstance(document, dict) or any(bare(name) in _RECORD_FIELDS for name in document):
        return None
    inner = {
        name: value
        for name, value in document.items()
        if bare(name) in _RECORD_WRAPPERS and isinstance(value, dict | list)
    }
    if len(inner) > 1:
        raise _ambiguous("rows", [joined("", name) for name in inner])
    return next(iter(inner.values()), None)


def _read_table(reading: Reading, answer: Answer, profile: Profile) -> None:
    document = reading.document
    if "rows" in profile:
        found = _chosen_rows(profile, document)
    else:
        candidates = tables.tables(document)
        if len(candidates) > 1:
            raise _ambiguous("rows", [candidate.path for candidate in candidates])
        found = candidates[0] if candidates else None
    # What a running segment has so far is not its result.
    if found is None or (reading.state is State.RUNNING and reading.id):
        return
    reading.records, reading.types = found.records, found.types
    chosen = profile.find("next", document)
    if chosen is not None or "next" in profile:
        is_url = isinstance(chosen, str) and re.match(r"https?://|/|\?", chosen)
        reading.next = None if chosen in (None, "") else str(chosen) if is_url else {"cursor": str(chosen)}
    else:
        reading.next = next_of(document, answer.headers, len(found.records))
    total = profile.find("total", document)
    reading.stated = {"total": total} if type(total) is int else stated(document, answer.headers)


def _chosen_rows(profile: Profile, document: Any) -> tables.Found | None:
    rows = profile.find("rows", document)
    if rows is None:
        return None
    holder = document if isinstance(document, dict) else None
    table = tables.rows_of(rows, "", holder) if isinstance(rows, list) else None
    if table is None:
        raise ProtocolError(f"remote.paths.rows leads to {_kind(rows)} instead of a list of objects, lists or texts.")
    return table


def _check(reading: Reading, want: Want, key: Secret | None) -> None:
    if want is Want.RECEIPT:
        if not isinstance(reading.document, dict | str):
            raise ProtocolError(f"Expected an object, but the answer is {_kind(reading.document)}.")
        return
    if want is Want.SEGMENT and (reading.id or reading.url):
        return
    if reading.rows is None:
        raise ProtocolError(f"Expected {want.value}, but the answer is {_kind(reading.document, key)}.")


def _kind(value: Any, key: Secret | None = None) -> str:
    if isinstance(value, Mapping):
        names = ", ".join(shown(name, key, 40) for name in list(value)[:8])
        return f"an object with {names or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value):,} values"
    return "null" if value is None else f"{shown(repr(value), key, 60)}"
