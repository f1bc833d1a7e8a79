"""The decoder of a stranger's answers: what one says, whatever its shape: a table, a job, or where to find either.

In order: what the settings say, the HTTP status, the content, an error in it, then exactly one table, one
id, one address. Of two equal readings none is taken: `AmbiguousAnswer` names both, and the line that chooses.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nbext.client.decode import Reading, State, Want
from nbext.client.remote import content, tables
from nbext.client.remote.content import ForeignPage
from nbext.client.remote.field_names import (
    ROWS,
    bare,
    by_bare,
    fields_of,
    first_named,
    is_address,
    name_set,
    names,
    path_to,
    places,
    state_of,
    to_ours,
    truth_of,
    vocabulary,
)
from nbext.client.remote.last_answer import LastAnswer, outlined
from nbext.client.remote.paging import Walk, unknown_notes
from nbext.client.remote.profile import OPERATIONS, ForeignProfile, ambiguous, with_profile
from nbext.client.remote.signs import signs_of
from nbext.client.remote.status import (
    ENDED_BADLY,
    error_in,
    error_in_rows,
    prose_in,
    read_job,
    said,
    status_of,
)
from nbext.core.chains import chain_of
from nbext.core.strict_json import NotJson
from nbext.core.wire import NFT_FIELDS, SEARCH_FIELDS, TOKEN_FIELDS
from nbext.errors import ApiError, NotFound, ProtocolError, ValidationError
from nbext.http.base_url import Origin
from nbext.http.body import Answer, Incoming, retry_after
from nbext.http.errors import of_problem, one_line, redacted, words
from nbext.http.transport import Call
from nbext.settings import Secret

NO_PROFILE: Final = ForeignProfile({})
_METADATA: Final = {
    "token": TOKEN_FIELDS,
    "nft": NFT_FIELDS,
    "search": {**SEARCH_FIELDS, "decimals": "integer"},
}


class Stranger:
    """Decodes the answers of a service that is not ours, as the settings under ``remote`` say and as they look."""

    def __init__(self, remote: Mapping[str, Any], host: str, key: Secret, max_body: int) -> None:
        self._key, self._max_body = key, max_body
        remote = with_profile(remote, host)
        self._profiles = {operation: ForeignProfile(remote, operation) for operation in OPERATIONS}
        self.idempotent, self.profile = (
            self._profiles["segment"].idempotent,
            str(remote.get("profile", "none")),
        )

    def types(self, operation: str) -> Mapping[str, str]:
        """Return the types of columns, by our names, that the settings state for all answers of an operation."""
        return self._profiles[operation].types

    def outline(
        self, answer: Answer, operation: str, reading: Reading | None, failure: str
    ) -> LastAnswer:
        """Return the outline of an answer, as it was read, or as the ``failure`` says that it was not."""
        return outlined(
            answer, operation, reading, self._profiles[operation], self._key, failure=failure
        )

    def read(
        self,
        came: Incoming,
        want: Want,
        types: Mapping[str, str],
        operation: str,
        folder: Path | None = None,
    ) -> ForeignPage:
        """Return what the answer says, under our names for its columns; the rows of a table wait in the ``folder``."""
        profile, fields = self._profiles[operation], _METADATA.get(operation, {})
        source = content.Unread(came, types, self._max_body, folder)
        page = decoded(source, want, profile)
        # A path is logged: an id that echoes the key must not become one.
        if redacted(page.id, self._key) != page.id:
            raise ProtocolError("The id of the segment has the API key in it.")
        page.warnings = redacted(page.warnings, self._key)
        page.signs.unknown = redacted(page.signs.unknown, self._key)
        page.types = {profile.columns.get(name, name): kind for name, kind in page.types.items()}
        if page.table is not None:
            names = profile.renamed(dict.fromkeys(page.table.column_names))
            page.table = page.table.rename_columns(list(to_ours(names, fields)))
            # Text of CSV becomes integers as a uint256 does: where every value fits.
            fields = {n: "uint256" if kind == "integer" else kind for n, kind in fields.items()}
        elif page.records and (profile.columns or fields):
            page.records = [to_ours(profile.renamed(record), fields) for record in page.records]
        present = page.table.column_names if page.table is not None else (page.records or [{}])[0]
        page.types |= {name: kind for name, kind in fields.items() if name in present}
        return page

    def pages(
        self,
        read: Callable[[Call], Reading],
        origin: Origin,
        page: Any,
        call: Call,
        **bounds: Any,
    ) -> Iterator[ForeignPage]:
        """Yield an answer's pages, the first one being read already; an error, where not all rows can be asked for."""
        return Walk(read, origin, self._profiles[call.operation], **bounds).pages(page, call)

    def refuse_other(self, record: Mapping[str, Any], chain: str, address: str) -> None:
        """Refuse a record that says, wherever it does, that it is of another contract or chain than was asked for."""
        if any(record.get(name) is False for name in ("found", "exists")):
            raise NotFound(f"The service has no contract {address} on {chain}.", status=404)
        other = _other(record, _address_in(address.lower(), False), _chain_in(chain, False), 3)
        if other:
            asked = address if other.startswith("0x") else f"a contract on {chain}"
            raise ProtocolError(f"The service was asked for {asked}, and answered for {other}.")


_OWN_ADDRESS, _OWN_ID, _OWN_CHAIN, _OWN_PLACES = (
    names(f"own.{table}") for table in ("address", "identifier", "chain", "place")
)


def _other(
    place: Mapping[str, Any], asked: str | None, number: int | None, deep: int
) -> str | None:
    """Return the other contract, or chain, that a record says it is of; None where it says none."""
    for name, value in place.items():
        plain, inner = bare(name), value[:100] if isinstance(value, list) else [value]
        if plain in _OWN_PLACES and deep:
            nested = [one for one in inner if isinstance(one, Mapping)]
            others = [_other(one, asked, number, deep - 1) for one in nested]
            # A contract of several chains has an address on each.
            if others and all(others):
                return others[0]
        # {"S": "0x..."}, {"id": 137, "name": "polygon"}.
        parts = value.values() if isinstance(value, Mapping) else inner
        texts = [str(one).strip().lower() for one in parts if isinstance(one, str | int)]
        is_id, of_contract = plain in _OWN_ID, plain in _OWN_ADDRESS | _OWN_ID
        of_chain = plain in _OWN_CHAIN | _OWN_ID
        addresses = {_address_in(text, not is_id) for text in texts if of_contract} - {None}
        chains = {_chain_in(text, is_id) for text in texts if of_chain} - {None}
        if asked and addresses and asked not in addresses:
            return min(filter(None, addresses))
        if number and chains and number not in chains:
            return f"chain {min(filter(None, chains))}"
    return None


def _address_in(text: str, may_be_bare: bool) -> str | None:
    """Return the address in a text: 0x..., eip155:1/erc20:0x..., or its digits alone where the name says what it is."""
    found = re.fullmatch(r"(?:.*[:/])?(0x)?([0-9a-f]{40})", text)
    return f"0x{found[2]}" if found and (found[1] or may_be_bare) else None


def _chain_in(text: str, is_identifier: bool) -> int | None:
    """Return the number of the chain that a text names; None where nobody knows it."""
    if found := re.match(r"(eip155:)?([0-9]{1,18}|0x[0-9a-f]{1,15})(?![\w.-])", text):
        return int(found[2], 0) if found[1] or not is_identifier else None
    for alias in () if is_identifier else (text, text.removesuffix("-mainnet")):
        with contextlib.suppress(ValidationError):
            return chain_of(alias).id
    return None


def decoded(source: content.Unread, want: Want, profile: ForeignProfile) -> ForeignPage:
    """Return what the answer says."""
    try:
        return _read(source, want, profile)
    except RecursionError:
        # What JSON still takes may be too deep for those who walk it.
        raise ProtocolError("The answer is nested too deeply.") from None
    except NotJson as error:
        raise ProtocolError(f"The answer is not JSON: {error}.") from None


def _read(source: content.Unread, want: Want, profile: ForeignProfile) -> ForeignPage:
    came = source.came
    if want is Want.RECEIPT:
        return _receipt(came.whole(source.most), profile)
    page = content.opened(source, profile.types_by_theirs, of_job=want is Want.SEGMENT)
    page.retry_after = retry_after(came.headers)
    answer = came.answer
    if answer is None:
        if page.table is not None:
            _refuse_text(page.table, {**profile.columns, **source.types})
        page.signs = signs_of(None, came.headers, None, profile)
        page.warnings += [one_line(note, length=300) for note in page.signs.notes]
        return page
    is_job = want is Want.SEGMENT and profile.operation == "segment"
    page.document = document = tables.unlisted(page.document, of_job=is_job)
    if want is Want.SEGMENT:
        read_job(page, answer, profile)
    elif want is Want.TABLE:
        page.word, page.state = status_of(document, None, profile.state_of)
    _raise_error(page, answer.status, want, profile)
    if want is not Want.RECORD:
        _read_table(page, answer, profile)
        if page.rows and page.state in ENDED_BADLY and not is_job:
            raise _error(f"its status is {page.word or page.state.value}")
    elif not page.empty:
        if answer.status == 202:
            raise ProtocolError("The service has accepted the question, but has no record yet.")
        # A path that was set for segments leads to nothing here: the record is where it always is.
        chosen = profile.find("rows", document)
        page.records = [tables.the_record(document if chosen is None else chosen)]
        # Of a record only notes are signs: how old it is, which of a hundred is said once, and warnings.
        notes = signs_of(document, came.headers, None, profile).notes
        page.warnings += [one_line(note.partition(" = ")[0], length=300) for note in notes]
    # A JSON document ends by itself; lines of JSON do not.
    page.unproven = page.unproven and page.rows is not None
    page.cut = page.cut and (page.rows or 0) > 1
    # What runs is asked for again: by its id, or where an earlier answer said.
    again = page.id or page.url or page.poll or (page.state and page.word is not None)
    runs = want is Want.SEGMENT and (again or page.state is State.RUNNING)
    if page.rows is None and not runs:
        kind = "empty" if page.empty else tables.kind_of(document)
        raise ProtocolError(f"Expected {want.value}, but the answer is {kind}.")
    return page


def _refuse_text(table: Any, known: Mapping[str, str]) -> None:
    """Refuse a table that is an error as a row, or a text in place of a header."""
    text = error_in_rows(table.to_pylist() if 0 < table.num_rows <= 20 else [])
    if not table.num_rows and known.keys().isdisjoint(table.column_names):
        text = prose_in(table.column_names)
    if text:
        raise _error(text)


def _error(text: object, status: int = 200, problem: Mapping[str, Any] | None = None) -> ApiError:
    said = f"The service answered with an error: {one_line(text, length=400)}"
    return ApiError(said, status=status, problem=problem)


def _receipt(answer: Answer, profile: ForeignProfile) -> ForeignPage:
    """Return the answer to a sign-up: whatever comes under a status of success is one, unless it says an error."""
    try:
        page = content.of_document(answer)
    except (ProtocolError, NotJson):
        page = ForeignPage(document=answer.body[:20_000].decode("utf-8", "replace"))
    document = page.document
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    fields = list(fields_of(places(document)))
    refused = [
        said(document) or f"{path} says that it was not taken"
        for path, name, value in fields
        if _is_refused(name, value)
    ]
    if isinstance(document, str):
        title = re.search(r"<(?:title|h1)[^>]*>([^<]{1,200})", document, re.IGNORECASE)
        text = title[1] if title else document
        if _SAYS_ERROR.search(text[:200]) or _WALL.search(document):
            refused = [text]
        elif state_of(text) is not State.COMPLETED:
            page.warnings.append(f"The receipt is a text: {one_line(text, length=80)}")
    elif isinstance(document, bool | int) and document <= 0:
        refused = [str(document).lower()]
    elif message := words(document):
        # Whether it was taken is for people to read: "already exists" may be both.
        page.warnings.append(f"The service says: {one_line(message, length=200)}")
    if refused:
        raise _error(refused[0], answer.status)
    _raise_error(page, answer.status, Want.RECEIPT, profile)
    chosen = profile.find("status", document, answer.headers)
    word, state = status_of(document, chosen, profile.state_of)
    if state in ENDED_BADLY:
        raise _error(said(document) or word, answer.status)
    delivered = next((truth_of(value) for _, name, value in fields if name == "delivered"), None)
    page.document = {"status": word, "delivered": delivered}
    return page


_SAYS_ERROR = re.compile(
    r"\A\W*[45][0-9][0-9]\b|\b(err|error|reject(ed|ion)|too many|exceeded|false|fail(ed|ure)?|(in|not )valid|"
    r"bad request|denied|forbidden|unauthori[sz]ed|not found|unavailable|sorry|(log|sign)\s?(in|on))\b",
    re.IGNORECASE,
)
# A page that is shown in place of an answer.
_WALL = re.compile("|".join(names("walls")), re.IGNORECASE)
_TAKEN, _REFUSED = names("receipt.taken"), names("receipt.refused")


def _is_refused(name: str, value: Any) -> bool:
    is_no = truth_of(value) is False or value in (0, [])
    return (name in _TAKEN and is_no) or (
        name in _REFUSED and value not in (None, "", "0") and not is_no
    )


def _raise_error(page: ForeignPage, status: int, want: Want, profile: ForeignProfile) -> None:
    """Raise the error inside an answer of status 200; a failed job is known by its state."""
    if (
        page.id is not None
        and page.state not in (None, State.RUNNING, State.COMPLETED)
        and "error" not in profile.paths
    ):
        return
    document = page.document
    chosen = profile.find("error", document)
    text = (
        said(chosen) or str(chosen) if chosen else error_in(document, receipt=want is Want.RECEIPT)
    )
    status = page.wrapped or status
    if text is None and status < 400:
        return
    problem = document if isinstance(document, dict) else {}
    # A gateway that turns every answer into a 200 leaves the status in the body.
    inner = first_named(by_bare(problem), vocabulary()["codes"])
    status = inner if type(inner) is int and 400 <= inner < 600 else status
    if status >= 400:
        raise of_problem(status, problem, text or words(document))
    raise _error(text, status, problem)


def _read_table(page: ForeignPage, answer: Answer, profile: ForeignProfile) -> None:
    document = page.document
    as_of = next((value for _, name, value in fields_of(places(document)) if name == "asof"), None)
    page.as_of = as_of if isinstance(as_of, dict | None) else {"timestamp": str(as_of)}
    found = _rows_of(page, profile)
    if found is not None:
        if "rows" not in profile.paths:
            _refuse_groups(found, profile)
        document = _with_last_row(found, document)
        if text := error_in_rows(found.records):
            raise _error(text)
        if profile.operation != "search":
            # A hit may be of a chain whose addresses look otherwise.
            content.refuse_others(found.records)
        page.unnamed = found.unnamed
    source = None if found is None else found.source
    page.signs = signs_of(document, answer.headers, source, profile)
    totals = page.signs.totals or page.signs.counts
    page.stated = {"total": next(iter(totals.values()))} if totals else {}
    rows = 0 if found is None else len(found.records)
    _check_state(page, rows, profile)
    # What a running segment has so far is not its result.
    if page.state is State.RUNNING and (page.id or page.word or not rows or answer.status == 202):
        page.parts = []
        return
    page.warnings += [one_line(note, length=300) for note in page.signs.notes]
    if found is None:
        # Trino: an answer without rows, and the address of the next one.
        page.bare = profile.operation == "export" and any(
            isinstance(way, str) for way in page.signs.ways
        )
        if (page.id or page.word) and not page.bare:
            # What it says of the segment; the note on the rows' own answer comes with its last page.
            page.warnings += unknown_notes(page.signs.unknown, profile, "segment's description")
            if page.signs.go_on:
                hints = ", ".join(one_line(path, length=60) for path in page.signs.hints[:3])
                page.warnings.append(
                    f"The segment's description says that its rows are not all: {hints}."
                )
        page.records = [] if page.bare else None
        return
    if page.doubt is not None:
        if found.records:
            raise page.doubt
        return
    page.records, page.types = found.records, found.types
    if page.state is State.RUNNING and page.word is None and page.url is None and found.records:
        # Without an id there is no job to wait for: "done": false beside rows says that there are more of them.
        page.state, page.signs.go_on = None, True


def _refuse_groups(found: tables.FoundTable, profile: ForeignProfile) -> None:
    """Ask about rows that are in groups: {"batches": [{"rows": [...]}, {"rows": [...]}]}."""
    for record in found.records[:2]:
        inner = [
            (name, value[0]) for name, value in record.items() if value and isinstance(value, list)
        ]
        for name, one in inner:
            own = one.values() if isinstance(one, Mapping) else [one]
            if any(map(is_address, own)) and not any(map(is_address, record.values())):
                path = f"{found.path}[].{path_to('', name)}[]"
                raise ambiguous("rows", [path], profile.operation)


def _check_state(page: ForeignPage, rows: int, profile: ForeignProfile) -> None:
    """Read that it is too early to ask, and refuse to search what is not ready."""
    if page.signs.ways or page.url or page.poll:
        return
    waits = page.retry_after is not None and not rows and profile.operation != "search"
    if page.state is None and page.word is None and waits:
        page.state = State.RUNNING
    if page.state is State.RUNNING and profile.operation == "search":
        raise ProtocolError(
            "The service is not ready to be searched: it says so beside the rows. Try again later."
        )


def _with_last_row(found: tables.FoundTable, document: Any) -> Any:
    """Return the document with what a first or last row says of it, which is no row: {"remaining": 15}.

    Such a row has no address and shares no field with the others, or has a field that they do not have and not their
    address. It is taken out of the rows.
    """
    rows, said_last = found.records, dict[str, Any]()
    for place, other in ((-1, 0), (0, -1)):
        row = rows[place] if rows else {}
        others = rows[other].keys() if len(rows) > 1 else set[str]()
        alone = not row.keys() & others
        addressed = any(is_address(rows[other][name]) for name in others - row.keys())
        odd = len(rows) > 2 and (alone or (addressed and row.keys() - others))
        about = alone and _OF_ROWS.issuperset(map(bare, row))
        if 0 < len(row) <= 8 and (about or (odd and not any(map(is_address, row.values())))):
            said_last |= rows.pop(place)
    if not said_last:
        return document
    word, state = status_of(said_last, None, state_of)
    if text := error_in(said_last) or (word if state in ENDED_BADLY else None):
        raise _error(text)
    return {**(document if isinstance(document, dict) else {}), **said_last}


_OF_ROWS = name_set("cursor nextcursor meta metadata pagination paging pageinfo")


def _parts(page: ForeignPage, profile: ForeignProfile) -> tables.FoundTable | None:
    """Return a table without rows where an answer lists the files that hold them; the page gets their addresses."""
    if profile.operation not in ("segment", "export"):
        return None
    found = tables.links_in(
        page.document, only_named=page.id is not None and profile.operation == "segment"
    )
    if len(found) != 1:
        return None
    path, source, links = found[0]
    # Beside rows such a list is of something else.
    if any(one.records and one.source is not source for one in tables.tables(page.document)):
        return None
    page.parts = links
    # What objects say beside their links is read as other signs: {"url": ..., "rows": 15}.
    return tables.FoundTable(path, [], source=None if isinstance(source[0], Mapping) else source)


def _rows_of(page: ForeignPage, profile: ForeignProfile) -> tables.FoundTable | None:
    """Return the rows: where the settings say, in the files that are listed, or in the one table of the answer.

    Several tables, or one beside an id that may be something else, are asked about.
    """
    document, operation = page.document, profile.operation
    rows = profile.find("rows", document)
    if rows is not None:
        columns = tables.columns_beside(document) if isinstance(document, dict) else []
        is_list = isinstance(rows, list)
        table = tables.table_in(rows, "", columns, document) if is_list else tables.keyed(rows, "")
        if table is None:
            kind = tables.kind_of(rows)
            raise ProtocolError(
                f"remote.paths.rows leads to {kind} instead of a list of objects, lists or texts."
            )
        return table
    # protobuf's JSON leaves out a list without rows.
    if document == {} and "rows" in profile.own:
        return tables.FoundTable("", [])
    # A path of all operations leads to the rows of segments: where it leads to nothing, a search has its own.
    if "rows" in profile.paths and (operation != "search" or "rows" in profile.own):
        return None
    if parts := _parts(page, profile):
        return parts
    candidates = tables.tables(document, beside_id=page.id is not None)
    if not candidates and page.id is not None:
        every = tables.tables(document)
        if operation == "export":
            # Whoever asks for rows gets them, beside an id too; under an unknown name they may be something else.
            candidates = [found for found in every if bare(found.path.rpartition(".")[2]) in ROWS]
        others = [found.path for found in every if found.records]
        if others and not candidates:
            page.instead = ambiguous("rows", others, operation)
    if len(candidates) > 1:
        raise ambiguous("rows", [candidate.path for candidate in candidates], operation)
    if not candidates and page.instead is None and operation in ("export", "search"):
        return tables.only_empty(document)
    return candidates[0] if candidates else None
