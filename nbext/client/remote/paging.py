"""Whether all rows came: where the next page is (a URL, a cursor, an offset, a number), and how many rows there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nbext.client.remote.field_names import ABOUT, COUNTS, RETURNED, TOTALS, bare, places
from nbext.core.constants import is_whole

# An address, or what to change in the query of this page's.
Next = str | Mapping[str, str]


def next_of(document: Any, headers: Mapping[str, str], rows: int) -> Next | None:
    """Return where the next page is, or None on the last one."""
    linked = re.search(r'<([^>]+)>\s*;[^,]*\brel="?next"?', headers.get("Link", ""))
    if linked:
        return linked[1]
    for place in _about(document):
        found = _stated_next(place)
        if found:
            return found
    for place in _about(document):
        found = _counted(place, rows)
        if found:
            return found
    return None


def _about(document: Any) -> Iterator[Mapping[str, Any]]:
    for _, place in places(document):
        yield place
        beside = [item for name, item in place.items() if bare(name) in ABOUT and isinstance(item, Mapping)]
        yield from beside
        for about in beside:
            yield from (item for name, item in about.items() if bare(name) in ABOUT and isinstance(item, Mapping))


# The name in the answer, and the one to ask with. A service's own spelling (next_page_token) is kept where it can be.
_CURSORS = ("nextcursor", "cursor", "nexttoken", "nextpagetoken", "continuationtoken", "endcursor")


def _stated_next(place: Mapping[str, Any]) -> Next | None:
    for name, value in place.items():
        plain = bare(name)
        if plain in ("next", "nexturl", "nextpage", "nextlink", "nextpageurl", "nextpagelink"):
            found = _link(value, plain)
            if found:
                return found
        if plain in _CURSORS and isinstance(value, str) and value and _goes_on(place):
            return {_asked_with(name): value}
    return None


def _goes_on(place: Mapping[str, Any]) -> bool:
    named = {bare(name): value for name, value in place.items()}
    return not any(named.get(name) is False for name in ("hasmore", "hasnext", "hasnextpage"))


def _link(value: Any, plain: str) -> Next | None:
    if isinstance(value, Mapping):
        value = value.get("href") or value.get("url")
    if is_whole(value):
        return {"page": str(value)}
    if not isinstance(value, str) or not value:
        return None
    if plain != "next" or re.match(r"https?://|/|\?", value):
        return value
    return {"cursor": value}


def _asked_with(name: str) -> str:
    if bare(name) == "nexttoken":
        return name
    asked = re.sub(r"^(next|end)_?", "", name)
    return asked[0].lower() + asked[1:]


def _counted(place: Mapping[str, Any], rows: int) -> Next | None:
    """Return the page after this one, counted from what the answer says of offsets or pages."""
    named = {bare(name): value for name, value in place.items() if type(value) is int}
    total = named.get("total", named.get("totalcount"))
    size = named.get("limit", named.get("size", named.get("pagesize")))
    if rows and total is not None and "offset" in named and named["offset"] + rows < total:
        return {"offset": str(named["offset"] + rows)}
    page = named.get("page", named.get("currentpage", named.get("pagenumber")))
    if page is None or not rows:
        return None
    pages = named.get("totalpages", named.get("pages", named.get("pagecount")))
    # Pages are counted from 0 or from 1: the last one is then pages - 1 or pages.
    more = page < pages if pages is not None else total is not None and size is not None and max(page, 1) * size < total
    return {"page": str(page + 1)} if more else None


_COUNTED = {**dict.fromkeys(COUNTS, "count"), **dict.fromkeys(TOTALS, "total"), **dict.fromkeys(RETURNED, "returned")}


def stated(document: Any, headers: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of rows that the answer states, as ``returned``, ``total`` and ``count``."""
    found: dict[str, int] = {}
    header = headers.get("X-Total-Count", "").strip()
    if header.isascii() and header.isdigit():
        found["total"] = int(header[:18])
    for _, place in places(document):
        for about in (place, *(v for k, v in place.items() if bare(k) in ABOUT and isinstance(v, Mapping))):
            for name, value in about.items():
                kind = _COUNTED.get(bare(name))
                if kind and type(value) is int:
                    found.setdefault(kind, value)
    return found
