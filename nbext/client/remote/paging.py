"""Where the next page of an answer is: a URL, a cursor, an offset or a page's number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nbext.client.remote.field_names import ABOUT, bare, places


@dataclass(frozen=True)
class Next:
    """The next page: an address, or what to add to the query of this one."""

    url: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)

    def of(self, url: str) -> str:
        """Return the next page's address, given this one's."""
        if self.url is not None:
            return self.url
        parts = urlsplit(url)
        query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **self.query}
        return urlunsplit(parts._replace(query=urlencode(query)))


def next_of(document: Any, headers: Mapping[str, str], rows: int) -> Next | None:
    """Return where the next page is, or None on the last one."""
    linked = re.search(r'<([^>]+)>\s*;[^,]*\brel="?next"?', headers.get("Link", ""))
    if linked:
        return Next(url=linked[1])
    for place in _about(document):
        found = _told(place)
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


def _told(place: Mapping[str, Any]) -> Next | None:
    for name, value in place.items():
        plain = bare(name)
        if plain in ("next", "nexturl", "nextpage", "nextlink", "nextpageurl", "nextpagelink"):
            found = _link(value, plain)
            if found:
                return found
        if plain in _CURSORS and isinstance(value, str) and value and _goes_on(place):
            return Next(query={_asked_with(name): value})
    return None


def _goes_on(place: Mapping[str, Any]) -> bool:
    told = {bare(name): value for name, value in place.items()}
    return not any(told.get(name) is False for name in ("hasmore", "hasnext", "hasnextpage"))


def _link(value: Any, plain: str) -> Next | None:
    if isinstance(value, Mapping):
        value = value.get("href") or value.get("url")
    if isinstance(value, int) and not isinstance(value, bool):
        return Next(query={"page": str(value)})
    if not isinstance(value, str) or not value:
        return None
    if plain != "next" or re.match(r"https?://|/|\?", value):
        return Next(url=value)
    return Next(query={"cursor": value})


def _asked_with(name: str) -> str:
    if bare(name) == "nexttoken":
        return name
    asked = re.sub(r"^(next|end)_?", "", name)
    return asked[0].lower() + asked[1:]


def _counted(place: Mapping[str, Any], rows: int) -> Next | None:
    """Return the page after this one, counted from what the answer says of offsets or pages."""
    told = {bare(name): value for name, value in place.items() if type(value) is int}
    total, size = told.get("total", told.get("totalcount")), told.get("limit", told.get("size", told.get("pagesize")))
    if rows and total is not None and "offset" in told and told["offset"] + rows < total:
        return Next(query={"offset": str(told["offset"] + rows)})
    page = told.get("page", told.get("currentpage", told.get("pagenumber")))
    if page is None or not rows:
        return None
    pages = told.get("totalpages", told.get("pages", told.get("pagecount")))
    # Pages are counted from 0 or from 1: the last one is then pages - 1 or pages.
    more = page < pages if pages is not None else total is not None and size is not None and max(page, 1) * size < total
    return Next(query={"page": str(page + 1)}) if more else None
