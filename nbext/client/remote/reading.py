"""The decoder of a stranger's answers: what one says, whatever its shape: a table, a job, or where to find either.

In order: what the settings say, the HTTP status, the content, an error in it, then exactly one table, one
id, one address. Of two equal readings none is taken: `AmbiguousAnswer` names both, and the line that chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import unquote

from nbext.client.decode import Reading, State, Want
from nbext.client.remote import content, tables
from nbext.client.remote.content import ForeignPage
from nbext.client.remote.field_names import (
    ECHOES,
    ENDED_BADLY,
    RESULTS,
    ROWS,
    WRAPPERS,
    Place,
    bare,
    error_in,
    error_in_rows,
    first_in,
    first_named,
    inside,
    kind_named,
    last_name,
    like,
    prose_in,
    said,
    says,
    says_whole,
    status_of,
    to_ours,
    truth_of,
    vocabulary,
)
from nbext.client.remote.paging import Walk, unknown_notes
from nbext.client.remote.profile import (
    OPERATIONS,
    ForeignProfile,
    LastAnswer,
    Lines,
    ambiguous,
    outlined,
    with_profile,
)
from nbext.client.remote.signs import signs_of
from nbext.client.validate import is_foreign_id
from nbext.core.chains import chain_of
from nbext.core.rules import SEGMENT_ID, SEGMENT_ID_PATTERN
from nbext.core.strict_json import NotJson
from nbext.core.wire import NFT_FIELDS, SEARCH_FIELDS, TOKEN_FIELDS
from nbext.errors import AmbiguousAnswer, ApiError, NotFound, ProtocolError, ValidationError
from nbext.http.body import Answer, Incoming
from nbext.http.errors import of_problem, one_line, redacted, words
from nbext.http.transport import Call
from nbext.settings import Secret

_METADATA = {
    "token": TOKEN_FIELDS,
    "nft": NFT_FIELDS,
    "search": {**SEARCH_FIELDS, "decimals": "integer"},
}


class Stranger:
    """Decodes the answers of a service that is not ours, as the settings under ``remote`` say and as they look."""

    # Goes through an answer's pages, the first of which is read already.
    walk = Walk

    def __init__(self, remote: Lines, host: str, key: Secret) -> None:
        self._key = key
        remote = with_profile(remote, host)
        self._profiles = {operation: ForeignProfile(remote, operation) for operation in OPERATIONS}
        self.idempotent, self.profile = (
            self._profiles["segment"].idempotent,
            str(remote.get("profile", "none")),
        )

    def outline(self, answer: Answer, operation: str, reading: Reading, failure: str) -> LastAnswer:
        """Return the outline of an answer, as it was read, or as the ``failure`` says that it was not."""
        with suppress(ProtocolError, NotJson, RecursionError):
            if reading.document is None:
                reading.document = content.of_document(answer).document
            elif failure:
                # A gateway's refusal has the service's own in it.
                reading.document = content.unpacked(reading.document, []).document
        return outlined(answer, reading, self._profiles[operation], self._key, failure)

    def read(self, came: Incoming, want: Want, call: Call) -> ForeignPage:
        """Return what the answer says, under our names for its columns; rows for a file wait in its folder."""
        profile, fields = self._profiles[call.operation], _METADATA.get(call.operation, {})
        types = profile.types_by_theirs | call.types
        try:
            page = content.opened(came, want, types, call.folder)
            page.profile, page.configured = profile, profile.types
            if want is Want.RECEIPT:
                _read_receipt(page)
            elif came.answer is None:
                _read_rows(page, types)
            else:
                _read_document(page, want)
        except RecursionError:
            # What JSON still takes may be too deep for those who walk it.
            raise ProtocolError("The answer is nested too deeply.") from None
        except NotJson as error:
            raise ProtocolError(f"The answer is not JSON: {error}.") from None
        _refuse_other(page, call.asked)
        # A path is logged: an id that echoes the key must not become one.
        if redacted(page.id, self._key) != page.id:
            raise ProtocolError("The id of the segment has the API key in it.")
        page.warnings = redacted(page.warnings, self._key)
        page.signs["unknown"] = redacted(page.signs["unknown"], self._key)
        page.types = {profile.columns.get(name, name): kind for name, kind in page.types.items()}
        if page.table is not None:
            names = profile.renamed(dict.fromkeys(page.table.column_names))
            page.table = page.table.rename_columns(list(to_ours(names, fields)))
        elif page.records and (profile.columns or fields):
            page.records = [to_ours(profile.renamed(record), fields) for record in page.records]
        page.types |= fields
        return page


def _refuse_other(page: ForeignPage, asked: Mapping[str, str]) -> None:
    """Refuse an answer that says, wherever it does, that it is of something else than was ``asked`` for."""
    profile = page.profile
    for kind, own in asked.items() if "address" not in asked else ():
        is_same, fields = partial(_is_same, kind, own), dict(page.signs[kind])
        if profile.operation == kind == "segment" and page.id is not None:
            # Beside the id of its run, say; where the settings have its path, that one.
            path = profile.paths.get("id")
            ids = {path: page.id} if path else page.named("ids") or {"id": page.id}
            if not any(map(is_same, ids.values())):
                fields |= ids
        others = [path for path, one in fields.items() if not is_same(one)]
        if not all(map(profile.silences, others)):
            raise ProtocolError(
                f"The service was asked for {kind} {one_line(own, length=80)}, and answered for "
                f"{one_line(fields[others[0]], length=80)}. {profile.knowing(others)} says that it does not matter."
            )
    record = first_in(page.records or ())
    if "address" in asked and isinstance(record, Mapping):
        _refuse_contract(record, asked["chain"], asked["address"])


def _is_same(kind: str, own: str, said: object) -> bool:
    """Say whether an answer is of the segment, the chain or the term that was asked for, as a field of it says."""
    if kind == "term":
        # It may be a query that has the words, or a name that begins with them; a number is no echo.
        echo = unquote(said).lower() if isinstance(said, str) else own.lower()
        return all(
            re.search(rf"\b{re.escape(one)}", echo) for one in re.findall(r"\w+", own.lower())
        )
    if kind == "chain":
        # A remote may know chains that we do not.
        return _other({kind: said}, dict(_owners(kind, [own])), set(), 0) is None
    # Google's id of an operation is operations/7, and others write 007, or a hash in capitals.
    whole = str(said)
    last = whole.rpartition("/")[2]
    if own.isdigit():
        return own.lstrip("0") == last.lstrip("0")
    is_hex = re.fullmatch("[0-9a-fA-F-]+", own)
    return own.lower() == last.lower() if is_hex else own in (last, whole)


def _refuse_contract(record: Place, chain: str, address: str) -> None:
    """Refuse a record of another contract, or of one on another chain."""
    if any(record.get(name) is False for name in ("found", "exists")):
        raise NotFound(f"The service has no contract {address} on {chain}.", status=404)
    asked = dict([*_owners("address", [address.lower()]), *_owners("chain", [chain])])
    chains = [chain]
    # A remote may know chains that we do not.
    with suppress(ValidationError):
        known = chain_of(chain)
        chains += [known.name, str(known.id), *known.aliases]
    if other := _other(record, asked, set(map(bare, chains)), 3):
        whose = address if other.startswith("0x") else f"chain {chain}"
        raise ProtocolError(f"The service was asked for {whose}, and answered for {other}.")


def _other(place: Place, asked: Mapping[str, str], chains: set[str], deep: int) -> str | None:
    """Return the other contract, or chain, that a record says it is of; None where it says none.

    Under a name of the asked chain, of which ``chains`` are all, CoinGecko has the contract's address there.
    """
    for name, value in place.items():
        plain, inner = bare(name), value[:100] if isinstance(value, list) else [value]
        if like("own.place").fullmatch(plain) and deep:
            inside = (one for one in inner if isinstance(one, Mapping))
            others = [_other(one, asked, chains, deep - 1) for one in inside]
            # A contract of several chains has an address on each.
            if others and all(others):
                return others[0]
        # {"S": "0x..."}, {"id": 137, "name": "polygon"}.
        parts = value.values() if isinstance(value, Mapping) else inner
        texts = [str(one).strip().lower() for one in parts if isinstance(one, str | int)]
        said = list(_owners("address" if plain in chains else plain, texts))
        for what, whose in asked.items():
            found = {one for kind, one in said if kind == what}
            if found and whose not in found:
                return min(found)
    return None


def _owners(plain: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the addresses, and the chains by their numbers, that a field says a record is of."""
    for what, patterns in vocabulary()["whose"].items():
        rules = [pattern for table, pattern in patterns.items() if like(table).fullmatch(plain)]
        said = (re.fullmatch(rule, text) for rule in rules for text in texts)
        for one in (found[1] for found in said if found):
            # The digits of an address, a chain's number, or its name.
            if what == "address":
                yield what, f"0x{one}"
            elif what == "number":
                yield "chain", f"chain {int(one, 16 if 'x' in one else 10)}"
            else:
                alias = one.replace(" ", "-")
                for each in (alias, alias.removesuffix("-mainnet")):
                    with suppress(ValidationError):
                        yield "chain", f"chain {chain_of(each).id}"


def _read_rows(page: ForeignPage, types: Mapping[str, str]) -> None:
    """Read what CSV or Arrow says, or that it is not there yet, into its page."""
    page.signs = signs_of(page)
    if page.table is not None:
        _refuse_rows(content.some_rows(page), page.profile)
        names = page.table.column_names
        is_known = not {*page.profile.columns, *types}.isdisjoint(names)
        if not (page.rows or is_known) and (text := prose_in(names)):
            raise _error(text)
        told = page.table.schema.metadata or {}
        # Arrow has headers of its own.
        page.signs.headers(
            {
                name.decode(errors="replace"): value.decode(errors="replace")
                for name, value in told.items()
            }
        )
    page.warnings += page.signs.notes()


def _read_document(page: ForeignPage, want: Want) -> None:
    """Read what a document says into its page."""
    profile = page.profile
    is_job = want is Want.SEGMENT and profile.operation == "segment"
    document = tables.unlisted(page.document, of_job=is_job)
    if want is Want.SEGMENT and isinstance(document, str):
        # Allium answers "running".
        is_id = SEGMENT_ID.match(document) and len(document) > 2
        role = (
            "status" if profile.state_of(document) else "url" if _ADDRESS.match(document) else "id"
        )
        document = {role: document} if role != "id" or is_id else document
    page.document = document
    _read_status(page)
    unless = f'If it speaks of something else: `%nbext set remote.{profile.operation}.paths.status = "null"`.'
    if want is Want.SEGMENT:
        _read_job(page)
    _raise_error(page, want)
    if want is not Want.RECORD:
        _read_table(page)
    elif not page.empty:
        if page.status == 202 or page.state is State.RUNNING:
            is_said = f": its status is {one_line(page.word, length=60)}" if page.word else ""
            raise ProtocolError(f"The service has no record of that yet{is_said}. {unless}")
        # A path that was set for segments leads to nothing here: the record is where it always is.
        chosen = page.find("rows")
        page.records = [tables.the_record(document if chosen is None else chosen)]
        # Of a record only notes are signs: how old it is, which of a hundred is said once, and warnings.
        page.signs = signs_of(page)
        page.warnings += [note.partition(" = ")[0] for note in page.signs.notes()]
    if page.rows and page.state in ENDED_BADLY and not is_job:
        raise _error(f"its status is {page.word or page.state.value}. {unless}")
    # What runs is asked for again: by its id, or where an earlier answer said.
    again = page.id or page.url or page.poll or (page.state and page.word is not None)
    runs = want is Want.SEGMENT and (again or page.state is State.RUNNING)
    if page.rows is None and not runs:
        kind = "empty" if page.empty else tables.kind_of(document)
        raise ProtocolError(f"Expected {want.value}, but the answer is {kind}.")


_ADDRESS = re.compile(r"(https?:/)?/\S+\Z")


def _read_status(page: ForeignPage) -> None:
    """Read the state that an answer speaks of: of a job, of its rows, of a record or of a sign-up."""
    if not page.profile.is_absent("status"):
        known = page.profile.state_of
        page.word, page.state = status_of(page.document, page.find("status"), known)


def _read_job(page: ForeignPage) -> None:
    """Read what an answer says of a job into the page."""
    profile, headers, is_begun = page.profile, page.headers, page.status in (201, 202)
    where = headers.get("Location", "") if is_begun else ""
    own = re.search(rf"/segments?/({SEGMENT_ID_PATTERN})/?(?:\?.*)?\Z", where)
    page.id = _id_of(page) or (own[1] if own else None)
    if page.id is not None and not is_foreign_id(page.id):
        raise ProtocolError(
            f"{one_line(page.id, length=80)!r} is not a segment id: it is too long, or has hidden parts."
        )
    # Without an id a number may be the call's own.
    of_job = page.word is not None and (page.id is not None or not says_whole("status", page.word))
    if of_job and page.state is None and page.status != 202:
        page.doubt = _unknown_word(page.word or "", profile)
    page.reason = first_in(filter(None, map(words, page.named("reasons").values())), "")

    def addresses(*tables: str) -> dict[str, str]:
        named = page.named(*tables).items()
        return {path: one for path, one in named if isinstance(one, str) and _ADDRESS.match(one)}

    polled, plain = addresses("polled_at_like"), addresses("plain_urls").values()
    poll, url = map(page.find, ("poll", "url"))
    if url is None and not profile.is_absent("url"):
        url = _only(page, "url", addresses("plain_urls", "results_at_like"))
    if poll is None and not page.id and not profile.is_absent("poll"):
        monitor = first_named(headers, "monitors") if is_begun else None
        poll = monitor or first_in(polled.values())
    # 202 says that it is accepted, and later that it still runs; where to ask may have been said before.
    if page.status == 202 or (page.empty and (page.id or poll)):
        page.state = page.state or State.RUNNING
    if page.state is State.RUNNING and url in plain:
        # The rows are not there yet, if ever: beside an id it is the address of the job itself.
        poll, url = poll or (None if page.id else url), None
    # Django REST framework names each object's own address: its description is there, and not its rows.
    if url in plain and str(url).rstrip("/").endswith(f"/segment/{page.id}"):
        url = None
    page.poll, page.url = (None if one is None else str(one) for one in (poll, url))


def _unknown_word(word: str, profile: ForeignProfile) -> AmbiguousAnswer:
    """Return the error that asks what a status word means."""
    plain = one_line(word, length=60)
    lines = [
        profile.adding(f"{profile.operation}.states.{state}", [plain])
        for state in ("done", "running", "failed")
    ]
    return AmbiguousAnswer(
        f"nbext does not know what the service's status {plain!r} means. If it means done: `%nbext set {lines[0]}`. "
        f"Otherwise write states.running or states.failed in its place.",
        candidates=lines,
        setting=lines[0],
    )


def _id_of(page: ForeignPage) -> str | None:
    chosen = page.find("id")
    if chosen is not None or page.profile.is_absent("id"):
        return None if chosen is None else str(chosen)
    # JSON-LD's @id is an address.
    found = {
        path: str(value)
        for path, value in page.named("ids").items()
        if type(value) in (str, int) and value != "" and '"@' not in path
    }
    if "jsonrpc" in page.said:
        # The question's.
        found.pop("id", None)
    # The query's id beside that of its run: what ran is asked for by its own.
    runs = {path: value for path, value in found.items() if last_name(path) != "queryid"}
    return _only(page, "id", runs or found)


def _only(page: ForeignPage, name: str, found: Mapping[str, str]) -> str | None:
    """Return the one value, or None; several different ones are an error."""
    if len(set(found.values())) > 1:
        raise ambiguous(name, list(found), page.profile.operation)
    return first_in(found.values())


def _refuse_rows(rows: Sequence[Place], profile: ForeignProfile) -> None:
    """Refuse what came instead of a row: an error, a sum, a remark, a second header."""
    if text := error_in_rows(rows):
        raise _error(text)
    # A hit may be of a chain whose addresses look otherwise.
    content.refuse_others(rows, addressed=profile.operation != "search")


def _error(text: object, status: int = 200, problem: Place | None = None) -> ApiError:
    said = f"The service answered with an error: {one_line(text, length=400)}"
    return ApiError(said, status=status, problem=problem)


def _read_receipt(page: ForeignPage) -> None:
    """Read the answer to a sign-up: any JSON that says no error, or a text whose word is known."""
    document = page.document
    if isinstance(document, str):
        if page.profile.state_of(document) is None:
            raise _unknown_word(document, page.profile)
        page.document = document = {"status": document}
    _raise_error(page, Want.RECEIPT)
    # It says little: all of it is read, wherever it is, the outermost first.
    told = list(inside("", document))
    objects = [value for _, value in told if isinstance(value, Mapping)]
    if objects:
        page.document = document = {name: one[name] for one in objects[::-1] for name in one}
    _raise_error(page, Want.RECEIPT)
    refused = [path for path, value in told if says(kind_named("receipt", last_name(path)), value)]
    if refused or (isinstance(document, bool | int) and document <= 0):
        raise _error(
            said(document)
            or f"{', '.join(refused) or str(document).lower()} says that it was not taken"
        )
    _read_status(page)
    if page.state in ENDED_BADLY:
        text = said(document)
        raise _error(text if str(page.word) in text else f"its status is {page.word}")
    if message := words(document) if isinstance(document, Mapping) else "":
        # Whether it was taken is for people to read: "already exists" may be both.
        page.warnings.append(f"The service says: {one_line(message, length=200)}")
    # "email": true says that one was sent, and a***@example.com hides what it names.
    whom = re.fullmatch(r"[\w.+%-]+@[\w.-]+", str(page.first("receipt.of")))
    page.document = {
        "status": page.word,
        "delivered": truth_of(page.first("receipt.delivered")),
        "email": whom and whom[0],
    }


def _raise_error(page: ForeignPage, want: Want) -> None:
    """Raise the error inside an answer of status 200; a failed job is known by its state."""
    if page.id is not None and page.state in ENDED_BADLY and "error" not in page.profile.paths:
        return
    document, chosen = page.document, page.find("error")
    text = (
        said(chosen) or str(chosen) if chosen else error_in(document, receipt=want is Want.RECEIPT)
    )
    status = page.status or 200
    if status == 206:
        text = "its status is 206, which is a part"
    if text is None and status < 400:
        return
    # A gateway that turns every answer into a 200 leaves the status in the body.
    codes = page.named("codes").values()
    status = first_in((one for one in codes if type(one) is int and 400 <= one < 600), status)
    if status >= 400:
        raise of_problem(status, page.said, text or words(document))
    raise _error(text, status, page.said)


def _read_table(page: ForeignPage) -> None:
    profile, of_search = page.profile, page.profile.operation == "search"
    chosen = profile.paths.get("rows", "")
    try:
        found = _rows_of(page)
        table = found or tables.FoundTable("", [])
        if not chosen:
            tables.refuse_groups(table)
    except AmbiguousAnswer as error:
        raise ambiguous("rows", error.candidates, profile.operation) from None
    rows = table.records
    _refuse_rows(rows, profile)
    page.signs = signs = signs_of(page, table.source, table.path or chosen)
    as_of = signs.first("as_of")
    page.as_of = as_of if isinstance(as_of, dict | None) else {"timestamp": str(as_of)}
    total = signs.first("total") or signs.first("count")
    page.stated = {} if total is None else {"total": total}
    if not (signs["way"] or page.url or page.poll):
        # It is too early to ask.
        waits = page.retry_after is not None and not rows and not of_search
        if page.state is None and page.word is None and waits:
            page.state = State.RUNNING
        if page.state is State.RUNNING and of_search:
            raise ProtocolError(
                "The service is not ready to be searched: it says so beside the rows. Try again later."
            )
    # What a running segment has so far is not its result.
    if page.state is State.RUNNING and (page.id or page.word or not rows or page.status == 202):
        return
    page.warnings += signs.notes()
    if found is None:
        _read_description(page)
    elif page.doubt is None:
        page.records, page.types, page.unnamed = rows, table.types, table.unnamed
        if page.state is State.RUNNING and page.url is None:
            # Without an id there is no job to wait for: "done": false beside rows says that there are more of them.
            page.state, signs["more"] = None, {"": True}
    elif rows:
        raise page.doubt


def _read_description(page: ForeignPage) -> None:
    """Note what an answer without rows says of them; the note on the rows' own answer comes with its last page."""
    signs, profile = page.signs, page.profile
    # Trino: an answer without rows, and the address of the next one.
    page.bare = profile.operation == "export" and any(isinstance(way, str) for way in signs.ways)
    if page.bare:
        page.records = []
    elif page.id or page.word:
        page.warnings += unknown_notes(signs["unknown"], profile, "segment's description")
        # Whether all came is known where they are counted.
        if signs.go_on or (signs.hints and not page.stated):
            page.warnings.append(
                f"The segment's description says that its rows are not all: {signs.hinted()}."
            )


def _rows_of(page: ForeignPage) -> tables.FoundTable | None:
    """Return the rows: where the settings say, in the files that are listed, or in the one table of the answer.

    Several tables, or one beside an id that may be something else, are asked about.
    """
    profile, document, rows = page.profile, page.document, page.find("rows")
    operation = profile.operation
    if rows is not None:
        table = tables.as_table(rows, "", tables.columns_beside(page.said), document)
        if table is None:
            kind = tables.kind_of(rows)
            raise ProtocolError(
                f"remote.paths.rows leads to {kind} instead of a list of objects, lists or texts."
            )
        return table
    if "rows" in profile.paths:
        # protobuf's JSON leaves out a list without rows: the user says that there are such.
        is_said = document == {} and "rows" in profile.users
        return tables.FoundTable("", []) if is_said else None
    every, has_id = tables.tables(document), page.id is not None
    # Beside an id a list of links may be of anything, unless its name says what.
    by_name, are_files = has_id and operation == "segment", like("of_files_like").fullmatch
    parts = [
        one
        for one in every
        if one.links
        and operation != "search"
        and (not (by_name and one.path) or are_files(last_name(one.path)))
    ]
    # Beside other rows such a list is of something else.
    if len(parts) == 1 and not any(one.records for one in every if one is not parts[0]):
        # What objects say beside their links is read as other signs: {"url": ..., "rows": 15}.
        source, page.parts = parts[0].source, parts[0].links
        is_read = isinstance(source[0], Mapping)
        return tables.FoundTable(parts[0].path, [], source=None if is_read else source)
    every = [one for one in every if one.records or not one.links]
    # Beside a job's id a table is its result by its names: a list of rules is none.
    own = RESULTS | WRAPPERS - ECHOES | {""}
    candidates = [
        one for one in every if not has_id or own.issuperset(map(bare, one.path.split(".")))
    ]
    if not candidates and has_id:
        if operation == "export":
            # Whoever asks for rows gets them, beside an id too; under an unknown name they may be something else.
            candidates = [one for one in every if last_name(one.path) in ROWS]
        others = [one.path for one in every if one.records]
        if others and not candidates:
            page.instead = ambiguous("rows", others, operation)
    if len(candidates) > 1:
        raise ambiguous("rows", [one.path for one in candidates])
    found = first_in(candidates)
    if found is not None and found.is_column:
        path = one_line(found.path, length=80)
        raise ProtocolError(f"{path} may be a column: a list beside it is as long.")
    if found is None and page.instead is None and operation in ("export", "search"):
        return tables.only_empty(document)
    return found
