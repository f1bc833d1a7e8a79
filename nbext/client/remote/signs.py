"""What an answer says of rows beyond its own: where the next page is, if there is one, and how many rows in all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from nbext.client.http.errors import words
from nbext.client.remote.content import Signs, Way
from nbext.client.remote.field_names import (
    ECHOES,
    NOT_ROWS,
    WRAPPERS,
    bare,
    by_bare,
    first_named,
    is_about,
    is_harmless,
    name_set,
    number_of,
    path_to,
    places,
    truth_of,
)
from nbext.client.remote.status import says_whole

if TYPE_CHECKING:
    from nbext.client.remote.profile import ForeignProfile

MOST_OBJECTS, MAX_DEPTH = 2_000, 6


# Names of values that say where the next page is. Their ends suffice: x-dune-next-uri, @odata.nextLink.
_NEXT = re.compile(
    r"(.*(next|more|after).*)?(uri|url|link|href)|(.*next)(page|pageuri|pageurl|pagelink|records?url|results?|path|hal)?"
)
_CURSOR = re.compile(
    r".*cursor|.*cursormark|.*continuation(token)?|(next.*|end|page|pagination|paging|scroll|search|skip|sync)(token|key)|"
    r"(next|page|search)?(marker|bookmark|locator|scrollid)|token|key|continue|resumption(token)?|after|iterator|"
    r"next(start|skip|offset|id|pageid|from|page)|lastevaluatedkey|weiter|n(ä|ae)chste(seite)?|siguiente|pr[oó]xim[oa]|"
    r"suivante?|successiv[oa]|volgende"
)
# The other way, or where this page begins.
_BACK = re.compile(r"(start|prev|before|first|back|self|current).*|.*backward.*")
# Too common to be a cursor by themselves: a key, a token or a url of the answer is something else.
_NO_CURSOR = name_set("token key after continue")
# Names that begin with "next" and are no page.
_NO_PAGE = re.compile(
    "next.*(at|time|date|run|update|refresh|block|reset|retry|poll|billing|payment|step|action|attempt|nonce|sync|epoch)"
)
_NOTHING = ("", "null", "none")
_PARAMS = name_set("nextpageparams nextparams nextquery continue nextpagequery nextpageargs")
_ROWS = "(rows?|results?|items?|records?|pages?|data|entries|hits)"
_MORE = re.compile(
    rf"(has|is)?(more|next|partial|incomplete|capped|timedout){_ROWS}?(available)?|incomplete{_ROWS}|.*truncated|"
    r"haym[aá]s|temmais|mehr|weitere|.*(limit|max(imum)?)(reached|exceeded|hit)|hitlimit|has.*errors?"
)
# That an answer is not cut says nothing of pages.
_ONLY_TRUE = re.compile(
    r"(is)?(incomplete|partial|capped|timedout).*|.*truncated|.*limit.*|max.*reached|has.*errors?"
)
# Rows that did not come, counted.
_REST = re.compile(
    rf"remaining({_ROWS}|count)?|{_ROWS}?(omitted|dropped|skipped|missing|suppressed|truncated){_ROWS}?(count)?"
)
_LAST = re.compile(
    r"(result|rows|data)s?complete|(is|at)?(the)?(last|end|final|eof|done|exhausted|complete|allreturned)(page|batch|chunk|reached)?|"
    rf"endof(stream|results|data|file|list|page)|no(more|next){_ROWS}?|(es)?[uú]ltim[oa](p[aá]gina)?|letzte(seite)?|"
    r"derni[eè]re?(page)?"
)
_TOTALS = name_set(
    "total totalcount totalrows totalresults totalitems totalrecords matched totalhits totalelements totalentries "
    "totalsize recordstotal numfound odatacount found totalrowcount totalnumber nbhits rowstotal counttotal totalnum "
    "totalresultcount totaldocs totalwallets totaltokens totalowners totalholders totaldatasetsize resulttotal totals "
    "resultsavailable rowsavailable totalavailable availableresults rowsbeforelimit rowsbeforelimitatleast "
    "hydratotalitems of anzahl gesamt gesamtzahl insgesamt totale cantidad quantidade totaal"
)
_OF_TOTAL = name_set("value relation count total all")
_COUNTS = name_set("count length numresults resultcount itemcount numrows rowcount")
_RETURNED = name_set("returned returnedcount resultsreturned rowsreturned numberreturned")
_PARTS = "(page|batche?|chunk|partition|part|p[aá]gina|seite|hoja)"
_PAGES = re.compile(
    rf"(total|num|number|last|max|nb|count|anzahl|nombre)(of|de)?{_PARTS}s?(count|total)?|{_PARTS}s|"
    rf"{_PARTS}s?(count|total)|seiten"
)
_PAGE = re.compile(rf"(current)?{_PARTS}(number|no|num|index|idx)?|number|current")
_OFFSETS = name_set("offset skip start startindex startat startrow rowoffset from")
_SIZES = name_set(
    "limit size pagesize perpage itemsperpage take rowsperpage currentpagesize hitsperpage maxresults"
)
# A list of what the rows are divided into, each with its number of rows.
_DIVISIONS = re.compile(r"partitioninfo|chunks|partitions|parts|files|shards")
# "1-10 of 25", "page 1 of 3".
_OF = re.compile(
    r"\D{0,40}([0-9][0-9,]*)\s*(?:-|–|to)\s*([0-9][0-9,]*)\s*(?:of|/)\s*([0-9][0-9,]*)\D{0,40}"
)
# part-1-of-3.csv
_PART_OF = re.compile(r"part[-_ ]?[0-9]{1,6}[-_ ]?of[-_ ]?([0-9]{1,6})", re.IGNORECASE)
_PAGE_OF = re.compile(r"(?:page\s*)?([0-9]{1,9})\s*(?:of|/)\s*([0-9]{1,9})", re.IGNORECASE)


def signs_of(
    document: Any, headers: Mapping[str, str], rows: Any, profile: ForeignProfile
) -> Signs:
    """Return what an answer says; ``rows`` is the list or object in it that holds the rows, which is not searched."""
    found = Signs()
    _of_headers(found, headers)
    for path, place, about in _places(document, rows):
        _of_place(found, path, place, about, rows)
    found.unknown = {
        path: value for path, value in found.unknown.items() if not profile.is_known(path, value)
    }
    if "total" in profile:
        total = number_of(profile.find("total", document, headers))
        found.counts, found.returned = {}, {}
        found.totals = {} if total is None else {"remote.paths.total": total}
    if "next" in profile:
        found.ways = _ways_of(profile.find("next", document, headers), profile)
        found.go_on, found.pages, found.hints = bool(found.ways), None, ["remote.paths.next"]
    elif profile.parameter:
        # The settings name the parameter: none is guessed.
        name = profile.parameter
        found.ways = [
            way if isinstance(way, str) else {name: next(iter(way.values()))} for way in found.ways
        ]
    return found


# What a remark says where rows are missing.
_CUT = re.compile(
    r"truncat|only the (first|top|last)|limited to|partial|incomplete|omitted|not all|capped|exceed|free (plan|tier)|"
    r"upgrade|more (rows|results|than)|sampled?\b|stale|out of date|deprecat",
    re.IGNORECASE,
)


def notes_in(document: Any, rows: Any) -> list[str]:
    """Return the warnings of an answer: its own, and its remarks that rows are missing."""
    found: list[str] = []
    for _, place, about in _places(document, rows):
        for name, value in place.items() if about else ():
            plain = bare(name).removesuffix("s")
            texts = value[:20] if isinstance(value, list) else [value]
            if plain in ("warning", "notice", "note"):
                found += filter(
                    None, (words(text) for text in texts if isinstance(text, str | dict))
                )
            elif plain in ("message", "msg", "info", "detail", "comment", "remark", "hint"):
                found += [text for text in texts if isinstance(text, str) and _CUT.search(text)]
    return found


def _ways_of(value: Any, profile: ForeignProfile) -> list[Way]:
    """Return the ways that the value at paths.next, or in the header that is set, means."""
    if value in (None, "", False):
        return []
    if not isinstance(value, str | int):
        return _ways("next", "next", value)
    text = str(value)
    if profile.style == "url" or (profile.style != "cursor" and _is_link(value)):
        return [text]
    return [{profile.parameter: text}] if profile.parameter else _asked_with("cursor", text)


def _places(document: Any, rows: Any) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Return the objects of an answer, outermost first, each with whether its plain names are about the answer."""
    bounds = {"deep": MAX_DEPTH, "most": MOST_OBJECTS}
    every = places(document, lambda *_: True, **bounds)
    # The path of the object that has the rows in it, as far as a bounded look finds it.
    holders = (path for path, place in every if any(value is rows for value in place.values()))
    holder = "" if rows is None else f"{next(holders, '')}."
    about = {"": True}

    def enter(path: str, name: str, value: Any) -> bool:
        plain, here = bare(name), path_to(path, name)
        holds = holder.startswith(f"{here}.")
        about[here] = about[path] and (is_about(plain) or plain in WRAPPERS or holds)
        return value is not rows and bool(value) and (plain not in ECHOES or holds)

    for path, place in places(None if document is rows else document, enter, **bounds):
        yield path, place, about[path]


def _of_place(
    found: Signs, path: str, place: Mapping[str, Any], about: bool, rows: Any = None
) -> None:
    for name, value in place.items():
        plain, here = bare(name), path_to(path, name)
        if isinstance(value, list):
            _of_list(found, here, plain, value, about=about)
            is_short = 0 < len(value) <= _SHORT and all(isinstance(one, _PLAIN) for one in value)
            about_rows = plain not in NOT_ROWS and not is_harmless(path, plain)
            if is_short and about_rows and value is not rows:
                found.unknown[here] = value
            continue
        if value is None or (isinstance(value, str) and value.lower() in _NOTHING):
            continue
        if _understood(found, path, name, place, about) or not isinstance(value, _PLAIN):
            continue
        says_something = (value or value is False) and value != "0"
        if says_something and not is_harmless(path, plain) and not says_whole(plain, value):
            found.unknown[here] = value


_PLAIN = (str, int, Decimal, float)
# A list of more values is data.
_SHORT = 5


def _understood(found: Signs, path: str, name: str, place: Mapping[str, Any], about: bool) -> bool:
    """Take what one field says; return whether any rule knows it."""
    value, plain, here = place[name], bare(name), path_to(path, name)
    pages = plain in ("of", "last") and number_of(value) is not None
    if about and pages and any(_PAGE.fullmatch(bare(other)) for other in place):
        # {"page": 1, "of": 3}: these are pages, and no rows.
        _of_count(found, here, "pages", number_of(value) or 0)
        return True
    # "after" is a cursor where "before" is another, or among what is said of pages: elsewhere it is a date.
    of_pages = "before" in place or bare(path.rpartition(".")[2]) in (
        "pagination",
        "paging",
        "cursors",
    )
    cursor = _CURSOR.fullmatch(plain) and (
        plain not in _NO_CURSOR or (plain == "after" and of_pages)
    )
    # "offset" is a number of rows, or whatever is to be sent back under that name.
    cursor = cursor or (plain == "offset" and isinstance(value, str) and number_of(value) is None)
    if plain in _PARAMS or _NEXT.fullmatch(plain) or (cursor and not _BACK.fullmatch(plain)):
        return _of_next(found, here, name, value, about)
    if about and plain.startswith("next") and value and not _NO_PAGE.fullmatch(plain):
        # Nobody knows this one, but it says that something follows.
        _say(found, here, True)
        return True
    if about:
        in_total = plain in _OF_TOTAL and bare(path.rpartition(".")[2]) in _TOTALS
        # A count beside a total is the page's: {"count": 10, "total": 25}.
        of_page = plain in _COUNTS and any(
            bare(other) in _TOTALS and number_of(item) is not None for other, item in place.items()
        )
        return of_page or in_total or _of_number(found, here, name, value)
    if plain == "failed" and bare(path).endswith("shards") and number_of(value):
        # Elasticsearch: what these parts of the index hold is missing.
        _say(found, here, True)
        return True
    return False


def _of_list(found: Signs, path: str, plain: str, items: list[Any], *, about: bool) -> None:
    if not about:
        return
    if plain in ("links", "link"):
        _of_links(found, path, items)
    elif _DIVISIONS.fullmatch(plain) and items:
        objects = [one for one in items[:100_000] if isinstance(one, Mapping)]
        named = [by_bare(one) for one in objects]
        counts = [number_of(one.get("rowcount", one.get("rows"))) for one in named]
        if len(counts) == len(items) and None not in counts:
            found.totals[path] = sum(filter(None, counts))


def _of_links(found: Signs, path: str, links: list[Any]) -> None:
    """Take the next page's address of a list of links: {"rel": "next", "href": ...}, {"relation": ..., "url": ...}."""
    for link in links[:50]:
        named = by_bare(link, 50) if isinstance(link, Mapping) else {}
        relation = named.get("rel", named.get("relation"))
        if relation == "next" or (isinstance(relation, list) and "next" in relation):
            ways = _in_an_object(named)
            found.ways += ways
            found.hints.append(path)
            if not ways:
                _say(found, path, True)


def _of_next(found: Signs, path: str, name: str, value: Any, about: bool) -> bool:
    plain = bare(name)
    truth = truth_of(value)
    if truth is not None:
        if "next" in plain or "more" in plain:
            _say(found, path, truth)
            return True
        return False
    # A plain "url" or "link" is the next page only where its name says so.
    if not re.search("next|more|after", plain) and _NEXT.fullmatch(plain):
        return False
    ways = _ways(plain, name, value, bare(path.rpartition(".")[0].rpartition(".")[2]))
    if ways and (about or "next" in plain):
        found.ways += ways
        found.hints.append(path)
        return True
    if (
        not ways
        and about
        and isinstance(value, Mapping)
        and any(item is not None for item in value.values())
    ):
        # DynamoDB's key of the last row: it says that there are more, and no query takes it.
        _say(found, path, True)
    # Some services end with -1.
    return isinstance(value, int) and value < 0


def _ways(plain: str, name: str, value: Any, holder: str = "") -> list[Way]:
    if isinstance(value, Mapping):
        return _in_an_object(value)
    number = number_of(value)
    is_link = "link" in plain or plain.endswith(("url", "uri", "href"))
    if isinstance(value, str) and ((_is_link(value) and number is None) or is_link):
        return [value]
    if (
        number is not None
        and ("page" in plain or plain.endswith("next"))
        and not re.search("token|key", plain)
    ):
        return [{"page": str(number)}] if number > 0 else []
    is_cursor = isinstance(value, str) or (number is not None and number >= 0)
    return _asked_with(name, str(value), holder) if is_cursor else []


def _in_an_object(value: Mapping[str, Any]) -> list[Way]:
    texts = {key: item for key, item in value.items() if isinstance(item, str)}
    if link := first_named(texts, ("href", "url", "uri", "link")):
        return [link]
    inner = next((key for key in ("cursor", "after", "token") if key in texts), None)
    if inner and len(value) <= 2:
        return _asked_with(inner, value[inner])
    query = {
        key: json.dumps(item) if isinstance(item, bool) else str(item)
        for key, item in list(value.items())[:50]
        if isinstance(item, str | int)
    }
    # Blockscout, MediaWiki: an object of what to ask with, and of nothing but texts and numbers.
    return (
        [query] if query and len(query) == sum(item is not None for item in value.values()) else []
    )


def _is_link(value: Any) -> bool:
    return (
        isinstance(value, str)
        and re.match(r"https?://|/|\?|\.\.?/|[\w./-]+\?[\w.-]+=", value) is not None
    )


def _asked_with(name: str, value: str, holder: str = "") -> list[Way]:
    """Return the names under which a cursor may be sent back, the likeliest first; a wrong one repeats its page."""
    plain = bare(name)
    known = {
        "endcursor": "after",
        "next": "cursor",
        "nexttoken": name,
        "nextpage": "page",
        "continue": "continue",
        "lastevaluatedkey": "ExclusiveStartKey",
        "nextpagekey": "pageKey",
    }
    # X-Next-Cursor, x-ms-continuation: the header's own beginning is no part of the name.
    own = re.sub(r"^(x[-_]|_)(ms-)?", "", name, flags=re.IGNORECASE)
    asked = known.get(plain) or re.sub(r"^next[-_]?", "", own, flags=re.IGNORECASE) or own
    asked = asked[0].lower() + asked[1:] if asked[1:2].islower() else asked
    # gRPC's gateway reads the fields of an object by dotted names: pagination.key.
    dotted = [f"{holder}.{asked}"] if holder == "pagination" and plain.endswith("key") else []
    others = {"nextcursor": ["start_cursor"], "nexttoken": ["pagination_token"]}.get(plain, [])
    return [
        {candidate: value} for candidate in dict.fromkeys((asked, own, *dotted, *others, "cursor"))
    ]


def _say(found: Signs, path: str, more: bool) -> None:
    found.go_on = more if found.go_on is None else found.go_on or more
    if more:
        found.hints.append(path)


def _of_number(found: Signs, path: str, name: str, value: Any) -> bool:
    plain, truth = bare(name), truth_of(value)
    if truth is not None:
        more, last = _MORE.fullmatch(plain), _LAST.fullmatch(plain)
        if more and (truth or not _ONLY_TRUE.fullmatch(plain)):
            _say(found, path, truth)
        elif last and not more:
            _say(found, path, not truth)
        return bool(more or last)
    if isinstance(value, str):
        if ranged := _OF.fullmatch(value):
            found.totals[path] = int(ranged[3].replace(",", ""))
            return True
        if _PAGE.fullmatch(plain) and (numbered := _PAGE_OF.fullmatch(value.strip())):
            found.page, found.pages = (name, int(numbered[1])), int(numbered[2])
            return True
    share = (
        plain in ("coverage", "completeness")
        and isinstance(value, int | Decimal)
        and 0 <= value <= 1
    )
    # HTTP's own number for a part.
    if share or (
        plain in ("status", "statuscode", "code", "httpstatus") and number_of(value) == 206
    ):
        if value != 1:
            _say(found, path, True)
        return True
    value, is_least = _total(value) if plain in _TOTALS else (value, False)
    number = number_of(value)
    if is_least:
        found.least = number
        found.hints.append(path)
    elif _REST.fullmatch(plain) and number is not None:
        if number:
            _say(found, path, True)
    else:
        return number is not None and number >= 0 and _of_count(found, path, name, number)
    return True


def _of_count(found: Signs, path: str, name: str, number: int) -> bool:
    plain = bare(name)
    # The first that says it: the outermost. No rows at all is said by who did not count, too.
    if plain in _TOTALS:
        found.totals |= {path: number} if number else {}
    elif plain in _RETURNED:
        found.returned[path] = number
    elif _PAGES.fullmatch(plain):
        found.pages = number if found.pages is None else found.pages
        found.hints.append(path)
    elif _PAGE.fullmatch(plain):
        found.page = found.page or (name, number)
    elif plain in _OFFSETS:
        found.offset = found.offset or (name, number)
    elif plain in _SIZES:
        found.size = number if found.size is None else found.size
    elif plain in _COUNTS:
        found.counts[path] = number
    else:
        return False
    return True


def _total(value: Any) -> tuple[Any, bool]:
    """Return a total, and whether it is a lower bound: {"value": 10, "relation": "gte"}, "25 wallets", "10+"."""
    is_least = False
    if isinstance(value, Mapping):
        is_least = str(value.get("relation", "")).lower() in ("gte", "gt", ">=")
        value = first_named(value, ("value", "count", "total", "all"))
    if isinstance(value, str) and re.fullmatch("0x[0-9a-fA-F]{1,15}", value):
        return int(value, 16), False
    if isinstance(value, str) and number_of(value) is None:
        is_least = (
            is_least or re.search(r"[0-9]\s*\+|>|\b(over|more|least)\b", value[:100]) is not None
        )
        value = max(
            (int(text.replace(",", "")) for text in re.findall(r"[0-9][0-9,]*", value[:100])),
            default=None,
        )
    return value, is_least and number_of(value) is not None


def _of_headers(found: Signs, headers: Mapping[str, str]) -> None:
    links = _links_of(headers.get("Link", ""))
    if "next" in links:
        found.ways.append(links["next"])
        found.hints.append("Link")
    elif not {"prev", "previous"} & set(links) and links.get("last", "") != links.get(
        "self", links.get("first", "")
    ):
        # The first page is not the last one, and no link leads on.
        _say(found, "Link", True)
    if (parts := _PART_OF.search(headers.get("Content-Disposition", "")[:1000])) and int(
        parts[1]
    ) > 1:
        _say(found, "Content-Disposition", True)
    for name, value in list(headers.items())[:200]:
        plain = re.sub(r"^x[-_](wp[-_]|ms[-_])?", "", name.lower())
        if plain == "content-range":
            if ranged := _RANGE.fullmatch(value):
                found.offset = ("offset", int(ranged[1]))
                found.totals |= {} if ranged[2] == "*" else {"Content-Range": int(ranged[2])}
        elif value.startswith("{") and "pagination" in plain:
            _of_json(found, name, value)
        elif not re.search("rate|quota|cookie|auth|csrf|session|cache", plain):
            # A vendor's name may come first: Sforce-Locator, X-Aptos-Cursor, X-Pagination-Total-Count.
            own = name.lower() != plain
            ends = [plain, *(plain.split("-", n)[n] for n in (1, 2) if plain.count("-") >= n)]
            known = next((end for end in ends if _is_sign(bare(end))), plain if own else None)
            _of_place(found, "", {known: value} if known else {}, True)
            # Headers speak of much else: only one that says yes or no may be of the rows.
            if known and truth_of(value) is None:
                found.unknown.pop(path_to("", known), None)


def _is_sign(plain: str) -> bool:
    """Say whether a header of that name speaks of rows or pages, whatever is in front of the name."""
    cursor = _CURSOR.fullmatch(plain) and plain not in _NO_CURSOR and not _BACK.fullmatch(plain)
    known = plain in _TOTALS - {"of", "found", "total"} or any(
        one.fullmatch(plain) for one in (_MORE, _PAGES)
    )
    return bool(
        cursor
        or known
        or plain in ("nexturi", "nexturl", "nextpage", "nextlink", "next", "moreresults")
    )


_RANGE = re.compile(r"\s*(?:[\w-]+\s+)?([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)\s*")
_LINK = re.compile(r"<([^<>]{1,8000})>((?:\s*;\s*[\w*-]+\s*(?:=\s*(?:\"[^\"]*\"|[^\s;,\"]+))?)*)")


def _links_of(header: str) -> dict[str, str]:
    """Return the addresses of a Link header (RFC 8288) by relation: several links, their parameters in any order."""
    found: dict[str, str] = {}
    for target, parameters in _LINK.findall(header[:100_000]):
        rel = re.search(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", parameters, re.IGNORECASE)
        for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
            found.setdefault(name, str(target))
    return found


def _of_json(found: Signs, name: str, value: str) -> None:
    try:
        inner = json.loads(value[:10_000])
    except ValueError:
        return
    if isinstance(inner, dict):
        _of_place(found, name, inner, True)
