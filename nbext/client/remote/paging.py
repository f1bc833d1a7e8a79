"""All rows of an answer: from page to page until a sign says that there are no more, or an error with what would help.

A sign of the end: the total is reached, "more" is false, a page is short or empty, a next is null or missing. A full
page of which nothing says that it is the last is asked after, or noted. A page that cannot be asked for, one that comes
twice, and fewer rows than are stated are errors. The caller's limit ends the walk before any of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from nbext.client.decode import State, miscounted
from nbext.client.remote.content import ForeignPage
from nbext.client.remote.field_names import Place, bare, first_in, has_error, is_address, names
from nbext.client.remote.profile import ForeignProfile
from nbext.client.remote.signs import Signs, Way, value_shown
from nbext.core.uint256 import whole_of
from nbext.core.wire import IDEMPOTENCY_HEADER
from nbext.errors import (
    ApiError,
    NbextError,
    NotFound,
    ProtocolError,
    ResponseTooLarge,
    TruncatedResponse,
)
from nbext.http.base_url import Origin
from nbext.http.errors import one_line
from nbext.http.transport import Call, Repeat

MAX_PAGES, MAX_WAYS = 10_000, 4
# Rows that are remembered, to know one that comes again.
MOST_SEEN = 1_000_000
UNPROVEN = "The service states neither its answer's length nor how many rows there are: its end cannot be verified."
HALF = "The service does not state the length of its answer, and its last line has no end: its last value may be cut."
_ID, _NUMBER = ("id", "Id", "ID"), re.compile(r"[-\d.,]+")
# What a service answers to a request that it does not take so: another method, place or name may do.
_NOT_SO = (400, 404, 405, 410, 415, 422)


@dataclass
class Walk:
    """The pages of one answer, the ``first`` read already. ``ask`` reads a request's answer, ``origin`` follows links.

    ``counts`` are the rows that the description states, by where. ``cap`` bounds the bytes of all pages.
    """

    ask: Callable[[Call], Any]
    origin: Origin
    first: Any
    limit: int | None
    counts: Mapping[str, int]
    cap: int | None

    def __post_init__(self) -> None:
        self._profile: ForeignProfile = self.first.profile
        self._place = f"remote.{self._profile.operation}"
        silences = self._profile.silences
        self._stated = {path: n for path, n in self.counts.items() if not silences(path)}
        # What came: rows, bytes, pages, and the rows of the largest page.
        self._came = self._bytes = self._seen = self._most = 0
        self._unproven = self._cut = self._ended = False
        # The page's number where the settings count pages, and the number of the first page.
        self._number, self._base = 0, 1
        # What led to this page, and what the page before said.
        self._way: Way | None = None
        self._before = Signs()
        self._unknown, self._notes = dict[str, Any](), self.first.warnings
        # Whether tables or records came, and the columns: in order, of all rows, and of any.
        self._kinds, self._columns = set[bool](), list[str]()
        self._always, self._ever = set[str](), set[str]()
        # What was asked for, and the pages and rows that came, to know one that comes again: by its texts, or whole.
        self._asked = set[tuple[str, bytes | None]]()
        self._rows, self._are_told = set[int](), False

    def pages(self, call: Call) -> Iterator[ForeignPage]:
        """Yield the pages, the first one being the answer to the call; the next is asked for when it is wanted."""
        page: ForeignPage = self.first
        signs = page.signs
        if "total" in signs["nowhere"]:
            raise ProtocolError(f"{self._place}.paths.total leads to nothing in the answer.")
        self._asked.add(self._mark(call))
        at = [found[1] for kind in ("page", "offset") if (found := signs.first(kind))]
        if signs["page"]:
            self._number, self._base = at[0], min(at[0], 1)
        self._repeats(page)
        # Some count rows from 1.
        if signs["earlier"] or max(at, default=0) > 1:
            self._notes.append(
                "The service says that this is not its first page: rows before it may be missing."
            )
        yield from self._walk(page, call)
        if not self._kinds:
            raise ProtocolError(
                f"The service was asked for rows, and none of its {self._seen:,} pages has any."
            )
        for path, expected in miscounted(self._came, self._stated, self.limit).items():
            raise ProtocolError(
                f"The service states {expected:,} rows, but {self._came:,} came ({one_line(path, length=60)}). "
                f"{self._lines([path], more=expected > self._came)}"
            )
        if self._cut and not self._stated:
            # The body may have ended early, and looks so.
            raise TruncatedResponse(
                f"The answer ends in the middle of a line, after {self._came:,} rows, and states neither its length "
                "nor a count."
            )
        if self._unproven and (self._cut or not self._stated):
            self._notes.append(HALF if self._cut else UNPROVEN)
        self._notes += unknown_notes(self._unknown, self._profile)

    def _walk(self, page: ForeignPage, call: Call) -> Iterator[ForeignPage]:
        while True:
            self._count(page)
            yield page
            for link in page.parts:
                part = None if self._ended else self._next([link], page, call, more=True)
                # A part has pages of its own.
                self._way = None
                yield from self._walk(*part) if part else ()
            more = not self._ended and self._says_more(page)
            if self.limit and self._came >= self.limit:
                # The note is of a service that has more and no total.
                if more and (page.signs["way"] or page.signs.go_on or self._is_reached()):
                    self._notes.append(
                        f"The limit of {self.limit:,} rows is reached; the service has more."
                    )
                self._ended, more = True, False
            ways = [] if more is False else self._ways(page)
            if not ways and not self._ended:
                self._end(page, more)
            found = self._next(ways, page, call, more=more) if ways else None
            if found is None:
                return
            if self._seen == 1 and self._profile.style == "offset" and not self._stated:
                self._check_offset(page, call)
            page, call = found

    def _check_offset(self, page: ForeignPage, call: Call) -> None:
        """Refuse to ask for rows by their number where pages are counted: from row 2 on come rows of the first page."""
        name, first = first_in(self._way or (), ""), self._marks(page)
        # Of two rows the second; and not the first row, with which the first of all pages begins.
        found = first[1:]
        with suppress(NbextError):
            found = self._marks(self.ask(self._calls(call, {name: str(min(2, len(found)))})[0]))
        if len(first) > 1 and (first[0] in found or set(found).isdisjoint(first)):
            raise self._missing(f"{one_line(name, length=40)} seems to count pages, and not rows.")

    def _mark(self, call: Call) -> tuple[str, bytes | None]:
        return self.origin.address(call.target), call.body

    # -------------------------------------------------------------- one page

    def _count(self, page: ForeignPage) -> None:
        """Count a page's rows and what it states."""
        rows, signs = page.rows or 0, page.signs
        self._notes += [note for note in page.warnings if note not in self._notes]
        if self._seen and page.state not in (None, State.COMPLETED) and not signs["way"]:
            raise ProtocolError(
                f"After {self._came:,} rows a page says that it is not done: its rows may be missing."
            )
        self._unknown = signs["unknown"] | self._unknown
        self._unproven |= page.unproven
        self._cut |= page.cut
        self._bytes += page.size
        self._seen, self._most = self._seen + 1, max(self._most, rows)
        if self.cap is not None and self._bytes > self.cap:
            raise ResponseTooLarge(
                f"The pages of the answer are larger than {self.cap / 1e6:,.0f} MB in all. "
                "Raise the setting max_body_mb, or export to a file with to=."
            )
        if not page.bare and not page.parts:
            self._kinds.add(page.table is None)
        if len(self._kinds) > 1:
            raise ProtocolError("Some pages of the answer are CSV, and some are JSON.")
        if page.records:
            self._name(page, page.records)
        self._count_stated(signs, rows)
        self._note_errors(page)
        self._came += rows
        # Without an address, a row may well be there twice where a page has others of the same texts.
        marks = [hash(mark) for mark in self._marks(page) if self._are_told or "0x" in mark]
        now = set(marks)
        if twice := len(now & self._rows) + len(marks) - len(now):
            self._notes.append(
                f"{twice:,} rows came twice. The data may have moved between pages, and others be missing."
            )
        if len(self._rows) < MOST_SEEN:
            self._rows |= now

    def _note_errors(self, page: ForeignPage) -> None:
        """Note a row that has an error in a column of its own, wherever it is."""
        table = page.table
        for name in self._ever if table is None else table.column_names:
            if bare(name) in names("errors"):
                rows = page.records or []
                values = (
                    [row.get(name) for row in rows] if table is None else table[name].to_pylist()
                )
                if any(has_error(name, one, "column") for one in values):
                    which = one_line(name, length=40)
                    self._notes.append(f"A row has an error, in {which}: others may be missing.")

    def _count_stated(self, signs: Signs, rows: int) -> None:
        # Totals change while data lives: the largest says how many rows there were. Each page's own count is no total.
        sizes = (rows, signs.first("size")) if self._came else ()
        for path, total in signs["total"].items():
            self._stated[path] = max(total, self._stated.get(path, 0))
            if total in sizes and self._stated[path] <= max(self._most, total):
                del self._stated[path]
        # A count may be of this page or of all: only what is not this page's is one of all.
        self._stated |= {path: n for path, n in signs["count"].items() if n != rows}

    def _name(self, page: ForeignPage, records: Sequence[Place]) -> None:
        """Have a page's records under the columns of the first, where they are lists without names: SQL by a cursor.

        A note where a column has another name than on the pages before, once for each name: the rows would be half
        empty. Of the address, an error.
        """
        first = records[0]
        self._columns = self._columns or list(first)
        if page.unnamed and len(first) == len(self._columns):
            named = (zip(self._columns, row.values(), strict=True) for row in records)
            page.records = list(map(dict, named))
            return
        always, ever = set(first).intersection(*records), set(first).union(*records)
        lost, new = self._always - ever, always - self._ever
        if lost or (new and self._came):
            before, now = (
                repr(one_line(min(names, default=""), length=40)) for names in (lost, new)
            )
            what = f"is called {now}" if lost and new else "is missing" if lost else "comes first"
            text = f"After {self._came:,} rows the column {before if lost else now} {what}."
            if lost and any(is_address(first[name]) for name in new):
                raise ProtocolError(text)
            self._notes.append(text)
        self._always = self._always & always if self._ever else always
        self._ever |= ever

    def _repeats(self, page: ForeignPage) -> bool:
        """Say whether a page came before: its first and last rows are the same."""
        if not page.rows:
            return False
        mark = hash((page.rows, *self._marks(page)))
        seen = mark in self._rows
        self._rows.add(mark)
        return seen

    def _marks(self, page: ForeignPage) -> list[str]:
        """Return what tells a page's first and last rows from others: not their numbers, where they are told without.

        A row alone is told as those of the page before it.
        """
        rows = page.ends(500)
        # Balances change from one request to the next; the number of a token does not.
        told = [
            [row[name] for name in row if name[-2:] in _ID or not _NUMBER.fullmatch(str(row[name]))]
            for row in rows
        ]
        if len(rows) > 1:
            self._are_told = len(set(map(repr, told))) == len(rows)
        # An address is the same with and without its checksum.
        return [repr(one).lower() for one in (told if self._are_told else rows)]

    # -------------------------------------------------------------- the next page

    def _is_reached(self) -> bool:
        return self._came >= max(self._stated.values(), default=0)

    def _says_more(self, page: ForeignPage) -> bool | None:
        """Say whether a sign says that there are more rows, or that there are none; None where nothing says either."""
        signs, rows = page.signs, page.rows or 0
        is_counted, size, least = bool(self._stated), signs.first("size"), signs.first("least")
        # A total that is the page's own size proves nothing where pages can be asked for.
        is_numbered = signs["page"] or signs["offset"] or size == rows or self._profile.style
        is_short = rows < (size or 0) or (self._seen > 1 and rows < self._most)
        has_link = any(isinstance(way, str) for way in signs.ways)
        more: bool | None = None
        if not self._is_reached() or (least is not None and self._came <= least):
            more = True
        elif signs.go_on is not None:
            # A link to a next page outranks a field that says that there is none, until all rows came.
            more = None if has_link and not is_counted and rows else signs.go_on
        elif has_link or (signs["way"] and not isinstance(self._way, str)):
            # Where links lead, a cursor without one is no next page. One that leads on from an empty page has no end,
            # where all rows that there are came.
            leads = bool(rows) or not is_counted or self._seen < 2
            # What the settings say led here, and leads no further: another sign may.
            more = None if leads and self._before.is_chosen and not signs.is_chosen else leads
        elif is_counted and self._seen > 1:
            more = False
        elif signs["pages"] and (signs["page"] or not is_counted):
            more = self._place_of(signs) < signs.first("pages")
        elif (
            not rows
            or signs["ended"]
            or self._before["way"]
            or is_short
            or (is_counted and not is_numbered)
        ):
            more = False
        return more

    def _place_of(self, signs: Signs) -> int:
        """Return which page of all this is: the first is 1."""
        return signs.first("page")[1] - self._base + 1 if signs["page"] else self._seen

    def _ways(self, page: ForeignPage) -> list[Way]:
        """Return the ways to the next page, the likeliest first."""
        counted = self._counted(page.signs, page.rows) if page.rows else []
        own, ways = self._profile.parameter, page.signs.ways
        if own:
            # None is guessed; an object of several values is sent as it is.
            ways = [
                way if isinstance(way, str) or len(way) > 1 else dict.fromkeys([own], *way.values())
                for way in ways
            ]
        if self._profile.style in ("page", "offset"):
            return counted + ways
        # Where a link led here, a cursor beside it leads nowhere.
        of_links = isinstance(self._way, str)
        ways = [way for way in ways if isinstance(way, str) or not of_links] or counted
        # What worked for the last page comes first, after links.
        known = tuple(self._way or ())
        ways.sort(key=lambda way: not isinstance(way, str) and 1 + (tuple(way) != known))
        return ways[:MAX_WAYS]

    def _counted(self, signs: Signs, rows: int) -> list[Way]:
        """Return the ways by the number of the page, or of the row, that the settings or the answer count."""
        style, own = self._profile.style, self._profile.parameter
        kind = style if style in ("page", "offset") else "page" if signs["page"] else "offset"
        name, number = signs.first(kind) or ("", None)
        if kind == style:
            number = self._number if kind == "page" else self._came - rows
        if number is None:
            return []
        # Spring and Flipside read another name than they send.
        sent = "" if re.match("(?i)current|number$", name) else name
        names = [own] if own else list(filter(None, (sent, kind, sent.replace("_", "-"))))
        step = 1 if kind == "page" else rows
        ways: list[Way] = [{one: str(number + step)} for one in dict.fromkeys(names)]
        # Whether pages are counted from 0 or from 1 shows when 1 is asked for: the next page comes, or the same again.
        from_0 = kind == "page" and (self._base == 0 or not number)
        return [*ways, {names[0]: str(number + 2)}] if from_0 else ways

    def _next(
        self, ways: Sequence[Way], page: ForeignPage, call: Call, *, more: bool | None
    ) -> tuple[ForeignPage, Call] | None:
        """Return the page that the first of some ways leads to; None where there is none, and nothing says ``more``."""
        calls = [(way, one) for way in ways for one in self._calls(call, way)]
        if not calls:
            raise self._missing(
                "the others have no address. If the query may run again for each page, say it with "
                "`%nbext set remote.idempotent true`."
            )
        new = [(way, one) for way, one in calls if self._mark(one) not in self._asked]
        if not new and not (page.rows or page.parts or page.signs.go_on):
            return None
        if not new or len(self._asked) > MAX_PAGES:
            raise self._missing("the pages of the answer do not end, or lead in a circle.")
        refusal: ApiError | None = None
        for way, asked in new:
            self._asked.add(self._mark(asked))
            try:
                found = self.ask(asked)
            except ApiError as error:
                if error.status not in _NOT_SO:
                    raise
                refusal = error
                continue
            if not self._repeats(found):
                self._check_number(page, found, way)
                if not isinstance(way, str):
                    # The number that was asked for: an answer may count its pages otherwise.
                    self._number = whole_of(first_in(way.values())) or self._number
                self._way, self._before = way, page.signs
                return found, asked
            refusal = None
        self._refuse(ways, more, refusal)
        return None

    def _refuse(self, ways: Sequence[Way], more: bool | None, refusal: ApiError | None) -> None:
        """Raise the error of a next page that is not to be had, unless nothing says that there is one."""
        last = dict(first_in(way.items()) for way in ways if not isinstance(way, str))
        named = [one_line(name, length=40) for name in last]
        is_counted = any(map(str.isdigit, last.values()))
        if more is None and (self._stated or (is_counted and isinstance(refusal, NotFound))):
            # Some services have no page after the last one, and say so with a 404.
            asked = f"{named[-1]} {list(last.values())[-1]}" if named else "the next page"
            says = f"answers {refusal.status}" if refusal else "sends the same page again"
            self._notes.append(
                f"Nothing proves that the {self._came:,} rows are all: asked for {asked}, the "
                f"service {says}. There may be more."
            )
        elif refusal is None:
            reads = f" The service may not read {' or '.join(map(repr, named))}." if named else ""
            # Who sends a cursor counts no pages.
            others = f" {self._lines()}" if is_counted or not named else ""
            raise ProtocolError(
                f"The same page came twice, after {self._came:,} rows.{reads} Set the name that it reads: "
                f'`%nbext set {self._place}.paging.parameter = "..."`.{others}'
            )
        else:
            raise refusal

    def _end(self, page: ForeignPage, more: bool | None) -> None:
        """Note or refuse an end that no sign proves."""
        signs, number = page.signs, self._place_of(page.signs)
        pages, size = signs.first("pages") or 0, signs.first("size")
        if more and self._is_reached():
            raise self._missing(
                f"{signs.hinted() or 'its page, which is full'} says that they are not all, but not how to ask for the "
                "others.",
                signs.hints,
            )
        is_last = number == pages > 1 and not page.rows
        if not self._stated and (number < pages or is_last):
            self._notes.append(
                f"The service states {pages:,} pages, and says after {number - is_last:,} that there are no more."
            )
        if more is None and size == page.rows:
            self._notes.append(
                f"The answer has exactly the {size:,} rows that it may have: there may be more."
            )
        elif more is None and "next" in signs["nowhere"] and self._seen == 1:
            self._notes.append(
                f"{self._place}.paths.next leads to nothing, and nothing else says that the {self._came:,} rows are "
                "all."
            )

    def _calls(self, call: Call, way: Way) -> list[Call]:
        """Return the requests that a way may mean: a search's next page may be asked for in its body or its query."""
        url = self.origin.address(call.target)
        # Another page is another question: under the same key it would get the same answer.
        headers = {name: text for name, text in call.headers.items() if name != IDEMPOTENCY_HEADER}
        if isinstance(way, str):
            target = self.origin.follow(way, url)
        else:
            # What is not changed in the query stays as it is.
            parts = urlsplit(url)
            given = parse_qsl(parts.query, keep_blank_values=True)
            kept = [pair for pair in given if pair[0] not in way]
            target = parts._replace(query=urlencode([*kept, *way.items()])).geturl()
        moved = replace(call, target=target, headers=headers)
        if call.method == "GET":
            return [moved]
        # A segment is not run again for each page, unless the settings allow it; a search may be.
        again = [moved] if call.repeat is Repeat.ALWAYS else []
        if isinstance(way, str):
            return [replace(moved, method="GET", body=None), *again]
        body = json.loads(call.body or b"{}")
        for name, value in way.items():
            place, (*outer, inner) = body, name.split(".")
            for one in outer:
                # A stranger's name may lead into a text of ours.
                place = place.setdefault(one, {}) if isinstance(place, dict) else None
            if isinstance(place, dict):
                # A page's number; 007 and other scripts' digits are texts of the service's own.
                place[inner] = int(value) if re.fullmatch("0|[1-9][0-9]{0,8}", value) else value
        inside = replace(call, body=json.dumps(body).encode(), headers=headers)
        return [inside, *again] if again else []

    def _check_number(self, page: ForeignPage, found: ForeignPage, way: Way) -> None:
        before, now = page.signs, found.signs
        if isinstance(way, str) or before["way"]:
            return
        for kind, step in (("page", 1), ("offset", page.rows or 0)):
            one, other = before.first(kind), now.first(kind)
            # What does not change is no number of a page to who has set how pages are asked for.
            is_constant = self._profile.style and one and other and one[1] == other[1]
            if one and other and other[1] != one[1] + step and not is_constant:
                raise self._missing(
                    f"after {one_line(one[0], length=40)} {one[1]:,} the service sent {other[1]:,}: rows between would "
                    "be missing."
                )

    # -------------------------------------------------------------- errors

    def _lines(self, fields: Sequence[str] = (), *, more: bool = True) -> str:
        """Return the lines of settings that ask for the other pages, or say that a field does not speak of any."""
        paged = (
            f'Say how with `%nbext set {self._place}.paging.style = "page"` or "offset" '
            f"({self._place}.paging.parameter is its name), or where the next one begins with "
            f"{self._place}.paths.next. "
        )
        known = f"{self._profile.knowing(fields)} says that it does not matter." if fields else ""
        return f"{paged if more else ''}{known}".strip()

    def _missing(self, why: str, fields: Sequence[str] = ()) -> ProtocolError:
        return ProtocolError(
            f"Only the first {self._came:,} rows came: {why} {self._lines(fields)}"
        )


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
        f"{profile.knowing([path for path, _ in few])} says that {they} not matter."
    ]
