"""All rows of an answer: from page to page until nothing says that there are more, or an error that says what does.

A page that cannot be asked for, one that comes twice, and fewer rows than are stated are errors, each with the line of
settings that would help. The caller's limit ends the walk before any of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nbext.client.decode import State
from nbext.client.http.errors import one_line
from nbext.client.http.transport import Call, Repeat
from nbext.client.remote.content import ForeignPage, Signs, Way
from nbext.client.remote.field_names import is_address
from nbext.client.remote.profile import ForeignProfile
from nbext.core.untrusted_text import quoted, shown
from nbext.core.wire import IDEMPOTENCY_HEADER
from nbext.errors import (
    BadRequest,
    NotFound,
    ProtocolError,
    ResponseTooLarge,
    TruncatedResponse,
)

MAX_PAGES, MAX_EMPTY, MAX_ROWS, MAX_WAYS = 10_000, 100, 20_000_000, 4
UNPROVEN = "The service states neither its answer's length nor how many rows there are: its end cannot be verified."
HALF = "The service does not state the length of its answer, and its last line has no end: its last value may be cut."
_UNKNOWN = (
    "Beside the rows the {} has fields that nbext does not understand: {}. If one of them says that rows are missing, "
    'say how the others are asked for (remote.paging, remote.paths.next); `%nbext set remote.known = "{}"` says that '
    "{} not matter."
)
_FULL = "The limit of {:,} rows is reached; the service has more."


class Walk:
    """The pages of one answer. ``ask`` reads a request's answer, ``follow`` says where a link may lead."""

    def __init__(
        self,
        ask: Callable[[Call], Any],
        follow: Callable[[str, str], str],
        root: str,
        profile: ForeignProfile,
        *,
        limit: int | None,
        counts: Mapping[str, int],
        cap: int | None,
    ) -> None:
        self._ask, self._follow, self._root = ask, follow, root
        # As the settings have them.
        self._style, self._parameter = profile.style, profile.parameter
        self._limit, self._cap = limit, cap
        # Rows that are stated, by where; those of the description come first.
        self._stated: dict[str, int] = dict(counts)
        self._came = self._bytes = self._empty = self._seen = self._most = 0
        self._number: int | None = None
        self._unproven = self._cut = self._by_link = self._ended = False
        self._notes: list[str] = []
        # Which kinds of tables came, and the last rows of the page before.
        self._kinds: set[str] = set()
        self._tail: set[int] = set()
        self._columns: list[str] = []
        self._base = 1
        self._unknown: dict[str, Any] = {}
        self._address_column: str | None = None
        self._asked: set[tuple[str, bytes | None]] = set()
        self._prints: set[int] = set()
        self._parameters: tuple[str, ...] | None = None

    def pages(self, page: ForeignPage, call: Call) -> Iterator[ForeignPage]:
        """Yield the pages, the first one being read already; the next is asked for when it is wanted."""
        self._notes = page.warnings
        self._asked.add((self._address(call), call.body))
        self._base = 0 if page.signs.page and page.signs.page[1] == 0 else 1
        self._repeats(page)
        yield from self._walk(page, call)
        if not self._kinds:
            raise ProtocolError(
                f"The service was asked for rows, and none of its {self._seen:,} pages has any."
            )
        self._notes += check_end(
            self._stated, self._came, self._limit, unproven=self._unproven, cut=self._cut
        )
        self._notes += unknown_notes(self._unknown)

    def _walk(self, page: ForeignPage, call: Call) -> Iterator[ForeignPage]:
        while True:
            whole = self._count(page)
            yield page
            for link in page.parts:
                if not self._ended:
                    yield from self._walk(*self._part(link, call))
            self._ended = self._ended or not whole or self._is_full(page)
            ways = [] if self._ended else self._ways(page)
            if not ways:
                if not self._ended:
                    self._refuse_rest(page)
                    self._note_full(page)
                return
            found = self._following(page, call, ways)
            if found is None:
                return
            page, call = found

    def _part(self, link: str, call: Call) -> tuple[ForeignPage, Call]:
        """Return what a file holds that is a part of the rows."""
        asked = replace(
            call, method="GET", target=self._follow(link, self._address(call)), body=None
        )
        if len(self._asked) > MAX_PAGES or (asked.target, None) in self._asked:
            raise self._lost(True)
        self._asked.add((asked.target, None))
        found = self._ask(asked)
        if self._repeats(found):
            raise self._repeated([link])
        return found, asked

    def _address(self, call: Call) -> str:
        return call.target if "://" in call.target else self._root + call.target

    def _count(self, page: ForeignPage) -> bool:
        """Count a page's rows and what it states; False where the limit cuts it."""
        rows, signs = page.rows or 0, page.signs
        if page.warnings is not self._notes:
            self._notes += [note for note in page.warnings if note not in self._notes]
        if self._seen and page.state not in (None, State.COMPLETED) and not signs.ways:
            raise ProtocolError(
                f"After {self._came:,} rows a page says that it is not done: its rows may be missing."
            )
        self._unknown = {**signs.unknown, **self._unknown}
        self._unproven, self._cut = self._unproven or page.unproven, self._cut or page.cut
        self._bytes += page.size
        self._seen, self._most = self._seen + 1, max(self._most, rows)
        self._empty = 0 if rows else self._empty + 1
        if self._cap is not None and self._bytes > self._cap:
            raise ResponseTooLarge(
                f"The pages of the answer are larger than {self._cap / 1e6:,.0f} MB in all. "
                "Raise the setting max_body_mb, or export to a file with to=."
            )
        if self._cap is not None and self._came + rows > MAX_ROWS:
            raise ResponseTooLarge(
                f"The answer has more than {MAX_ROWS:,} rows. Export CSV to a file with to=."
            )
        if not page.bare and not page.parts:
            self._kinds.add("CSV" if page.table is not None else "JSON")
        if len(self._kinds) > 1:
            raise ProtocolError("Some pages of the answer are CSV, and some are JSON.")
        page.records = self._named(page)
        # Totals change while data lives: the largest says how many rows there were. Each page's own count is no total.
        self._stated |= {
            path: max(n, self._stated.get(path, 0)) for path, n in signs.totals.items()
        }
        if self._came:
            own = [path for path, n in signs.totals.items() if n == rows]
            self._stated = {path: n for path, n in self._stated.items() if path not in own}
        # A count may be of this page or of all: only what is not this page's is one of all.
        self._stated |= {
            path: n for path, n in {**signs.counts, **signs.returned}.items() if n != rows
        }
        before, self._came = self._came, self._came + rows
        self._note_overlap(page)
        if self._number is not None:
            self._number += 1
        elif signs.page:
            self._number = signs.page[1]
        if before and self._limit and self._came > self._limit:
            keep, self._came = self._limit - before, self._limit
            page.records = None if page.records is None else page.records[:keep]
            page.table = None if page.table is None else page.table.slice(0, keep)
            self._notes.append(_FULL.format(self._limit))
            return False
        return True

    def _named(self, page: ForeignPage) -> list[dict[str, Any]] | None:
        """Return a page's records under the columns of the first, where it is lists without names: SQL by a cursor."""
        if not page.records:
            return page.records
        names = list(page.records[0])
        if not page.unnamed:
            self._check_columns(page.records, names)
        self._columns = self._columns or names
        if not page.unnamed or names == self._columns:
            return page.records
        if len(names) != len(self._columns):
            first = len(self._columns)
            raise ProtocolError(
                f"A page has {len(names)} columns without names, and the first page has {first}."
            )
        return [dict(zip(self._columns, row.values(), strict=True)) for row in page.records]

    def _check_columns(self, records: list[dict[str, Any]], names: list[str]) -> None:
        """Refuse a page whose address is in another column than on the page before: its rows would be half empty."""
        address = next((name for name in names if is_address(records[0][name])), None)
        if (
            self._address_column
            and address
            and self._address_column not in names
            and address not in self._columns
        ):
            before, now = (one_line(name, length=40) for name in (self._address_column, address))
            raise ProtocolError(
                f"After {self._came:,} rows the column {before!r} is called {now!r}."
            )
        self._address_column = self._address_column or address

    def _is_full(self, page: ForeignPage) -> bool:
        """Say whether the caller's limit is reached; a note says so where the service has more and no total."""
        if not self._limit or self._came < self._limit:
            return False
        signs = page.signs
        numbered = signs.pages is not None and self._total() is None and self._expects_more(page)
        least = signs.least is not None and self._came <= signs.least
        if (signs.ways and signs.go_on is not False) or signs.go_on or numbered or least:
            self._notes.append(_FULL.format(self._limit))
        return True

    def _total(self) -> int | None:
        return max(self._stated.values(), default=None)

    def _expects_more(self, page: ForeignPage) -> bool:
        signs, total = page.signs, self._total()
        more = (signs.least is not None and self._came <= signs.least) or (total or 0) > self._came
        if more or signs.go_on is not None or (total is not None and self._seen > 1):
            return more or bool(signs.go_on)
        if signs.pages is not None and signs.page:
            return signs.page[1] < signs.pages - 1 + self._base
        if signs.pages is not None and total is None:
            return self._seen < signs.pages
        if total is not None or signs.size is None or not (signs.page or signs.offset):
            return False
        # A full page of which nobody says that it is the last one.
        return signs.size == page.rows

    def _ways(self, page: ForeignPage) -> list[Way]:
        """Return the ways to the next page, the likeliest first."""
        signs, rows = page.signs, page.rows or 0
        if self._style == "none":
            return []
        if self._style in ("page", "offset"):
            total = self._total()
            whole = total is not None and self._came >= total and not signs.go_on
            ended = not rows or signs.go_on is False or whole
            if ended:
                return []
            numbers = [self._came] if self._style == "offset" else self._page_numbers()
            return [{self._parameter or self._style: str(number)} for number in numbers]
        # Where links lead, a cursor without one is no next page; nor is one after all rows that there are.
        found = [way for way in signs.ways if isinstance(way, str) or not self._by_link]
        whole = not rows and self._seen > 1 and 0 < (self._total() or 0) <= self._came
        if found and signs.go_on is not False and not whole:
            return self._sorted(found)
        return self._sorted(self._counted(signs, rows)) if rows and self._expects_more(page) else []

    def _page_numbers(self) -> list[int]:
        """Return the numbers that the next page may have, where the settings say that pages are numbered.

        Nobody knows whether the first one was 0 or 1 until the page 1 is asked for: it is the next, or the same again.
        """
        last = self._number or 0
        is_known = self._number is not None and (self._base or self._seen > 1)
        return [last + 1] if is_known else [last + 1, last + 2]

    def _counted(self, signs: Signs, rows: int) -> list[Way]:
        """Return the ways by the number of the page, or of the row, that the answer states."""
        if signs.page:
            name, number = signs.page
            is_plain = not re.match("current|number$", name, re.IGNORECASE)
            names = (name, "page", name.replace("_", "-")) if is_plain else ("page",)
            ways: list[Way] = [{one: str(number + 1)} for one in dict.fromkeys(names)]
            # Counted from 0 in the answer, and from 1 in the question.
            return [*ways, *([{names[0]: str(number + 2)}] if self._base == 0 else [])]
        if signs.offset:
            name, offset = signs.offset
            return [{one: str(offset + rows)} for one in dict.fromkeys((name, "offset"))]
        return []

    def _sorted(self, ways: list[Way]) -> list[Way]:
        """Return links first, then what worked for the last page."""
        links: list[Way] = [way for way in ways if isinstance(way, str)]
        queries = [way for way in ways if not isinstance(way, str)]
        queries.sort(key=lambda way: tuple(way) != self._parameters)
        return [*links[:2], *queries][:MAX_WAYS]

    def _refuse_rest(self, page: ForeignPage) -> None:
        """Raise the error of rows that the answer hints at, and that nobody can ask for."""
        signs = page.signs
        ended = not signs.go_on and (page.rows == 0 or not self._expects_more(page))
        if self._style == "none" or (ended and self._came >= (signs.least or 0)):
            return
        total = self._total()
        if total is not None and total > self._came:
            return
        hint = (
            ", ".join(one_line(path, length=60) for path in signs.hints[:3])
            or "its page, which is full"
        )
        raise ProtocolError(
            f"Only the first {self._came:,} rows came: {hint} says that they are not all, but not how to ask for the "
            "others. "
            f"{_LINES}"
        )

    def _following(
        self, page: ForeignPage, call: Call, ways: list[Way]
    ) -> tuple[ForeignPage, Call] | None:
        """Return the next page by the first way that leads to one; None where an empty page leads to itself."""
        if len(self._asked) > MAX_PAGES or self._empty > MAX_EMPTY:
            raise ProtocolError(
                f"The pages of the answer do not end: {len(self._asked):,} came, with {self._came:,} rows."
            )
        calls = [(way, self._call(call, way)) for way in ways]
        new = [
            (way, asked)
            for way, asked in calls
            if asked and (self._address(asked), asked.body) not in self._asked
        ]
        if not new:
            if not page.rows and any(calls):
                return None
            raise self._lost(any(asked for _, asked in calls))
        for number, (way, asked) in enumerate(new, 1):
            last = number == len(new)
            self._asked.add((self._address(asked), asked.body))
            try:
                found = self._ask(asked)
            except (BadRequest, NotFound) as error:
                # Some services have no page after the last one, and say so with a 404.
                if last and isinstance(error, NotFound) and self._style in ("page", "offset"):
                    return None
                if last:
                    raise
                continue
            if self._repeats(found):
                # Past their end some services send the last page again: a short one, which no first page is.
                if last and self._style == "page" and (page.rows or 0) < self._most:
                    return None
                continue
            self._check_number(page, found, way)
            if self._style == "page" and not isinstance(way, str):
                # The number that was asked for: an answer may count its pages otherwise.
                self._number = int(next(iter(way.values()))) - 1
            self._by_link = isinstance(way, str)
            self._parameters = None if isinstance(way, str) else tuple(way)
            return found, asked
        raise self._repeated(ways)

    def _call(self, call: Call, way: Way) -> Call | None:
        url = self._address(call)
        if isinstance(way, str):
            return replace(call, method="GET", target=self._follow(way, url), body=None)
        if call.method == "GET":
            return replace(call, target=with_query(url, way))
        # A segment is not run again for each page, unless the settings allow it; a search may be.
        if call.repeat is not Repeat.ALWAYS or call.body is None:
            return None
        body = json.loads(call.body)
        for name, value in way.items():
            place, (*outer, inner) = body, name.split(".")
            for one in outer:
                place = place.setdefault(one, {})
            place[inner] = int(value) if value.isdigit() and len(value) < 10 else value
        # Another page is another question: under the same key it would get the same answer.
        headers = {
            name: value for name, value in call.headers.items() if name != IDEMPOTENCY_HEADER
        }
        return replace(call, body=json.dumps(body).encode(), headers=headers)

    def _lost(self, circle: bool) -> ProtocolError:
        if circle:
            return ProtocolError(
                f"The pages of the answer lead in a circle after {self._came:,} rows. {_LINES}"
            )
        return ProtocolError(
            f"Only the first {self._came:,} rows came, and the others have no address. If the query may run again for "
            f"each page, say it with `%nbext set remote.idempotent true`. {_LINES}"
        )

    def _repeats(self, page: ForeignPage) -> bool:
        """Say whether a page came before: its first and last rows are the same."""
        if not page.rows:
            return False
        mark = hash((page.rows, repr(_ends(page))))
        seen = mark in self._prints
        self._prints.add(mark)
        return seen

    def _note_full(self, page: ForeignPage) -> None:
        """Note that a last page has as many rows as the answer allows, where nothing says that it is the last."""
        signs = page.signs
        if (
            self._style is None
            and signs.size
            and signs.size == page.rows
            and signs.go_on is None
            and not self._stated
        ):
            self._notes.append(
                f"The answer has exactly the {signs.size:,} rows that it may have: there may be more."
            )

    def _note_overlap(self, page: ForeignPage) -> None:
        """Note rows at a page's beginning that were at the end of the one before."""
        if not page.rows:
            return
        # A row without an address may well be there twice.
        head, tail = (
            {hash(text) for row in rows if "0x" in (text := repr(row))} for rows in _ends(page)
        )
        twice, self._tail = len(head & self._tail), tail
        if twice:
            self._notes.append(
                f"Two pages overlap: {twice:,} rows came twice. The data may have moved between them, and others be "
                "missing."
            )

    def _repeated(self, ways: list[Way]) -> ProtocolError:
        names = [name for way in ways if not isinstance(way, str) for name in list(way)[:1]]
        named = " or ".join(repr(one_line(name, length=40)) for name in names)
        asked = f" The service may not read {named}." if named else ""
        return ProtocolError(
            f"The same page came twice, after {self._came:,} rows.{asked} "
            f'Set the name that it reads: `%nbext set remote.paging.parameter = "..."`. {_LINES}'
        )

    def _check_number(self, page: ForeignPage, found: ForeignPage, way: Way) -> None:
        before, now = page.signs, found.signs
        if isinstance(way, str) or before.ways:
            return
        pairs = [(before.page, now.page, 1), (before.offset, now.offset, page.rows or 0)]
        for one, other, step in pairs:
            # What does not change is no number of a page to who has set how pages are asked for.
            constant = self._style and one and other and one[1] == other[1]
            if one and other and other[1] != one[1] + step and not constant:
                raise ProtocolError(
                    f"After {one_line(one[0], length=40)} {one[1]:,} the service sent {other[1]:,}: "
                    f"rows between would be missing. {_LINES}"
                )


def _ends(page: ForeignPage) -> list[list[dict[str, Any]]]:
    """Return the first and the last rows of a page."""
    if page.table is None:
        records = page.records or []
        return [records[:500], records[-500:]]
    last = page.table.slice(max(0, page.table.num_rows - 500))
    return [page.table.slice(0, 500).to_pylist(), last.to_pylist()]


def unknown_notes(unknown: Mapping[str, Any], holder: str = "answer") -> list[str]:
    """Return the note on fields that no rule understands, where there are any."""
    if not unknown:
        return []
    few = list(unknown.items())[:6]
    values = ", ".join(f"{one_line(path, length=60)} = {_value(value)}" for path, value in few)
    more = f" and {len(unknown) - len(few):,} more" if len(unknown) > len(few) else ""
    names = ", ".join(one_line(path.rpartition(".")[2].strip('"'), length=60) for path, _ in few)
    they = "it does" if len(few) == 1 else "they do"
    return [_UNKNOWN.format(holder, values + more, names.replace('"', ""), they)]


def _value(value: Any) -> str:
    if isinstance(value, list) and value:
        return f"[{', '.join(map(_value, value))}]"
    return quoted(value, 60) if isinstance(value, str) else shown(value)


def check_end(
    stated: Mapping[str, int], came: int, limit: int | None, *, unproven: bool, cut: bool
) -> list[str]:
    """Compare the rows that came with all that was stated; return a note where nothing proves that they are all.

    TruncatedResponse where the body may have ended early, and looks so.
    """
    for path, expected in stated.items():
        by_limit = path != "returned" and limit is not None and came == min(limit, expected)
        if came != expected and not by_limit:
            raise ProtocolError(
                f"The service states {expected:,} rows, but {came:,} came ({one_line(path, length=60)}). "
                f"{_LINES + ' ' if expected > came else ''}"
                'If that number is not of rows, set remote.paths.total = "`null`".'
            )
    if not unproven or (stated and not cut):
        return []
    if cut and not stated:
        raise TruncatedResponse(
            f"The answer ends in the middle of a line, after {came:,} rows, and states neither its length nor a count."
        )
    return [HALF if cut else UNPROVEN]


_LINES = (
    'Say how with `%nbext set remote.paging.style = "page"` or "offset" (remote.paging.parameter is its name), '
    'or set remote.paging.style = "none" if these are all.'
)


def with_query(url: str, changes: Mapping[str, str]) -> str:
    """Return the URL with other values in its query; what is not changed stays as it is."""
    parts = urlsplit(url)
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name not in changes
    ]
    return urlunsplit(parts._replace(query=urlencode([*kept, *changes.items()])))
