"""All rows of an answer: from page to page until a sign says that there are no more, or an error with what would help.

A sign of the end: the total is reached, "more" is false, a page is short or empty, a next is null or missing. A full
page of which nothing says that it is the last is asked after, or noted. A page that cannot be asked for, one that comes
twice, and fewer rows than are stated are errors. The caller's limit ends the walk before any of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nbext.client.decode import State
from nbext.client.remote.content import ForeignPage, Signs, Way
from nbext.client.remote.field_names import is_address
from nbext.client.remote.profile import ForeignProfile
from nbext.client.remote.signs import value_shown
from nbext.core.wire import IDEMPOTENCY_HEADER
from nbext.errors import ApiError, NotFound, ProtocolError, ResponseTooLarge, TruncatedResponse
from nbext.http.base_url import Origin
from nbext.http.errors import one_line
from nbext.http.transport import Call, Repeat

MAX_PAGES, MAX_EMPTY, MAX_ROWS, MAX_WAYS = 10_000, 100, 20_000_000, 4
# Rows that are remembered, to know one that comes again.
MOST_SEEN = 1_000_000
UNPROVEN = "The service states neither its answer's length nor how many rows there are: its end cannot be verified."
HALF = "The service does not state the length of its answer, and its last line has no end: its last value may be cut."
_FULL = "The limit of {:,} rows is reached; the service has more."
# What a service answers to a request that it does not take so: another method, place or name may do.
_NOT_SO = (400, 404, 405, 410, 415, 422)


@dataclass
class Walk:
    """The pages of one answer. ``ask`` reads a request's answer, the ``origin`` says where a link may lead.

    ``counts`` are the rows that the description states, by where. ``cap`` bounds the bytes of all pages.
    """

    ask: Callable[[Call], Any]
    origin: Origin
    profile: ForeignProfile
    limit: int | None
    counts: InitVar[Mapping[str, int]]
    cap: int | None
    # What came: rows, bytes, pages, the rows of the largest page, and the empty pages since the last one with rows.
    _came: int = 0
    _bytes: int = 0
    _seen: int = 0
    _most: int = 0
    _empty: int = 0
    _unproven: bool = False
    _cut: bool = False
    _ended: bool = False
    # The number of the page, and of the first.
    _number: int | None = None
    _base: int = 1
    # What led to this page, and what the page before said.
    _way: Way | None = None
    _before: Signs = field(default_factory=Signs)
    _stated: dict[str, int] = field(default_factory=dict)
    _unknown: dict[str, Any] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    # Which kinds of tables came, the columns of the first, and which of them has addresses.
    _kinds: set[str] = field(default_factory=set)
    _columns: list[str] = field(default_factory=list)
    _address_column: str | None = None
    # What was asked for, and the pages and rows that came, to know one that comes again.
    _asked: set[tuple[str, bytes | None]] = field(default_factory=set)
    _prints: set[int] = field(default_factory=set)
    _rows: set[int] = field(default_factory=set)

    def __post_init__(self, counts: Mapping[str, int]) -> None:
        self._place = f"remote.{self.profile.operation}"
        self._stated = {path: n for path, n in counts.items() if not self.profile.silences(path)}

    def pages(self, page: ForeignPage, call: Call) -> Iterator[ForeignPage]:
        """Yield the pages, the first one being read already; the next is asked for when it is wanted."""
        if "total" in page.signs.nowhere:
            raise ProtocolError(f"{self._place}.paths.total leads to nothing in the answer.")
        self._notes = page.warnings
        self._asked.add((self._address(call), call.body))
        self._base = 0 if page.signs.page and page.signs.page[1] == 0 else 1
        self._repeats(page)
        yield from self._walk(page, call)
        if not self._kinds:
            raise ProtocolError(
                f"The service was asked for rows, and none of its {self._seen:,} pages has any."
            )
        self._check_end()
        self._notes += unknown_notes(self._unknown, self.profile)

    def _walk(self, page: ForeignPage, call: Call) -> Iterator[ForeignPage]:
        while True:
            whole = self._count(page)
            yield page
            for link in page.parts:
                if not self._ended:
                    yield from self._walk(*self._part(link, call))
            self._ended = self._ended or not whole or self._is_full(page)
            found = None if self._ended else self._following(page, call)
            if found is None:
                return
            page, call = found

    def _part(self, link: str, call: Call) -> tuple[ForeignPage, Call]:
        """Return what a file holds that is a part of the rows."""
        target = self.origin.follow(link, self._address(call))
        asked = replace(call, method="GET", target=target, body=None)
        if len(self._asked) > MAX_PAGES or (target, None) in self._asked:
            raise self._circle()
        self._asked.add((target, None))
        found = self.ask(asked)
        if self._repeats(found):
            raise self._repeated([link])
        return found, asked

    def _address(self, call: Call) -> str:
        return call.target if "://" in call.target else self.origin.url + call.target

    # -------------------------------------------------------------- one page

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
        if self.cap is not None and self._bytes > self.cap:
            raise ResponseTooLarge(
                f"The pages of the answer are larger than {self.cap / 1e6:,.0f} MB in all. "
                "Raise the setting max_body_mb, or export to a file with to=."
            )
        if self.cap is not None and self._came + rows > MAX_ROWS:
            raise ResponseTooLarge(
                f"The answer has more than {MAX_ROWS:,} rows. Export CSV to a file with to=."
            )
        if not page.bare and not page.parts:
            self._kinds.add("CSV" if page.table is not None else "JSON")
        if len(self._kinds) > 1:
            raise ProtocolError("Some pages of the answer are CSV, and some are JSON.")
        page.records = self._named(page)
        self._count_stated(signs, rows)
        before, self._came = self._came, self._came + rows
        self._note_overlap(page)
        if self._number is not None:
            self._number += 1
        elif signs.page:
            self._number = signs.page[1]
        if before and self.limit and self._came > self.limit:
            keep, self._came = self.limit - before, self.limit
            page.records = None if page.records is None else page.records[:keep]
            page.table = None if page.table is None else page.table.slice(0, keep)
            self._notes.append(_FULL.format(self.limit))
            return False
        return True

    def _count_stated(self, signs: Signs, rows: int) -> None:
        # Totals change while data lives: the largest says how many rows there were. Each page's own count is no total.
        stated = self._stated | {
            path: max(n, self._stated.get(path, 0)) for path, n in signs.totals.items()
        }
        sizes = (rows, signs.size) if self._came else ()
        own = [path for path, n in signs.totals.items() if n in sizes]
        # A count may be of this page or of all: only what is not this page's is one of all.
        of_all = {path: n for path, n in signs.counts.items() if n != rows}
        self._stated = {path: n for path, n in stated.items() if path not in own} | of_all

    def _named(self, page: ForeignPage) -> list[dict[str, Any]] | None:
        """Return a page's records under the columns of the first, where it is lists without names: SQL by a cursor."""
        if not page.records:
            return page.records
        found = list(page.records[0])
        if not page.unnamed:
            self._check_columns(page.records, found)
        self._columns = self._columns or found
        if not page.unnamed or found == self._columns:
            return page.records
        if len(found) != len(self._columns):
            first = len(self._columns)
            raise ProtocolError(
                f"A page has {len(found)} columns without names, and the first page has {first}."
            )
        return [dict(zip(self._columns, row.values(), strict=True)) for row in page.records]

    def _check_columns(self, records: list[dict[str, Any]], found: list[str]) -> None:
        """Refuse a page whose address is in another column than on the page before: its rows would be half empty."""
        address = next((name for name in found if is_address(records[0][name])), None)
        old = self._address_column
        if old and address and old not in found and address not in self._columns:
            before, now = one_line(old, length=40), one_line(address, length=40)
            raise ProtocolError(
                f"After {self._came:,} rows the column {before!r} is called {now!r}."
            )
        self._address_column = old or address

    def _note_overlap(self, page: ForeignPage) -> None:
        """Note rows that came before."""
        # A row without an address may well be there twice.
        texts = (repr(row) for rows in _ends(page) for row in rows)
        now = {hash(text) for text in texts if "0x" in text}
        if twice := len(now & self._rows):
            self._notes.append(
                f"Two pages overlap: {twice:,} rows came twice. The data may have moved between them, and others be "
                "missing."
            )
        if len(self._rows) < MOST_SEEN:
            self._rows |= now

    def _repeats(self, page: ForeignPage) -> bool:
        """Say whether a page came before: its first and last rows are the same."""
        if not page.rows:
            return False
        rows = [row for end in _ends(page) for row in end]
        addresses = [tuple(filter(is_address, row.values())) for row in rows]
        # Its wallets are as many as its rows, and so it is them: balances change from one request to the next.
        are_wallets = len(set(addresses)) == min(page.rows, len(rows)) > 1
        mark = hash((page.rows, repr(addresses if are_wallets else rows)))
        seen = mark in self._prints
        self._prints.add(mark)
        return seen

    def _is_full(self, page: ForeignPage) -> bool:
        """Say whether the caller's limit is reached; a note says so where the service has more and no total."""
        if not self.limit or self._came < self.limit:
            return False
        if self._says_more(page) and (page.signs.ways or page.signs.go_on or self._is_reached()):
            self._notes.append(_FULL.format(self.limit))
        return True

    # -------------------------------------------------------------- the next page

    def _is_reached(self) -> bool:
        return self._came >= max(self._stated.values(), default=0)

    def _says_more(self, page: ForeignPage) -> bool | None:
        """Say whether a sign says that there are more rows, or that there are none; None where nothing says either."""
        signs, rows = page.signs, page.rows or 0
        is_counted, is_reached = bool(self._stated), self._is_reached()
        # A total that is the page's own size proves nothing where pages can be asked for.
        is_numbered = signs.page or signs.offset or signs.size == rows or self.profile.style
        is_short = rows < (signs.size or 0) or (self._seen > 1 and rows < self._most)
        more: bool | None = None
        if not is_reached or (signs.least is not None and self._came <= signs.least):
            more = True
        elif signs.go_on is not None:
            # A link to a next page outranks a field that says that there is none, until all rows came.
            is_link = any(isinstance(way, str) for way in signs.ways)
            more = None if is_link and not is_counted and rows else signs.go_on
        elif any(isinstance(way, str) or not isinstance(self._way, str) for way in signs.ways):
            # Where links lead, a cursor without one is no next page. One that leads on from an empty page has no end,
            # where all rows that there are came.
            leads = bool(rows) or not is_counted or self._seen < 2
            # What the settings say led here, and leads no further: another sign may.
            more = None if leads and self._before.chosen and not signs.chosen else leads
        elif is_counted and self._seen > 1:
            more = False
        elif signs.pages is not None and (signs.page or not is_counted):
            number = signs.page[1] - self._base + 1 if signs.page else self._seen
            more = number < signs.pages
        elif (
            not rows
            or signs.ended
            or self._before.ways
            or is_short
            or (is_counted and not is_numbered)
        ):
            more = False
        return more

    def _ways(self, page: ForeignPage) -> list[Way]:
        """Return the ways to the next page, the likeliest first."""
        signs, rows = page.signs, page.rows or 0
        if self.profile.style in ("page", "offset") and rows:
            numbers = [self._came] if self.profile.style == "offset" else self._page_numbers()
            chosen: list[Way] = [
                {self.profile.parameter or self.profile.style: str(n)} for n in numbers
            ]
            return [*chosen, *signs.ways]
        links: list[Way] = [way for way in signs.ways if isinstance(way, str)]
        queries = [
            way for way in signs.ways if not isinstance(way, str) and not isinstance(self._way, str)
        ]
        if not links and not queries and rows:
            queries = self._counted(signs, rows)
        # What worked for the last page comes first.
        queries.sort(key=lambda way: tuple(way) != tuple(self._way or ()))
        return [*links[:2], *queries][:MAX_WAYS]

    def _page_numbers(self) -> list[int]:
        """Return the numbers that the next page may have, where the settings say that pages are numbered.

        Nobody knows whether the first one was 0 or 1 until the page 1 is asked for: it is the next, or the same again.
        """
        last = self._number or 0
        is_known = self._number is not None and (self._base or self._seen > 1)
        return [last + 1] if is_known else [last + 1, last + 2]

    def _counted(self, signs: Signs, rows: int) -> list[Mapping[str, str]]:
        """Return the ways by the number of the page, or of the row, that the answer states."""
        if signs.page:
            name, number = signs.page
            is_plain = not re.match("current|number$", name, re.IGNORECASE)
            every = (name, "page", name.replace("_", "-")) if is_plain else ("page",)
            ways = [{one: str(number + 1)} for one in dict.fromkeys(every)]
            # Counted from 0 in the answer, and from 1 in the question.
            return [*ways, *([{every[0]: str(number + 2)}] if self._base == 0 else [])]
        if signs.offset:
            name, offset = signs.offset
            return [{one: str(offset + rows)} for one in dict.fromkeys((name, "offset"))]
        return []

    def _following(self, page: ForeignPage, call: Call) -> tuple[ForeignPage, Call] | None:
        """Return the next page by the first way that leads to one; None where this one is the last."""
        more = self._says_more(page)
        ways = [] if more is False else self._ways(page)
        if not ways:
            self._end(page, more)
            return None
        if len(self._asked) > MAX_PAGES or self._empty > MAX_EMPTY:
            raise ProtocolError(
                f"The pages of the answer do not end: {len(self._asked):,} came, with {self._came:,} rows."
            )
        calls = [(way, one) for way in ways for one in self._calls(call, way)]
        new = [
            (way, one) for way, one in calls if (self._address(one), one.body) not in self._asked
        ]
        if not new:
            if calls and not page.rows and not page.signs.go_on:
                return None
            if calls:
                raise self._circle()
            raise ProtocolError(
                f"Only the first {self._came:,} rows came, and the others have no address. If the query may run again "
                f"for each page, say it with `%nbext set remote.idempotent true`. {self._lines()}"
            )
        refusal: ApiError | None = None
        for way, asked in new:
            self._asked.add((self._address(asked), asked.body))
            try:
                found = self.ask(asked)
            except ApiError as error:
                if error.status not in _NOT_SO:
                    raise
                refusal = error
                continue
            if self._repeats(found):
                refusal = None
                continue
            self._check_number(page, found, way)
            asked_for = "" if isinstance(way, str) else next(iter(way.values()))
            if self.profile.style == "page" and asked_for.isdecimal():
                # The number that was asked for: an answer may count its pages otherwise.
                self._number = int(asked_for) - 1
            self._way, self._before = way, page.signs
            return found, asked
        self._refuse(ways, more, refusal)
        return None

    def _refuse(self, ways: list[Way], more: bool | None, refusal: ApiError | None) -> None:
        """Raise the error of a next page that is not to be had, unless nothing says that there is one."""
        counted = self.profile.style in ("page", "offset")
        if more is None and (self._stated or (counted and isinstance(refusal, NotFound))):
            # Some services have no page after the last one, and say so with a 404.
            last = next((way for way in ways[::-1] if not isinstance(way, str)), {})
            asked = ", ".join(
                f"{one_line(name, length=40)} {last[name]}" for name in list(last)[:1]
            )
            says = f"answers {refusal.status}" if refusal else "sends the same page again"
            self._notes.append(
                f"Nothing proves that the {self._came:,} rows are all: asked for {asked or 'the next page'}, the "
                f"service {says}. There may be more."
            )
        elif refusal is None:
            raise self._repeated(ways)
        elif self._is_reached() or not counted:
            raise refusal

    def _end(self, page: ForeignPage, more: bool | None) -> None:
        """Note or refuse an end that no sign proves."""
        signs = page.signs
        if more and self._is_reached():
            hints = ", ".join(one_line(path, length=60) for path in signs.hints[:3])
            raise ProtocolError(
                f"Only the first {self._came:,} rows came: {hints or 'its page, which is full'} says that they are not "
                f"all, but not how to ask for the others. {self._lines(signs.hints[:3])}"
            )
        number = self._seen if signs.page is None else signs.page[1] - self._base + 1
        if not self._stated and number < (signs.pages or 0):
            self._notes.append(
                f"The service states {signs.pages:,} pages, and says after {number:,} that there are no more."
            )
        if more is None and signs.size == page.rows:
            self._notes.append(
                f"The answer has exactly the {signs.size:,} rows that it may have: there may be more."
            )
        elif more is None and "next" in signs.nowhere and self._seen == 1:
            self._notes.append(
                f"{self._place}.paths.next leads to nothing, and nothing else says that the {self._came:,} rows are "
                "all."
            )

    def _calls(self, call: Call, way: Way) -> list[Call]:
        """Return the requests that a way may mean: a search's next page may be asked for in its body or its query."""
        url = self._address(call)
        # A segment is not run again for each page, unless the settings allow it; a search may be.
        again = call.method == "POST" and call.repeat is Repeat.ALWAYS and call.body is not None
        # Another page is another question: under the same key it would get the same answer.
        headers = {name: text for name, text in call.headers.items() if name != IDEMPOTENCY_HEADER}
        if isinstance(way, str):
            target = self.origin.follow(way, url)
            posted = [replace(call, target=target, headers=headers)] if again else []
            return [replace(call, method="GET", target=target, body=None), *posted]
        in_query = replace(call, target=with_query(url, way), headers=headers)
        if call.method == "GET":
            return [in_query]
        if not again:
            return []
        body = json.loads(call.body or b"{}")
        for name, value in way.items():
            place, (*outer, inner) = body, name.split(".")
            for one in outer:
                place = place.setdefault(one, {})
            place[inner] = int(value) if value.isdigit() and len(value) < 10 else value
        return [replace(call, body=json.dumps(body).encode(), headers=headers), in_query]

    def _check_number(self, page: ForeignPage, found: ForeignPage, way: Way) -> None:
        before, now = page.signs, found.signs
        if isinstance(way, str) or before.ways:
            return
        pairs = [(before.page, now.page, 1), (before.offset, now.offset, page.rows or 0)]
        for one, other, step in pairs:
            # What does not change is no number of a page to who has set how pages are asked for.
            constant = self.profile.style and one and other and one[1] == other[1]
            if one and other and other[1] != one[1] + step and not constant:
                raise ProtocolError(
                    f"After {one_line(one[0], length=40)} {one[1]:,} the service sent {other[1]:,}: "
                    f"rows between would be missing. {self._lines()}"
                )

    # -------------------------------------------------------------- errors

    def _check_end(self) -> None:
        """Refuse other rows than were stated; note where nothing proves that they are all.

        TruncatedResponse where the body may have ended early, and looks so.
        """
        for path, expected in self._stated.items():
            by_limit = self.limit is not None and self._came == min(self.limit, expected)
            if self._came != expected and (path == "returned" or not by_limit):
                raise ProtocolError(
                    f"The service states {expected:,} rows, but {self._came:,} came ({one_line(path, length=60)}). "
                    f"{self._lines([path], more=expected > self._came)}"
                )
        if self._cut and not self._stated:
            raise TruncatedResponse(
                f"The answer ends in the middle of a line, after {self._came:,} rows, and states neither its length "
                "nor a count."
            )
        if self._unproven and (self._cut or not self._stated):
            self._notes.append(HALF if self._cut else UNPROVEN)

    def _lines(self, fields: Sequence[str] = (), *, more: bool = True) -> str:
        """Return the lines of settings that ask for the other pages, or say that a field does not speak of any."""
        paged = (
            f'Say how with `%nbext set {self._place}.paging.style = "page"` or "offset" '
            f"({self._place}.paging.parameter is its name), or where the next one begins with "
            f"{self._place}.paths.next. "
        )
        known = f"{_known(self.profile, fields)} says that it does not matter." if fields else ""
        return f"{paged if more else ''}{known}".strip()

    def _circle(self) -> ProtocolError:
        return ProtocolError(
            f"The pages of the answer lead in a circle after {self._came:,} rows. {self._lines()}"
        )

    def _repeated(self, ways: list[Way]) -> ProtocolError:
        first = {
            name: way[name] for way in ways if not isinstance(way, str) for name in list(way)[:1]
        }
        named = " or ".join(repr(one_line(name, length=40)) for name in first)
        asked = f" The service may not read {named}." if named else ""
        # Who sends a cursor counts no pages.
        others = "" if first and not any(map(str.isdigit, first.values())) else f" {self._lines()}"
        return ProtocolError(
            f"The same page came twice, after {self._came:,} rows.{asked} Set the name that it reads: "
            f'`%nbext set {self._place}.paging.parameter = "..."`.{others}'
        )


def _ends(page: ForeignPage) -> list[list[dict[str, Any]]]:
    """Return the first and the last rows of a page."""
    if page.table is None:
        records = page.records or []
        return [records[:500], records[-500:]]
    last = page.table.slice(max(0, page.table.num_rows - 500))
    return [page.table.slice(0, 500).to_pylist(), last.to_pylist()]


def unknown_notes(
    unknown: Mapping[str, Any], profile: ForeignProfile, holder: str = "answer"
) -> list[str]:
    """Return the note on fields that no rule understands, where there are any."""
    if not unknown:
        return []
    few, place = list(unknown.items())[:6], f"remote.{profile.operation}"
    values = ", ".join(f"{one_line(path, length=60)} = {value_shown(value)}" for path, value in few)
    more = f" and {len(unknown) - len(few):,} more" if len(unknown) > len(few) else ""
    they = "it does" if len(few) == 1 else "they do"
    return [
        f"Beside the rows the {holder} has fields that nbext does not understand: {values}{more}. If one of them "
        f"says that rows are missing, say how the others are asked for ({place}.paging, {place}.paths.next); "
        f"{_known(profile, [path for path, _ in few])} says that {they} not matter."
    ]


def _known(profile: ForeignProfile, fields: Sequence[str]) -> str:
    names = [one_line(path.rpartition(".")[2].strip('"'), length=60) for path in fields]
    line = profile.adding(f"{profile.operation}.known", [name.replace('"', "") for name in names])
    return f"`%nbext set {line}`"


def with_query(url: str, changes: Mapping[str, str]) -> str:
    """Return the URL with other values in its query; what is not changed stays as it is."""
    parts = urlsplit(url)
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name not in changes
    ]
    return urlunsplit(parts._replace(query=urlencode([*kept, *changes.items()])))
