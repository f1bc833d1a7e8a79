"""What an answer says of rows beyond its own: where the next page is, if there is one, and how many rows in all.

Signs are read on every answer, whatever the settings say. Only a name that they know, for one operation, says nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

from nbext.client.decode import State
from nbext.client.remote.field_names import (
    ECHOES,
    NOT_ROWS,
    STATUSES,
    Place,
    bare,
    by_bare,
    first_in,
    first_named,
    kind_named,
    last_name,
    like,
    names,
    number_of,
    path_to,
    places,
    said,
    says,
    says_whole,
    shape_of,
    state_of,
    truth_of,
    vocabulary,
)
from nbext.core.untrusted_text import quoted, shown
from nbext.http.errors import one_line

_LINK = re.compile(r"<([^<>]{1,8000})>((?:\s*;\s*[\w*-]+\s*(?:=\s*(?:\"[^\"]*\"|[^\s;,\"]+))?)*)")
# Numbers in a text, whatever is between their thousands; one of which only the first digits are there; and what says
# that there may be more: "10+", or any relation but that both are equal.
_NUMBERS = re.compile(
    r"(?i)(?<=0x)[0-9a-f]{1,15}|[0-9]{1,3}(?:[ .'_\u00a0\u2019\u202f][0-9]{3})+(?![0-9])|[0-9][0-9,]*(?!x)"
)
_ROUNDED = re.compile(r"(?i)[0-9]\s*(k|m|b|tsd|mio|mrd|thousand|million|billion)\b")
_LEAST = re.compile(r"(?i)^(?!(none|eq\w*|=+|exact\w*|) )|>|≥|[0-9]\s*\+|\b(over|more|least)\b")
# What a value says where rows are missing, under a name that is harmless otherwise.
_A_PART = re.compile(
    r"(?i)\b(partial\w*|sampled?|truncat\w*|incomplete|omitted|capped|stale|deprecated|upgrade|free (plan|tier))\b|"
    r"\b(first|only|limited to|page)\s+(the )?[0-9]|[0-9]\s+of\s+[0-9]|(?<![\w/.])[0-9]+/[0-9]+(?![\w/.])|"
    r"more (rows|results|than)|not all|out of date|exceed"
)
_kind = partial(kind_named, "signs")
# Kinds of what leads to the next page.
_LEADING = ("next", "older", "cursor", "parameters")
_PLAIN = (str, int, Decimal, float)


# One way to ask for the next page: an address, or what to change in the query of this page's.
Way = str | Mapping[str, str]


class Signs(defaultdict[str, dict[str, Any]]):
    """What one answer says of all rows, beside its own: by kind of sign the fields that give it, with what they say.

    ``way``: ways to the next page, of which a field may mean several; ``more``: whether there is one; ``ended``: a next
    that is null; ``earlier``: pages come before this one; ``total`` of all rows, and ``least`` one that may be higher;
    ``count``: of this page, or of all; ``page`` and ``offset``: their names and numbers; ``pages`` and ``size``: how
    many of them, and of rows in one; ``stale`` and ``warning``: what is to be noted; ``as_of``: the time of the data;
    ``unknown``: what no rule understands, and that may say anything; ``nowhere``: the user's paths that lead to
    nothing.

    ``silences`` says of a field whether the settings know it.
    """

    def __init__(self, silences: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__(dict)
        self._silences = silences

    def first(self, kind: str) -> Any:
        """Return what the first field says that gives a sign of that kind, the outermost; None where there is none."""
        return first_in(self[kind].values())

    @property
    def ways(self) -> list[Way]:
        """All ways to the next page, the likeliest first."""
        return [way for ways in self["way"].values() for way in ways]

    @property
    def is_chosen(self) -> bool:
        """Whether the settings say where the next page is."""
        return "remote.paths.next" in self["way"]

    @property
    def go_on(self) -> bool | None:
        """Whether there is a next page, as a field says; None where none does."""
        return any(self["more"].values()) if self["more"] else None

    @property
    def hints(self) -> list[str]:
        """The first of the fields that say that there is more."""
        more = [path for path, is_more in self["more"].items() if path and is_more]
        pages = [path for path, number in self["pages"].items() if number > 1]
        return [*self["way"], *more, *self["least"], *pages][:3]

    def hinted(self) -> str:
        """Return the fields that say that there is more, for a message."""
        return ", ".join(one_line(path, length=60) for path in self.hints)

    def notes(self) -> list[str]:
        """Return what is to be noted of the answer: its warnings, and how old its data is."""
        old = (
            f"The data may be old: {path} = {value_shown(value)}."
            for path, value in self["stale"].items()
        )
        return [one_line(note, length=300) for note in (*old, *self["warning"].values())]

    def place(self, path: str, place: Place, about: bool = True) -> None:
        """Take what the fields of one object say; what no rule understands may say anything, and is unknown."""
        # What is in it decides what others say.
        kinds = {f"{_kind(bare(name))}={shape_of(value)}" for name, value in place.items()}
        beside = f" {' '.join(sorted(kinds))} "
        holder, named = last_name(path), by_bare(place)
        others = any(map(named.get, ("next", "prev", "previous")))
        last, own = named.get("last"), named.get("self", named.get("first"))
        if about and holder in ("link", "links") and last and last != own and not others:
            # The first page is not the last one, and no link leads on.
            self["more"][path] = True
        for name, value in place.items():
            plain, here = bare(name), path_to(path, name)
            leads = _kind(plain) in _LEADING
            if leads and isinstance(value, list) and len(value) == 1:
                # HAL's link may be a list of one.
                value = value[0]  # noqa: PLW2901
            if self._silences(here):
                continue
            if value is None or (isinstance(value, str) and value.lower() in ("", "null", "none")):
                # A next that is null says that there is none.
                self["ended"] |= {here: None} if about and leads else {}
                continue
            if isinstance(value, list) and _kind(plain) != "chain":
                self._list(here, plain, value, about)
                continue
            # Some names say something else in certain objects, or beside certain others.
            line = f"{_kind(holder)}:{holder}.{plain}={shape_of(value)} beside {beside}"
            rules = vocabulary()["there"].items()
            kind = next((k for rule, k in rules if re.fullmatch(rule, line)), _kind(plain))
            if not self._take(kind, here, name, value, about) and _may_speak(
                plain, value, holder, inside=bool(path)
            ):
                self["unknown"][here] = value

    def _take(self, kind: str, here: str, name: str, value: Any, about: bool) -> bool:
        """Take the sign that a field gives, and say whether it is understood."""
        is_about = about or kind == "shards" or (kind in _LEADING and "next" in bare(name))
        sign, found = says(kind, value) if is_about else "", value
        if sign == "way":
            found = _ways(name, value)
            if not found and about and isinstance(value, Mapping) and any(value.values()):
                # DynamoDB's key of the last row: it says that there are more, and no query takes it.
                sign = "more"
        elif sign == "total":
            sign, found = _total(value)
        elif sign in ("count", "pages", "size", "page", "offset"):
            found = number_of(value)
        if sign in ("more", "last"):
            sign, found = "more", sign == "more"
        if found in (None, []):
            return False
        self[sign].setdefault(here, (name, found) if sign in ("page", "offset") else found)
        return sign != "" and kind not in names("harmless_kinds")

    def _list(self, here: str, plain: str, items: list[Any], about: bool) -> None:
        kind = _kind(plain)
        most = 100_000 if kind == "division" else 50
        objects = [by_bare(one) for one in items[:most] if isinstance(one, Mapping)]
        if about and kind == "division" and items:
            counts = [number_of(one.get("rowcount", one.get("rows"))) for one in objects]
            if len(counts) == len(items) and None not in counts:
                self["total"][here] = sum(filter(None, counts))
        elif about and plain in names("about"):
            pairs = dict[str, Any]()
            for one in objects:
                # A relation and its address, as in HAL; a name and its value.
                name, value = (first_named(one, table) for table in ("pair_names", "pair_values"))
                if name is None or (value is None and "name" in one):
                    self.place(here, one)
                elif value is not None or "label" not in one:
                    is_next = re.search(r"(?i)\bnext\b", str(name))
                    pairs["next" if is_next else str(name)] = value or one
            self.place(here, pairs)
        elif items and kind in ("rest", "cut"):
            self._take(kind, here, plain, len(items), about)
        elif kind == "warning":
            self["warning"] |= {text: text for text in map(said, items[:20]) if text}
        # A list of more numbers is data; of more texts it may be of what is missing.
        few, is_short = items[:5], len(items) <= 5 or isinstance(items[0], str)
        is_plain = is_short and few != [] and all(isinstance(one, _PLAIN) for one in few)
        is_said = plain in ECHOES | NOT_ROWS - names("about") or kind in ("harmless", "warning")
        if is_plain and not is_said:
            self["unknown"][here] = few

    def headers(self, headers: Mapping[str, str]) -> None:
        """Take what the headers say."""
        self.place("Link", _links_of(headers.get("Link", "")))
        for name, value in list(headers.items())[:200]:
            plain = re.sub(r"^x[-_](wp[-_]|ms[-_])?", "", name.lower())
            for pattern in vocabulary()["in_header_lines"]:
                if found := re.fullmatch(f"(?i){pattern}", f"{name}: {value[:1000]}"):
                    self.place(name, found.groupdict())
            if value.startswith("{") and "pagination" in plain:
                with suppress(ValueError):
                    self.place(name, json.loads(value[:10_000]))
            elif not like("no_header_like").fullmatch(plain):
                # A vendor's name may come first: Sforce-Locator, X-Aptos-Cursor, X-Pagination-Total-Count.
                ends = (plain.split("-", number)[-1] for number in range(3))
                own = plain if name.lower() != plain else ""
                signs = (end for end in ends if _kind(bare(end)) in names("in_headers"))
                known = next(
                    (end for end in signs if bare(end) not in names("not_in_headers")), own
                )
                self.place("", {known: value} if known else {})
                # Headers speak of much else: only one that says yes or no, or that something is a part or runs, may be
                # of the rows.
                runs = bare(known) in STATUSES and state_of(value) is State.RUNNING
                if runs:
                    self["unknown"][path_to("", known)] = value
                elif truth_of(value) is None and not _A_PART.search(f"{known} {value[:1000]}"):
                    self["unknown"].pop(path_to("", known), None)


def signs_of(page: Any, rows: Any = None, at: str = "") -> Signs:
    """Return what an answer says; ``rows`` is what holds the rows, ``at`` that path, and is not searched."""
    profile, about = page.profile, {"": True}

    def enter(path: str, name: str, value: Any) -> bool:
        plain, here = bare(name), path_to(path, name)
        holds = f"{at}.".startswith(f"{here}.")
        is_about = like("about", "about_like", "wrappers").fullmatch(plain) is not None
        # Whether plain names there are about the answer.
        about[here] = about[path] and (is_about or holds)
        return value is not rows and bool(value) and (plain not in ECHOES or holds)

    found = Signs(profile.silences)
    found.headers(page.headers)
    outside = None if page.document is rows else page.document
    # The settings' path may lead into a list, or through all of its items.
    names_in_path = re.findall(r"[A-Za-z_]\w*", at) if "[" in at else []
    for top in (outside, *_holders(outside, names_in_path)):
        for path, place in places(top, enter, deep=200, most=2_000):
            some = {name: one for name, one in place.items() if one is not rows}
            found.place(path, some, about[path])
    total, after = number_of(page.find("total")), page.find("next")
    if total is not None:
        found["total"]["remote.paths.total"] = total
    is_cursor = profile.style == "cursor" and isinstance(after, str | int)
    chosen = [{"cursor": str(after)}] if after and is_cursor else _ways("cursor", after or None)
    if chosen:
        found["way"] = {"remote.paths.next": chosen}
    found["unknown"] = {
        path: value
        for path, value in found["unknown"].items()
        if not profile.reads(path, value)
        # Where a next page is, what runs is said of that.
        and not (found["way"] and last_name(path) in STATUSES)
    }
    leads = {"total": total, "next": chosen or None}
    found["nowhere"] = {name: None for name in profile.users & leads.keys() if leads[name] is None}
    return found


def _holders(value: Any, names: list[str]) -> Iterator[Place]:
    """Yield the objects that hold lists on the way of names to the rows, which have fields of their own."""
    for one in value if isinstance(value, list) else [value]:
        if names and isinstance(one, Mapping):
            inner = one.get(names[0])
            if isinstance(inner, list):
                yield one
            yield from _holders(inner, names[1:])


def _may_speak(plain: str, value: Any, holder: str, *, inside: bool) -> bool:
    """Say whether a field that was not read may be of rows that are missing, by its name and its value."""
    # Nothing, and 0, say nothing, but not of whether a page is the last.
    kind = _kind(plain)
    is_nothing = value in ("0", 0) and value is not False and kind != "last"
    if is_nothing or not isinstance(value, _PLAIN):
        return False
    # A part of it is not done: what is at the top was read as the job's.
    waits = inside and plain in STATUSES and state_of(str(value)) not in (None, State.COMPLETED)
    is_part = kind in ("more", "cut") and says(kind, value) == "more"
    is_harmless = like("harmless_places_like").fullmatch(holder) and not is_part
    is_known = is_harmless or says_whole(plain, value)
    return waits or not is_known or _A_PART.search(str(value)[:1000]) is not None


def _ways(name: str, value: Any) -> list[Way]:
    """Return the ways that a value means: an address, parameters, the number of a page, or a cursor."""
    if isinstance(value, Mapping):
        # A link, or all that is to be asked with (Blockscout, MediaWiki): nothing but texts and numbers.
        some = {key: item for key, item in list(value.items())[:50] if item is not None}
        link = first_named(some, "link_addresses")
        query = {
            key: json.dumps(item) if isinstance(item, bool) else str(item)
            for key, item in some.items()
            if isinstance(item, str | int)
        }
        is_query = query and len(query) == len(some)
        return [link] if isinstance(link, str) else [query] if is_query else []
    plain, number, is_text = bare(name), number_of(value), isinstance(value, str)
    if is_text and (
        shape_of(value) == "link" or "link" in plain or plain.endswith(("url", "uri", "href"))
    ):
        return [value]
    of_page = "page" in plain or plain.endswith("next")
    if number is not None and of_page and not re.search("token|key", plain):
        return [{"page": str(number)}] if number > 0 else []
    return _asked_with(name, str(value)) if is_text or (number is not None and number >= 0) else []


def _asked_with(name: str, value: str) -> list[Way]:
    """Return the names under which a cursor may be sent back, the likeliest first; a wrong one repeats its page."""
    # X-Next-Cursor, x-ms-continuation: the header's own beginning is no part of the name.
    own = re.sub(r"(?i)^(x[-_]|_)(ms-)?", "", name)
    asked = re.sub(r"(?i)^next[-_]?", "", own) or own
    asked = asked[0].lower() + asked[1:] if asked[1:2].islower() else asked
    first, *others = vocabulary()["asked_with"].get(bare(name), [asked])
    return [{one: value} for one in dict.fromkeys([first, asked, own, *others, "cursor"])]


def _total(value: Any) -> tuple[str, int | None]:
    """Return a total, or what it is at least: {"value": 10, "relation": "gte"}, "25 wallets", "10+"."""
    relation = ""
    if isinstance(value, Mapping):
        relation = str(value.get("relation"))
        value = first_named(value, "total_in_an_object")
    number, text = number_of(value), f"{relation} {value}"[:100]
    if number is None and isinstance(value, str) and not _ROUNDED.search(text):
        digits = (re.sub("[^0-9a-f]", "", one.lower()) for one in _NUMBERS.findall(text))
        base = 16 if re.search(r"(?i)\b0x", text) else 10
        number = max((int(one, base) for one in digits), default=None)
    is_least = number is not None and _LEAST.search(text)
    # No rows at all is said by who did not count, too.
    return ("least", number) if is_least else ("total", number or None)


def _links_of(header: str) -> dict[str, str]:
    """Return the addresses of a Link header (RFC 8288) by relation: several links, their parameters in any order."""
    # Those of `requests` end at a semicolon in the address, and at a parameter without a value or with = in it.
    found = dict[str, str]()
    for target, parameters in _LINK.findall(header[:100_000]):
        for rel in re.findall(r'(?i);\s*rel\s*=\s*"?([^";]*)', parameters)[:1]:
            for name in rel.lower().split():
                found.setdefault(name, target)
    return found


def value_shown(value: Any) -> str:
    """Return a field's value as a note shows it."""
    if isinstance(value, list) and value:
        return f"[{', '.join(map(value_shown, value))}]"
    return quoted(value, 60) if isinstance(value, str) else shown(value)
