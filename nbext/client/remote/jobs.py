"""The job that an answer speaks of: its id, its state, and where its state and its rows are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from nbext.client.decode import State
from nbext.client.http.body import Answer
from nbext.client.http.errors import redacted, shown, words
from nbext.client.remote.field_names import IDS, PLAIN_URLS, POLLED_AT, bare, is_url, joined, places
from nbext.client.remote.paging import Page
from nbext.client.remote.profile import Profile, ambiguous
from nbext.client.remote.status import state_of, status_of
from nbext.client.validate import is_foreign_id
from nbext.core.rules import SEGMENT_ID, SEGMENT_ID_PATTERN
from nbext.errors import AmbiguousAnswer, ProtocolError
from nbext.settings import Secret


def read_job(page: Page, answer: Answer, profile: Profile, key: Secret | None) -> None:
    """Read what an answer says of a job into the page."""
    document = page.document
    page.id = _id_of(document, answer.headers, profile) or id_in_location(answer)
    # A path is logged: an id that echoes the key must not become one.
    if page.id is not None and (not is_foreign_id(page.id) or redacted(page.id, key) != page.id):
        raise ProtocolError(
            f"{shown(page.id, key, 80)!r} is not a segment id: it is too long, or has hidden parts."
        )
    chosen = profile.find("status", document, answer.headers)
    if isinstance(document, str) and profile.state_of(document):
        # A word alone: Allium answers "running". Any other text may be an id.
        chosen = document
    status = status_of(document, chosen, profile.state_of)
    page.word, page.state = status.word, status.state
    if page.state is None and answer.status == 202:
        page.state = State.RUNNING
    # Without an id a word may be of anything, but a part is one.
    partial = re.search("partial|truncated", page.word or "", re.IGNORECASE)
    if (page.id is not None or partial) and page.word is not None and page.state is None:
        page.doubt = _unknown(page.word, key)
    page.url = _url_of(document, answer.headers, profile)
    polled = profile.find("poll", document, answer.headers)
    named = _addresses(document, lambda plain: POLLED_AT.fullmatch(plain) is not None)
    found = polled or monitor(answer) or next(iter(named.values()), None)
    page.poll = None if found is None or (polled is None and page.id) else str(found)
    plain = _addresses(document, PLAIN_URLS.__contains__)
    if page.state is State.RUNNING and page.url in plain.values():
        # The rows are not there yet, if ever: beside an id it is the address of the job itself.
        page.poll, page.url = page.poll or (None if page.id else page.url), None
    page.reason = _reason(document)


def _unknown(word: str, key: Secret | None) -> AmbiguousAnswer:
    """Return the error that asks what a status word means."""
    plain = shown(word, key, 60)
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


def _id_of(document: Any, headers: Mapping[str, str], profile: Profile) -> str | None:
    chosen = profile.find("id", document, headers)
    if chosen is not None:
        return profile.id_from(str(chosen), document)
    if isinstance(document, str):
        # A word such as "ok" is not an id.
        is_id = SEGMENT_ID.match(document) and state_of(document) is None and len(document) > 2
        return document if is_id else None
    found = {
        joined(path, name): str(value)
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
    return _only(runs or found, "id")


def _only(found: Mapping[str, str], name: str) -> str | None:
    """Return the one value, or None; several different ones are an error."""
    if len(set(found.values())) > 1:
        raise ambiguous(name, list(found))
    return next(iter(found.values()), None)


def _url_of(document: Any, headers: Mapping[str, str], profile: Profile) -> str | None:
    chosen = profile.find("url", document, headers)
    if chosen is not None:
        return str(chosen)
    if isinstance(document, str):
        return document if re.match(r"https?://\S+\Z", document) else None
    return _only(_addresses(document, is_url), "url")


def _addresses(document: Any, wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the addresses under the names that are wanted, by path."""
    return {
        joined(path, name): value
        for path, place in places(document)
        for name, value in place.items()
        if wanted(bare(name)) and isinstance(value, str) and re.match(r"(https?:/)?/\S+\Z", value)
    }


def _reason(document: Any) -> str:
    for _, place in places(document):
        for name in place:
            if bare(name) in (
                "error",
                "errors",
                "errormessage",
                "failurereason",
                "reason",
                "message",
                "statusmessage",
            ):
                said = words(place[name])
                if said:
                    return said
    return ""
