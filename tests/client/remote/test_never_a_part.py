"""Never a part for the whole: ways of paging, descriptions, status words and error bodies, each on a real server.

Run alone, it prints how many of each are complete, how many fail with what would help, and that none is silent:

    python -m tests.client.remote.test_never_a_part
"""

# A row of a table stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from nbext import Client
from nbext.errors import AmbiguousAnswer, ApiError, NbextError, NotFound, ProtocolError
from tests import slow
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, Request, reply

ROWS = [{"address": f"0x{i:040x}", "n": i} for i in range(25)]
SIZE = 10
Style = Callable[[dict[str, str], Any], Any]


@contextmanager
def case(*names: Any) -> Iterator[None]:
    """Name the row of a table in whatever fails in it."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case: {', '.join(map(str, names))}")
        raise


def part(start: int) -> list[dict[str, Any]]:
    return ROWS[start : start + SIZE]


def after(start: int) -> int | None:
    return start + SIZE if start + SIZE < len(ROWS) else None


# ------------------------------------------------------------------ ways of paging


def cursor(
    parameter: str, body: Callable[[list[Any], str | None], Any], *, end: str | None = None
) -> Style:
    """Page by a cursor: what comes without the right parameter is the first page."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        given = query.get(parameter, "")
        start = int(given[3:]) if given.startswith("cur") else 0
        following = after(start)
        return reply(body(part(start), end if following is None else f"cur{following}"))

    return answer


def link(
    body: Callable[[list[Any], str | None], Any],
    form: str = "/v1/segment/abc/json?at={}",
    **names: str,
) -> Style:
    """Page by a link, in the body or in a header."""

    def answer(query: dict[str, str], request: Request) -> bytes:
        start = int(query.get("at", 0))
        following = after(start)
        url = (
            None
            if following is None
            else form.format(following, root=f"http://{request.headers['host']}")
        )
        headers = {name: value.format(url) for name, value in names.items() if url}
        return reply(body(part(start), url), **headers)

    return answer


def numbered(parameter: str, body: Callable[..., Any], *, first: int = 1, **names: str) -> Style:
    """Page by a number."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        page = int(query.get(parameter, first))
        start = (page - first) * SIZE
        facts = {
            "rows": part(start),
            "page": page,
            "pages": 3,
            "total": 25,
            "more": after(start) is not None,
        }
        return reply(body(facts), **{name: str(facts[of]) for name, of in names.items()})

    return answer


def counted(parameter: str | None, body: Callable[..., Any], **headers: str) -> Style:
    """Page by an offset; without a parameter there is no way to the second page."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        start = int(query.get(parameter or "", 0))
        rows = part(start)
        facts = {
            "rows": rows,
            "offset": start,
            "end": start + len(rows) - 1,
            "more": after(start) is not None,
        }
        return reply(body(facts), **{name: text.format(**facts) for name, text in headers.items()})

    return answer


def csv_of(rows: list[Any]) -> bytes:
    return "".join(["address,n\n", *(f"{row['address']},{row['n']}\n" for row in rows)]).encode()


def csv_link(header: str, text: str) -> Style:
    def answer(query: dict[str, str], _request: Request) -> bytes:
        start = int(query.get("at", 0))
        following = after(start)
        headers = (
            {}
            if following is None
            else {header: text.format(f"/v1/segment/abc/csv?at={following}")}
        )
        return reply(csv_of(part(start)), content_type="text/csv", **headers)

    return answer


def with_empty_page(query: dict[str, str], _request: Request) -> bytes:
    """The second page has no rows, and a next."""
    pages = {"": (ROWS[:10], "b"), "b": ([], "c"), "c": (ROWS[10:], None)}
    rows, following = pages[query.get("cursor", "")]
    return reply({"rows": rows, "next_cursor": following})


def simply(body: Any, **headers: str) -> Style:
    """The first ten rows, whatever is asked for."""
    return lambda _query, _request: reply(body, **headers)


FIRST = part(0)
# Each is read completely.
COMPLETE: dict[str, Style] = {
    "next: path": link(lambda rows, url: {"rows": rows, "next": url}),
    "next: absolute": link(
        lambda rows, url: {"rows": rows, "next": url}, "{root}/v1/segment/abc/json?at={}"
    ),
    "next: query alone": link(lambda rows, url: {"rows": rows, "next": url}, "?at={}"),
    "next: relative": link(lambda rows, url: {"rows": rows, "next": url}, "json?at={}"),
    "nextUri": link(lambda rows, url: {"data": rows, "nextUri": url}),
    "next_uri": link(lambda rows, url: {"data": rows, "next_uri": url}),
    "next_url": link(lambda rows, url: {"data": rows, "next_url": url}),
    "nextPageLink": link(lambda rows, url: {"data": rows, "nextPageLink": url}),
    "nextRecordsUrl, done": link(
        lambda rows, url: {"records": rows, "done": url is None, "nextRecordsUrl": url}
    ),
    "@odata.nextLink": link(
        lambda rows, url: {"value": rows, **({"@odata.nextLink": url} if url else {})}
    ),
    "links.next": link(lambda rows, url: {"data": rows, "links": {"self": "/x", "next": url}}),
    "links.next.href": link(
        lambda rows, url: (
            {"data": rows, "links": {"next": {"href": url}}} if url else {"data": rows}
        )
    ),
    "paging.next": link(lambda rows, url: {"data": rows, "paging": {"next": url}}),
    "meta.next": link(lambda rows, url: {"data": rows, "meta": {"next": url}}),
    "meta.pagination.next_link": link(
        lambda rows, url: {"data": rows, "meta": {"pagination": {"next_link": url}}}
    ),
    "HAL _links": link(
        lambda rows, url: {
            "_embedded": {"wallets": rows},
            "_links": {"self": {"href": "/x"}, **({"next": {"href": url}} if url else {})},
        }
    ),
    "info.next": link(
        lambda rows, url: {"info": {"count": 25, "pages": 3, "next": url}, "results": rows}
    ),
    "count, next, previous": link(
        lambda rows, url: {"count": 25, "next": url, "previous": None, "results": rows}
    ),
    "Link header": link(lambda rows, _url: rows, Link='<{}>; rel="next"'),
    "Link header among others": link(
        lambda rows, _url: {"data": rows}, Link='</a,b>; title="x, y"; rel="prev", <{}>; rel=next'
    ),
    "Link header, two relations": link(lambda rows, _url: rows, Link='<{}>; rel="last next"'),
    "Link header, a relation behind other parameters": link(
        lambda rows, _url: rows, Link='<{}>; crossorigin; title="a=b; c"; rel="next"'
    ),
    "Link header, a semicolon in the address": link(
        lambda rows, _url: rows, "?v=1;2&at={}", Link='<{}>; rel="next"'
    ),
    "Link header, other case": link(lambda rows, _url: rows, link='<{}>;REL="Next"'),
    "x-dune-next-uri": link(
        lambda rows, _url: {"result": {"rows": rows}}, **{"x-dune-next-uri": "{}"}
    ),
    "X-Next-Page as address": link(lambda rows, _url: rows, X_Next_Page="{}"),
    "CSV, Link": csv_link("Link", '<{}>; rel="next"'),
    "CSV, x-dune-next-uri": csv_link("x-dune-next-uri", "{}"),
    "next: cursor": cursor("cursor", lambda rows, at: {"rows": rows, "next": at}),
    "next: cursor under next": cursor("next", lambda rows, at: {"nfts": rows, "next": at}),
    "next_cursor": cursor("cursor", lambda rows, at: {"rows": rows, "next_cursor": at}),
    "next_cursor under its own name": cursor(
        "next_cursor", lambda rows, at: {"rows": rows, "next_cursor": at}
    ),
    "nextCursor": cursor("cursor", lambda rows, at: {"rows": rows, "nextCursor": at}),
    "cursor": cursor("cursor", lambda rows, at: {"result": rows, "cursor": at}),
    "cursor, empty at the end": cursor(
        "cursor", lambda rows, at: {"result": rows, "cursor": at}, end=""
    ),
    "meta.next_cursor": cursor(
        "cursor",
        lambda rows, at: {"rows": rows, "meta": {"next_cursor": at, "has_more": at is not None}},
    ),
    "response_metadata.next_cursor": cursor(
        "cursor",
        lambda rows, at: {"members": rows, "response_metadata": {"next_cursor": at}},
        end="",
    ),
    "pagination.next_key": cursor(
        "key", lambda rows, at: {"rows": rows, "pagination": {"next_key": at}}
    ),
    "pageKey": cursor("pageKey", lambda rows, at: {"owners": rows, "pageKey": at}),
    "continuation": cursor("continuation", lambda rows, at: {"tokens": rows, "continuation": at}),
    "continuationToken": cursor(
        "continuationToken", lambda rows, at: {"items": rows, "continuationToken": at}
    ),
    "nextToken": cursor("nextToken", lambda rows, at: {"items": rows, "nextToken": at}),
    "nextPageToken": cursor("pageToken", lambda rows, at: {"items": rows, "nextPageToken": at}),
    "next_page_token": cursor(
        "page_token", lambda rows, at: {"items": rows, "next_page_token": at}
    ),
    "marker": cursor("marker", lambda rows, at: {"items": rows, "marker": at}),
    "NextMarker, IsTruncated": cursor(
        "marker", lambda rows, at: {"Items": rows, "IsTruncated": at is not None, "NextMarker": at}
    ),
    "scroll_id": cursor("scroll_id", lambda rows, at: {"rows": rows, "_scroll_id": at}),
    "bookmark": cursor("bookmark", lambda rows, at: {"rows": rows, "bookmark": at}),
    "after beside before": cursor(
        "after", lambda rows, at: {"data": {"children": rows, "after": at, "before": None}}
    ),
    "paging.cursors.after": cursor(
        "after",
        lambda rows, at: {"data": rows, "paging": {"cursors": {"before": "x", "after": at}}},
    ),
    "paging.next.after": cursor(
        "after",
        lambda rows, at: {"results": rows, **({"paging": {"next": {"after": at}}} if at else {})},
    ),
    "pageInfo": cursor(
        "after",
        lambda rows, at: {
            "data": {
                "wallets": {
                    "nodes": rows,
                    "pageInfo": {"hasNextPage": at is not None, "endCursor": at or "curEND"},
                }
            }
        },
    ),
    "edges and node": cursor(
        "after",
        lambda rows, at: {
            "data": {
                "holders": {
                    "edges": [{"cursor": "x", "node": row} for row in rows],
                    "pageInfo": {"hasNextPage": at is not None, "endCursor": at},
                }
            }
        },
    ),
    "X-Next-Cursor": lambda query, request: _cursor_header("cursor", "X-Next-Cursor", query),
    "X-Continuation-Token": lambda query, request: _cursor_header(
        "continuation-token", "X-Continuation-Token", query
    ),
    "next_page_params": lambda query, request: _params("next_page_params", query),
    "next as an object": lambda query, request: _params("next", query),
    "nextPage: number": numbered(
        "page", lambda f: {"rows": f["rows"], "nextPage": f["page"] + 1 if f["more"] else None}
    ),
    "nextPage: number, from 0": numbered(
        "page",
        lambda f: {"rows": f["rows"], "nextPage": f["page"] + 1 if f["more"] else None},
        first=0,
    ),
    "next_page: number in text": numbered(
        "page", lambda f: {"rows": f["rows"], "next_page": str(f["page"] + 1) if f["more"] else ""}
    ),
    "page, total_pages": numbered(
        "page", lambda f: {"rows": f["rows"], "page": f["page"], "total_pages": 3}
    ),
    "page from 0, totalPages": numbered(
        "page",
        lambda f: {
            "content": f["rows"],
            "number": f["page"],
            "totalPages": 3,
            "last": not f["more"],
        },
        first=0,
    ),
    "currentPage, lastPage": numbered(
        "page", lambda f: {"data": f["rows"], "meta": {"current_page": f["page"], "last_page": 3}}
    ),
    "pageNumber, isLastPage": numbered(
        "pageNumber",
        lambda f: {"data": f["rows"], "pageNumber": f["page"], "isLastPage": not f["more"]},
    ),
    "page_number under page-number": numbered(
        "page-number",
        lambda f: {
            "data": {
                "items": f["rows"],
                "pagination": {
                    "page_number": f["page"],
                    "page_size": 10,
                    "has_more": f["more"],
                    "total_count": None,
                },
            }
        },
        first=0,
    ),
    "page, has_more": numbered(
        "page", lambda f: {"rows": f["rows"], "page": f["page"], "has_more": f["more"]}
    ),
    "page, size, total": numbered(
        "page", lambda f: {"rows": f["rows"], "page": f["page"], "size": 10, "total": 25}
    ),
    "page, total in text": numbered(
        "page",
        lambda f: {
            "rows": f["rows"],
            "page": "1" if f["page"] == 1 else str(f["page"]),
            "total": "25",
        },
    ),
    "page and full pages": numbered(
        "page", lambda f: {"rows": f["rows"], "page": f["page"], "per_page": 10}
    ),
    "page counted from 0 in the answer alone": numbered(
        "page", lambda f: {"rows": f["rows"], "page": f["page"] - 1, "total": 25}
    ),
    "X-Next-Page": numbered("page", lambda f: f["rows"], X_Page="page", X_Total_Pages="pages"),
    "X-Pagination": lambda query, request: _page_header(query),
    "offset, limit, total": counted(
        "offset", lambda f: {"rows": f["rows"], "offset": f["offset"], "limit": 10, "total": 25}
    ),
    "skip, total": counted("skip", lambda f: {"rows": f["rows"], "skip": f["offset"], "total": 25}),
    "offset, has_more": counted(
        "offset", lambda f: {"rows": f["rows"], "offset": f["offset"], "hasMore": f["more"]}
    ),
    "next_offset": counted(
        "offset",
        lambda f: {"rows": f["rows"], "next_offset": f["offset"] + 10 if f["more"] else None},
    ),
    "Content-Range": counted("offset", lambda f: f["rows"], Content_Range="rows {offset}-{end}/25"),
    "an empty page with a next": with_empty_page,
    "links as a list": link(
        lambda rows, url: {
            "data": rows,
            "links": [
                {"rel": "self", "href": "/x"},
                *([{"rel": "next", "href": url}] if url else []),
            ],
        }
    ),
    "links as a list, several relations": link(
        lambda rows, url: {
            "data": rows,
            "links": [{"rel": ["next", "up"], "href": url}] if url else [],
        }
    ),
    "FHIR": link(
        lambda rows, url: {"entry": rows, "link": [{"relation": "next", "url": url}] if url else []}
    ),
    "meta.pagination.after": cursor(
        "after", lambda rows, at: {"rows": rows, "meta": {"pagination": {"after": at}}}
    ),
    "a next, and pages without a page": link(
        lambda rows, url: {"rows": rows, "next": url, "totalPages": 3}
    ),
    "a next, and a lower bound": link(
        lambda rows, url: {"rows": rows, "next": url, "total": {"value": 10, "relation": "gte"}}
    ),
}
# Nobody can ask for the other rows without a word from the user: each is an error that says which.
HONEST: dict[str, Style] = {
    "has_more alone": simply({"rows": FIRST, "has_more": True}),
    "hasNextPage alone": simply({"data": FIRST, "pageInfo": {"hasNextPage": True}}),
    "is_last_page": simply({"rows": FIRST, "is_last_page": False}),
    "last": simply({"content": FIRST, "last": False}),
    "truncated": simply({"rows": FIRST, "truncated": True}),
    "incomplete_results": simply({"items": FIRST, "incomplete_results": True}),
    "done": simply({"rows": FIRST, "done": False}),
    "total": simply({"rows": FIRST, "total": 25}),
    "total in text": simply({"rows": FIRST, "total": "25"}),
    "count above the rows": simply({"rows": FIRST, "count": 25}),
    "meta.total": simply({"rows": FIRST, "meta": {"total": 25}}),
    "hits.total.value": simply(
        {
            "hits": {
                "total": {"value": 25, "relation": "eq"},
                "hits": [{"_source": row} for row in FIRST],
            }
        }
    ),
    "X-Total-Count": simply(FIRST, X_Total_Count="25"),
    "X-WP-Total": simply(FIRST, X_WP_Total="25"),
    "total_row_count": simply({"result": {"rows": FIRST, "metadata": {"total_row_count": 25}}}),
    "totalPages without a page": simply({"rows": FIRST, "totalPages": 3}),
    "remaining": simply({"rows": FIRST, "remaining": 15}),
    "limit_reached": simply({"rows": FIRST, "limit_reached": True}),
    "timed_out": simply({"hits": {"hits": FIRST}, "timed_out": True}),
    "_shards.failed": simply({"hits": {"hits": FIRST}, "_shards": {"total": 5, "failed": 2}}),
    "results_available": simply({"rows": FIRST, "results_available": 25, "results_returned": 10}),
    "a total that is a lower bound": simply(
        {"rows": FIRST, "total": {"value": 10, "relation": "gte"}}
    ),
    "a lower bound above the rows": simply({"rows": FIRST, "total": "more than 20"}),
    "10+": simply({"rows": FIRST, "total": "10+"}),
    "25 wallets": simply({"rows": FIRST, "total": "25 wallets"}),
    "1-10 of 25": simply({"rows": FIRST, "meta": {"total": "1-10 of 25"}}),
    "a next link without an address": simply({"rows": FIRST, "links": [{"rel": "next"}]}),
    "a next that is no page of ours": simply(
        {"rows": FIRST, "nextBatch": {"handle": [1]}, "next_batch_id": 7}
    ),
    "the same page for ever": simply({"rows": FIRST, "next_cursor": "cur10"}),
    "a link to itself": simply({"rows": FIRST, "next": "/v1/segment/abc/json"}),
    "a link into a private network": simply({"rows": FIRST, "next": "http://10.0.0.1/more"}),
    "Content-Range of a service that reads no offset": simply(FIRST, Content_Range="0-9/25"),
    "a last link elsewhere, and no next": simply(
        FIRST, Link='</w?page=1>; rel="first", </w?page=3>; rel="last"'
    ),
    "a file that is a part": simply(
        FIRST, Content_Disposition='attachment; filename="wallets-part1of3.json"'
    ),
    "page and total of a service that reads no page": simply(
        {"rows": FIRST, "page": 1, "total": 25}
    ),
}


def _cursor_header(parameter: str, header: str, query: dict[str, str]) -> bytes:
    start = int(query.get(parameter, "cur0")[3:])
    following = after(start)
    return reply(part(start), **({header: f"cur{following}"} if following else {}))


def _params(name: str, query: dict[str, str]) -> bytes:
    start = int(query.get("index", 0))
    if start and query.get("block") != "7":
        return reply({"message": "half of the parameters"}, 400)
    following = after(start)
    return reply(
        {
            "items": part(start),
            name: None if following is None else {"block": 7, "index": following, "hash": None},
        }
    )


def _page_header(query: dict[str, str]) -> bytes:
    page = int(query.get("page", 1))
    return reply(
        part((page - 1) * SIZE),
        X_Pagination=json.dumps({"currentPage": page, "totalPages": 3, "totalCount": 25}),
    )


def serve(style: Style) -> Callable[[Request], Any]:
    def answer(request: Request) -> Any:
        parts = urlsplit(request.path)
        if parts.path == "/v1/segment/abc" or (request.method, parts.path) == ("GET", "/about"):
            return reply({"detail": "none"}, 404)
        return style(dict(parse_qsl(parts.query)), request)

    return answer


def exported(client: Client, name: str) -> Any:
    return (client.export_csv if name.startswith("CSV") else client.export_json)("abc")


def test_every_way_of_paging_that_can_be_followed_is(server, client):
    for name, style in COMPLETE.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(style)
            table = exported(client, name)
            assert table["address"].tolist() == [row["address"] for row in ROWS]
            assert [int(n) for n in table["n"]] == [row["n"] for row in ROWS]
            # No page is asked for more than thrice: a name that is not read costs a request, once.
            assert len(server.asked("/v1/segment/abc/")) <= 7


def test_rows_that_nobody_can_ask_for_are_an_error_with_the_line_that_would_help(server, client):
    for name, style in HONEST.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(style)
            with pytest.raises(ProtocolError) as caught:
                exported(client, name)
            assert "remote." in str(caught.value) or "private networks" in str(caught.value)
            assert len(server.asked("/v1/segment/abc/")) <= 5


def test_a_limit_ends_the_pages_whatever_hints_at_more(server, client):
    for name, style in {**COMPLETE, **HONEST}.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(style)
            table = client.execute_segment({"a": 1}, limit=10)
            assert table["address"].tolist() == [row["address"] for row in FIRST]
            assert [request.path for request in server.requests] == ["/v1/segment/execute"]


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
@pytest.mark.parametrize(
    "name", ["CSV, Link", "next_cursor", "page, total_pages", "an empty page with a next"]
)
def test_a_file_has_the_rows_of_all_pages(server, client, tmp_path, name, ending):
    server.handler = serve(COMPLETE[name])
    export = client.export_csv if name.startswith("CSV") else client.export_json
    assert export("abc", to=tmp_path / f"rows{ending}")["rows"].tolist() == [25]


def test_no_file_has_the_rows_of_some_pages(server, client, tmp_path):
    for name, style in HONEST.items():
        for ending in (".csv", ".json", ".parquet"):
            with case(name, ending):
                server.requests.clear()
                server.scripts.clear()
                server.handler = serve(style)
                with pytest.raises(ProtocolError):
                    client.export_json("abc", to=tmp_path / f"rows{ending}")
                assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]


@pytest.mark.parametrize(
    "links",
    [
        '</w?page=1>; rel="first", </w?page=1>; rel="last"',
        '</w?page=2>; rel="prev", </w?page=3>; rel="last"',
    ],
)
def test_a_last_link_is_no_sign_on_the_last_page(server, client, links):
    server.handler = serve(simply(ROWS, Link=links))
    assert len(client.export_json("abc")) == 25


@pytest.mark.parametrize("name", ["suggestions", "trending"])
def test_what_is_offered_beside_no_hit_is_no_hit(server, client, name):
    other = [{"chain": "ethereum", "address": f"0x{1:040x}", "name": "Another"}]
    server.handler = lambda request: reply({"results": [], name: other})
    assert client.search_nfts("absent").empty
    server.handler = lambda request: reply({name: other})
    with pytest.raises(ProtocolError):
        client.search_nfts("absent")


def by_page(first: int, rows: int, beyond: str, says: str) -> Style:
    """Page by ``p``, of which no answer speaks; ``beyond``: what comes after the last one."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        page = int(query.get("p", first)) - first
        last = (rows - 1) // SIZE
        if page > last and beyond == "404":
            return reply({"detail": "no such page"}, 404)
        page = min(page, last) if beyond == "the last again" else page
        found = ROWS[:rows][page * SIZE :][:SIZE] if page >= 0 else []
        return reply(
            {"rows": found, **({says: rows if says == "total" else len(found)} if says else {})}
        )

    return answer


def test_pages_by_number_are_complete_wherever_they_begin_and_end(server, settings):
    for first, rows, beyond, says in product(
        (0, 1), (10, 20, 25), ("no rows", "404", "the last again"), ("", "total", "count")
    ):
        with case(first, rows, beyond, says):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(by_page(first, rows, beyond, says))
            client = Client(
                server.url,
                KEY,
                settings=settings(remote={"paging": {"style": "page", "parameter": "p"}}),
            )
            if beyond == "the last again" and rows < 25 and says != "total":
                # Full pages that come again may be a service that does not read the number.
                with pytest.raises(ProtocolError, match="same page came twice"):
                    client.export_json("abc")
                continue
            assert client.export_json("abc")["address"].tolist() == [
                row["address"] for row in ROWS[:rows]
            ]


def test_a_page_of_another_number_than_was_asked_for_is_an_error(server, settings):
    def answer(query: dict[str, str], _request: Request) -> bytes:
        page = int(query.get("p", 0))
        return reply({"rows": part(page * SIZE), "page": page + 1})

    server.handler = serve(answer)
    client = Client(
        server.url, KEY, settings=settings(remote={"paging": {"style": "page", "parameter": "p"}})
    )
    with pytest.raises(ProtocolError, match="rows between would be missing"):
        client.export_json("abc")


# ------------------------------------------------------------------ descriptions

RULE = {"field": "balance", "op": ">", "value": "100"}
JOB = {"id": "seg-1", "status": "completed"}
# What a service says again of the segment, beside its id: none of it is the segment's rows.
DESCRIPTIONS: dict[str, Any] = {
    name: {**JOB, name: [RULE, RULE]}
    for name in (
        "rules",
        "conditions",
        "criteria",
        "steps",
        "chains",
        "columns",
        "tags",
        "events",
        "inputs",
        "logs",
        "audiences",
        "contracts",
        "parameters",
        "versions",
        "permissions",
        "schedules",
        "history",
        "labels",
        "tokens",
        "nfts",
        "collections",
        "owners",
        "users",
        "members",
        "addresses",
    )
} | {
    "query": {**JOB, "query": {"rows": [RULE], "items": [RULE, RULE]}},
    "request": {**JOB, "request": {"filters": [RULE], "data": [RULE]}},
    "definition": {**JOB, "definition": {"groups": [RULE, RULE]}},
    "a wrapped job": {"data": {**JOB, "rules": [RULE], "actions": [RULE, RULE]}},
    "JSON:API": {
        "data": {
            "type": "segment",
            "id": "seg-1",
            "attributes": {"status": "completed", "rules": [RULE]},
        }
    },
    "no rows beside it": {**JOB, "data": []},
    "null beside it": {**JOB, "data": None},
    "a preview": {**JOB, "preview": FIRST},
    "one page beside it, and a total": {**JOB, "data": FIRST, "total": 25},
    "one page beside it, and has_more": {**JOB, "data": FIRST, "has_more": True},
}


def test_a_description_is_never_the_rows_that_are_under_its_id(server, client):
    for name, described in DESCRIPTIONS.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.script("POST /v1/segment/execute", reply(described))
            server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
            assert client.execute_segment({"a": 1})["address"].tolist() == [
                row["address"] for row in ROWS
            ]


def test_a_description_without_rows_anywhere_is_an_error(server, client):
    for name, described in DESCRIPTIONS.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.script("POST /v1/segment/execute", reply(described))
            if name == "no rows beside it":
                # That there are none is then all that the service says.
                assert len(client.execute_segment({"a": 1})) == 0
                continue
            # Nor are there any under its id.
            with pytest.raises((ProtocolError, NotFound)):
                client.execute_segment({"a": 1})


def test_what_may_be_rows_beside_an_id_is_asked_about_where_there_are_none_under_it(
    server, client, settings
):
    server.script("POST /v1/segment/execute", reply({**JOB, "owners": ROWS}))
    with pytest.raises(AmbiguousAnswer) as caught:
        client.execute_segment({"a": 1})
    assert caught.value.setting == 'remote.segment.paths.rows = "owners"'
    said = Client(server.url, KEY, settings=settings(remote={"paths": {"rows": "owners"}}))
    assert len(said.execute_segment({"a": 1})) == 25


def test_rows_beside_an_id_are_those_that_are_named_as_a_result(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    for beside in ({"owners": ROWS[:2]}, {"tokens": ["a", "b"], "chains": ["c", "d"]}):
        server.script("*", reply({**JOB, "data": ROWS, **beside}))
        assert len(client.export_json("abc")) == len(ROWS)


def test_what_is_as_long_as_another_list_beside_an_id_is_no_rows_of_the_segment(server, client):
    described = {**JOB, "tokens": ["a", "b"], "chains": ["c", "d"]}
    server.script("POST /v1/segment/execute", reply(described))
    server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
    assert len(client.execute_segment({"a": 1})) == len(ROWS)


# ------------------------------------------------------------------ states

RUNNING: dict[str, Any] = {
    word: {"status": word}
    for word in (
        "queued",
        "PENDING",
        "In Progress",
        "IN_PROGRESS",
        "QUERY_STATE_EXECUTING",
        "submitted",
        "accepted",
        "created",
        "Not Ready",
        "processing",
        "scheduled",
        "starting",
        "waiting",
        "incomplete",
    )
} | {
    "done": {"done": False},
    "finished": {"finished": False},
    "ready": {"ready": "false"},
    "is_execution_finished": {"is_execution_finished": False, "status": "success"},
    "jobComplete": {"jobComplete": False},
    "isRunning": {"isRunning": True},
    "progress, a share": {"progress": 0.4},
    "progress, percent": {"progress": 40},
    "progress in text": {"progress": "40%"},
    "percentComplete": {"percentComplete": 1, "status": "ok"},
    "progress of steps": {"progress": {"done": 3, "total": 10}},
    "queue_position": {"queue_position": 3},
    "completed_at": {"completed_at": None},
    "state.name": {"state": {"name": "RUNNING"}},
    "status.state": {"status": {"state": "PENDING", "code": 0}},
    "status.code": {"status": {"code": "queued"}},
    "data.state.label": {"data": {"state": {"label": "Running"}}},
    "an outer success": {"status": "success", "data": {"status": "running"}},
}
UNKNOWN = ["vorbereitet", "2", "COMPLETED_PARTIAL", "partially_completed", "phase-7"]


@pytest.mark.slow
def test_a_job_that_is_not_done_has_no_result_yet(server, client, monkeypatch):
    """Whatever is beside it: no rows at all, or some."""
    # A hundred jobs are asked for twice each.
    monkeypatch.setattr("nbext.client.segment_run.FIRST_POLL", 0.01)
    for name, state in RUNNING.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            running = {"id": "seg-1", **state}
            for beside in ({}, {"rows": []}, {"rows": FIRST}):
                # Without rows a Retry-After would itself be a sign of waiting; beside rows it only makes the next look come soon.
                waiting = reply(
                    {**running, **beside}, **({"Retry_After": "0"} if beside.get("rows") else {})
                )
                server.script("POST /v1/segment/execute", waiting)
                server.script(
                    "GET /v1/segment/seg-1", waiting, reply({"id": "seg-1", "status": "done"})
                )
                server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
                server.requests.clear()
                assert len(client.execute_segment({"a": 1})) == 25
                assert (
                    len(
                        [
                            request
                            for request in server.requests
                            if request.path == "/v1/segment/seg-1"
                        ]
                    )
                    == 2
                )


@pytest.mark.parametrize("word", UNKNOWN)
@pytest.mark.parametrize(
    "beside", [{"rows": ROWS}, {}], ids=["rows beside it", "rows under its id"]
)
def test_a_status_that_nobody_knows_is_asked_about_at_once_where_there_are_rows(
    server, client, settings, word, beside
):
    status = int(word) if word.isdigit() else word
    server.script("POST /v1/segment/execute", reply({"id": "seg-1", "status": status, **beside}))
    server.script("GET /v1/segment/seg-1", reply({"id": "seg-1", "status": status}))
    server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
    with pytest.raises(AmbiguousAnswer) as caught:
        client.execute_segment({"a": 1})
    assert caught.value.setting == f'remote.segment.states.done = "{word}"'
    assert len(server.requests) <= 3
    known = Client(server.url, KEY, settings=settings(remote={"states": {"done": word}}))
    assert len(known.execute_segment({"a": 1})) == 25


@pytest.mark.parametrize(
    "status",
    ["failed", "ERROR", "QUERY_STATE_FAILED", "cancelled", "TIMED_OUT", "Expired", "killed"],
)
def test_a_job_that_ended_badly_is_an_error(server, client, status):
    server.script(
        "POST /v1/segment/execute",
        reply({"id": "seg-1", "status": status, "rows": FIRST, "error": "no credit"}),
    )
    with pytest.raises(NbextError, match=r"no credit|cancelled"):
        client.execute_segment({"a": 1})


def test_an_export_waits_for_a_segment_that_still_runs(server, client):
    server.script(
        "GET /v1/segment/seg-1",
        reply({"id": "seg-1", "state": "RUNNING"}),
        reply({"id": "seg-1", "state": "DONE"}),
    )
    server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
    assert len(client.export_json("seg-1")) == 25
    assert [request.path for request in server.requests] == ["/v1/segment/seg-1"] * 2 + [
        "/v1/segment/seg-1/json"
    ]


@pytest.mark.parametrize("word", ["running", "QUERY_STATE_EXECUTING"])
def test_an_export_that_says_of_itself_that_it_is_not_done_is_asked_for_again(
    server, client, tmp_path, word
):
    server.script("GET /v1/segment/abc", reply({}, 404))
    answers = [reply({"status": word, "rows": FIRST}), reply({"status": "done", "rows": ROWS})]
    for to in (None, tmp_path / "rows.csv"):
        server.script("GET /v1/segment/abc/json", *answers)
        table = client.export_json("abc", to=to)
        assert (int(table["rows"].iloc[0]) if to else len(table)) == 25


def test_an_export_that_is_a_part_is_asked_about(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/json", reply({"status": "PARTIAL", "rows": FIRST}))
    with pytest.raises(AmbiguousAnswer, match=r'remote\.export\.states\.done = "PARTIAL"'):
        client.export_json("abc")


# ------------------------------------------------------------------ errors that come as rows

LAST = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
AS_ROWS: dict[str, tuple[bytes, str, str]] = {
    "prose as text": (b"Internal error, try later", "text/plain", "Internal error, try later"),
    "prose as CSV": (b"Internal error, try later\n", "text/csv", "Internal error, try later"),
    "a word as CSV": (b"Unauthorized\n", "text/csv", "Unauthorized"),
    "CSV of an error": (b"error\nquery killed\n", "text/csv", "query killed"),
    "CSV of code and message": (b"code,message\n500,query killed\n", "text/csv", "query killed"),
    "last line": (LAST + b'{"error": "query killed"}\n', "application/x-ndjson", "query killed"),
    "last row": (
        json.dumps({"rows": [*FIRST, {"error": {"message": "query killed"}}]}).encode(),
        "application/json",
        "query killed",
    ),
    "only row": (
        json.dumps({"rows": [{"error": "query killed"}]}).encode(),
        "application/json",
        "query killed",
    ),
    "a total in the last line": (
        LAST + b'{"_meta": {"total": 90}}\n',
        "application/x-ndjson",
        "rows may be missing",
    ),
    "a total in the last row": (
        json.dumps({"rows": [*FIRST, {"meta": {"total": 90}}]}).encode(),
        "application/json",
        "rows may be missing",
    ),
}


def test_an_error_that_comes_as_rows_is_no_table(server, client, tmp_path):
    for name, (body, kind, words) in AS_ROWS.items():
        for to in (None, "rows.csv", "rows.parquet"):
            with case(name, to):
                server.requests.clear()
                server.scripts.clear()
                server.script("GET /v1/segment/abc", reply({}, 404))
                server.script("*", reply(body, content_type=kind))
                with pytest.raises(NbextError, match=words):
                    (client.export_json if "json" in kind else client.export_csv)(
                        "abc", to=None if to is None else tmp_path / to
                    )


@pytest.mark.parametrize("header", ["address", "wallet,balance", "token,amount"])
def test_a_header_without_rows_is_a_table_without_rows(server, client, header):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/csv", reply(header.encode(), content_type="text/csv"))
    table = client.export_csv("abc")
    assert (len(table), list(table)) == (0, header.split(","))


def test_a_last_row_that_says_where_the_next_page_is_is_no_row_and_two_lines_read_it(
    server, client, settings
):
    def answer(query: dict[str, str], _request: Request) -> bytes:
        start = int(query.get("cursor", 0))
        return reply([*part(start), *([{"cursor": str(after(start))}] if after(start) else [])])

    server.handler = serve(answer)
    with pytest.raises(ProtocolError, match="rows may be missing"):
        client.export_json("abc")
    remote = {"export": {"paths": {"rows": "[?address]", "next": "[-1].cursor"}}}
    told = Client(server.url, KEY, settings=settings(remote=remote))
    assert told.export_json("abc")["address"].tolist() == [row["address"] for row in ROWS]


def test_a_square_of_lists_that_may_be_columns_is_asked_about(server, client, settings):
    one, two = ROWS[1]["address"], ROWS[2]["address"]
    server.script("GET /v1/segment/abc", reply({}, 404))

    def answered(data: list[list[str]]) -> None:
        server.script(
            "GET /v1/segment/abc/json", reply({"columns": ["address", "bal"], "data": data})
        )

    answered([[one, "7"], [two, "8"]])
    assert client.export_json("abc").to_dict("list") == {"address": [one, two], "bal": ["7", "8"]}
    for data in ([[one, two], ["7", "8"]], [[one, two], [one, one]]):
        answered(data)
        with pytest.raises(AmbiguousAnswer) as caught:
            client.export_json("abc")
        assert caught.value.setting == 'remote.export.paths.rows = "data"'
    server.script("POST /v1/search", reply({"columns": ["address", "bal"], "data": data}))
    with pytest.raises(AmbiguousAnswer) as caught:
        client.search_nfts("ape")
    assert caught.value.setting == 'remote.search.paths.rows = "data"'
    told = Client(server.url, KEY, settings=settings(remote={"paths": {"rows": "data"}}))
    assert told.export_json("abc").to_dict("list") == {"address": [one, one], "bal": [two, one]}


def test_warnings_of_an_answer_are_notes(server, client):
    server.script(
        "*", reply({"rows": ROWS, "warnings": ["two shards were slow"]}, Warning='199 - "old data"')
    )
    for table in (
        client.export_json("abc"),
        client.search_nfts("ape"),
        client.execute_segment({"a": 1}),
    ):
        assert sorted(table.attrs["nbext"]["warnings"]) == [
            '199 - "old data"',
            "two shards were slow",
        ]


# ------------------------------------------------------------------ look-ups


@pytest.mark.parametrize("name", ["address", "contractAddress"])
def test_metadata_of_another_address_than_was_asked_for_is_an_error(server, client, name):
    asked, other = "0x" + "ab" * 20, "0x" + "cd" * 20
    server.script("*", reply({name: other, "symbol": "USDC"}))
    with pytest.raises(ProtocolError, match=f"asked for {asked}, and answered for {other}"):
        client.tokens("ethereum", asked)
    deep = {"symbol": "USDC", "token": {"contract": {"asset": {name: other}}}}
    server.scripts.clear()
    server.script("*", reply(deep))
    with pytest.raises(ProtocolError, match=f"asked for {asked}, and answered for {other}"):
        client.tokens("ethereum", asked)
    server.scripts.clear()
    server.script("*", reply({name: asked.upper().replace("0X", "0x"), "symbol": "USDC"}))
    assert client.tokens("ethereum", asked)["symbol"].tolist() == ["USDC"]


def test_a_search_has_no_more_hits_than_its_limit_and_says_how_many_came(server, client):
    server.script("*", reply({"items": ROWS}))
    table = client.search_nfts("ape", limit=5)
    assert table["address"].tolist() == [row["address"] for row in ROWS[:5]]
    assert table.attrs["nbext"]["warnings"] == ["The service sent 25 hits: 5 are here."]


def test_a_search_after_the_first_hits_has_those_after_them_also_where_the_service_sends_all(
    server, client
):
    server.script("*", reply({"items": ROWS}))
    pages = [client.search_nfts("ape", limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [address for page in pages for address in page["address"]] == [
        row["address"] for row in ROWS
    ]
    assert [page.attrs["nbext"]["warnings"] for page in pages] == [
        ["The service sent 25 hits: 10 are here."],
        ["The service sent 25 hits: 10 are here, after the first 10."],
        ["The service sent 25 hits: 5 are here, after the first 20."],
        ["The service sent 25 hits: none is here, after the first 30."],
    ]


# ------------------------------------------------------------------ errors under status 200

ERRORS: dict[str, tuple[Any, str]] = {
    "error text": ({"error": "no credit"}, "no credit"),
    "error object": ({"error": {"code": -32000, "message": "no credit"}}, "no credit"),
    "error beside null data": ({"data": None, "error": {"text": "no credit"}}, "no credit"),
    "error true": ({"error": True, "message": "no credit"}, "no credit"),
    "JSON-RPC": (
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no credit"}},
        "no credit",
    ),
    "GraphQL": ({"data": None, "errors": [{"message": "no credit", "path": ["x"]}]}, "no credit"),
    "GraphQL with some data": (
        {"data": {"rows": FIRST}, "errors": [{"message": "no credit"}]},
        "no credit",
    ),
    "four levels deep": ({"error": {"a": {"b": {"c": {"d": "no credit"}}}}}, "error: no credit"),
    "five levels deep": ({"error": {"a": {"b": {"c": {"d": {"e": "x"}}}}}}, "error: {'a': .*}"),
    "errors by field": ({"errors": {"email": ["no credit"]}}, "no credit"),
    "success false": ({"success": False, "message": "no credit"}, "no credit"),
    "success in text": ({"success": "false", "reason": "no credit"}, "no credit"),
    "ok false": ({"ok": False, "description": "no credit"}, "no credit"),
    "status error": ({"status": "error", "message": "no credit"}, "no credit"),
    "status fail": ({"status": "fail", "data": {"title": "no credit"}}, "no credit"),
    "NOTOK": ({"status": "0", "message": "NOTOK", "result": "no credit"}, "NOTOK: no credit"),
    "NOTOK beside data": ({"status": "0", "message": "NOTOK", "data": "no credit"}, "NOTOK"),
    "result error": ({"result": "error", "msg": "no credit"}, "no credit"),
    "type error": ({"type": "error", "error": {"type": "x", "message": "no credit"}}, "no credit"),
    "code and message": ({"code": 1007, "message": "no credit"}, "no credit"),
    "code, message, no data": ({"code": 7, "msg": "no credit", "data": None}, "no credit"),
    "errorCode, errorMessage": ({"errorCode": "X1", "errorMessage": "no credit"}, "no credit"),
    "message alone": ({"message": "no credit"}, "no credit"),
    "detail alone": ({"detail": "no credit"}, "no credit"),
    "Response False": ({"Response": "False", "Error": "no credit"}, "no credit"),
    "null data and a message": ({"data": None, "message": "no credit"}, "no credit"),
    "a list of errors": ([{"errorCode": "X", "message": "no credit"}], "no credit"),
    "status inside": ({"statusCode": 404, "message": "no credit"}, "404: no credit"),
    "data.error": ({"data": {"error": "no credit"}}, "no credit"),
    "fault": ({"fault": {"faultstring": "no credit"}}, "no credit"),
}


OPERATIONS: dict[str, Callable[[Client], Any]] = {
    "execute": lambda client: client.execute_segment({"a": 1}),
    "segment": lambda client: client.segment("abc"),
    "export_json": lambda client: client.export_json("abc"),
    "export_csv": lambda client: client.export_csv("abc"),
    "search": lambda client: client.search_nfts("ape"),
    "tokens": lambda client: client.tokens("ethereum", "0x" + "ab" * 20),
    "nfts": lambda client: client.nfts("ethereum", "0x" + "ab" * 20),
    "sign_up": lambda client: client.sign_up("a@example.com"),
}
# A receipt may say little: none of these is an error there.
RECEIPTS = {
    "code and message",
    "code, message, no data",
    "message alone",
    "detail alone",
    "null data and a message",
}


def test_an_error_under_status_200_is_one_with_the_vendors_words(server, client):
    for name, (body, words) in ERRORS.items():
        for operation, call in OPERATIONS.items():
            with case(name, operation):
                server.requests.clear()
                server.scripts.clear()
                server.script("*", reply(body))
                if operation == "sign_up" and name in RECEIPTS:
                    call(client)
                    continue
                with pytest.raises(ApiError, match=f"(?:{words})$"):
                    call(client)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "1", "message": "OK", "result": ROWS},
        {"code": 0, "message": "success", "data": ROWS},
        {"code": 200, "msg": "OK", "data": {"list": ROWS}},
        {"success": True, "error": None, "errors": [], "data": ROWS},
        {"error": 0, "result": ROWS},
        {"ok": True, "message": "25 rows", "rows": ROWS},
        {"jsonrpc": "2.0", "id": 1, "result": ROWS},
    ],
)
def test_what_only_says_that_all_went_well_is_no_error(server, client, body):
    server.script("*", reply(body))
    assert len(client.execute_segment({"a": 1})) == len(client.search_nfts("ape")) == 25


def test_that_nothing_was_found_is_no_error(server, client):
    server.script("*", reply({"status": "0", "message": "No transactions found", "result": []}))
    assert len(client.search_nfts("ape")) == 0


# ------------------------------------------------------------------ sign-up receipts


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (reply([]), None),
        (reply([{"email": "A@Example.com"}]), None),
        (reply({"email": "a***@example.com"}), None),
        (reply({"email": True}), None),
        (reply(None), None),
        (reply(b"", 204, None), None),
        (reply(b"", 201, None), None),
        (reply("ok"), "ok"),
        (reply(b"success", 200, "text/plain"), "success"),
        (reply(True), None),
        (reply({"message": "Thanks"}), None),
        (reply({"data": {"status": "subscribed"}}), "subscribed"),
        (reply({"status": "pending"}), "pending"),
        (reply({"status": "success", "data": {"status": "pending"}}), "pending"),
        (reply({"result": {"state": {"name": "queued"}}}), "queued"),
    ],
)
def test_whatever_comes_under_success_is_a_receipt(server, client, answer, status):
    server.script("*", answer)
    row = client.sign_up("a@example.com").iloc[0].to_dict()
    assert (row["email"], None if row["status"] != row["status"] else row["status"]) == (
        "a@example.com",
        status,
    )


def test_a_receipt_that_is_a_page_or_a_text_that_nobody_knows_is_an_error_with_its_words(
    server, client, settings
):
    texts = ("Error: no credit", "Internal error: no credit", "Thanks, no credit", "{no credit")
    for answer in (
        reply({"data": {"status": "rejected", "reason": "no credit"}}),
        reply("invalid: no credit"),
        reply(b"<title>Thank you: no credit</title>", 200, "text/html"),
        *(reply(text.encode(), 200, "text/plain") for text in texts[:3]),
    ):
        server.requests.clear()
        server.script("*", answer)
        with pytest.raises((ApiError, ProtocolError), match="no credit"):
            client.sign_up("a@example.com")
        assert len(server.requests) == 1
    for body, words in ((False, "false"), (b"{broken", "not JSON"), (0, "0 says")):
        server.script("*", reply(body))
        with pytest.raises((ApiError, ProtocolError), match=words):
            client.sign_up("a@example.com")
    # A word that the settings know is a receipt.
    server.script("*", reply("thanks"))
    with pytest.raises(AmbiguousAnswer) as caught:
        client.sign_up("a@example.com")
    assert caught.value.setting == 'remote.signup.states.done = "thanks"'
    told = Client(server.url, KEY, settings=settings(remote={"states": {"done": "thanks"}}))
    assert told.sign_up("a@example.com")["status"].tolist() == ["thanks"]


# ------------------------------------------------------------------ bodies whose end nobody states

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n%s\r\n"
CSV = csv_of(ROWS)
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def open_ended(body: bytes, kind: bytes, more: bytes = b"") -> list[Any]:
    return [HEAD % (kind, more) + body, None]


BODIES = [
    ("export_csv", "csv", b"text/csv", CSV),
    ("export_json", "json", b"application/x-ndjson", LINES),
]


@pytest.mark.parametrize(("export", "path", "kind", "body"), BODIES, ids=["CSV", "NDJSON"])
@pytest.mark.parametrize("stated", ["description", "header", "nothing"])
@pytest.mark.parametrize(
    "to", slow.but_the_first([None, "rows.parquet", "rows.csv", "rows.json"], 2)
)
def test_a_body_without_length_is_checked_against_every_count(
    server, client, tmp_path, export, path, kind, body, stated, to
):
    target = None if to is None else tmp_path / to
    described = {
        "id": "abc",
        "status": "done",
        **({"total_rows": 25} if stated == "description" else {}),
    }
    more = b"X-Total-Count: 25\r\n" if stated == "header" else b""
    server.script("GET /v1/segment/abc", reply(described))
    lines = body.splitlines(keepends=True)
    twelve = b"".join(lines[: len(lines) - 13])
    half = body[: body.rindex(b"0x") + 20] if path == "csv" else body.rstrip()

    def run(sent: bytes) -> Any:
        server.script(f"GET /v1/segment/abc/{path}", open_ended(sent, kind, more))
        return getattr(client, export)("abc", to=target, overwrite=True)

    whole = run(body)
    notes = whole.attrs["nbext"]["warnings"]
    assert (int(whole["rows"].iloc[0]) if to else len(whole)) == 25
    assert len(notes) == (stated == "nothing")
    if stated == "nothing":
        assert "cannot be verified" in notes[0]
        assert run(twelve).attrs["nbext"]["warnings"] == notes
    else:
        with pytest.raises(ProtocolError, match="states 25 rows, but 12 came"):
            run(twelve)
    # In the middle of a line: nobody can say whether the last value is whole.
    if path == "csv" and b"," not in half[half.rindex(b"\n") :]:
        with pytest.raises(ProtocolError):
            run(half)
    cut = body.rstrip()[:-1] if path == "csv" else body.rstrip()
    if stated == "nothing":
        with pytest.raises(NbextError, match="middle of a line"):
            run(cut)
    else:
        assert "may be cut" in run(cut).attrs["nbext"]["warnings"][0]


@pytest.mark.parametrize(("export", "path", "kind", "body"), BODIES, ids=["CSV", "NDJSON"])
def test_a_body_with_a_length_needs_no_note_and_no_last_line_end(
    server, client, export, path, kind, body
):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script(f"GET /v1/segment/abc/{path}", reply(body.rstrip(), content_type=kind.decode()))
    table = getattr(client, export)("abc")
    assert (len(table), table.attrs["nbext"]["warnings"]) == (25, [])


# ------------------------------------------------------------------ the key


def test_the_key_follows_no_link_to_another_origin(server, settings):
    other = FaultServer()
    try:
        for sign in ("next", "nextUri", "next_url", "continuation"):
            other.script("*", reply({"rows": ROWS[10:]}))
            server.handler = serve(simply({"rows": FIRST, sign: f"{other.url}/more?at=10"}))
            client = Client(server.url, KEY, settings=settings())
            assert len(client.export_json("abc")) == 25
        server.handler = serve(simply(FIRST, Link=f"<{other.url}/more>; rel=next"))
        other.script("*", reply(ROWS[10:]))
        assert len(Client(server.url, KEY, settings=settings()).export_json("abc")) == 25
        assert len(other.requests) == 5
        sent = [
            text
            for request in other.requests
            for text in (request.path, *request.headers, *request.headers.values())
        ]
        assert "x-api-key" not in sent
        assert not any(KEY in text for text in sent)
    finally:
        other.close()


# ------------------------------------------------------------------ the table, when run alone


def main() -> None:
    """Print, for each kind, how many are complete, how many are an error that helps, and how many silently part."""
    from collections import Counter

    from nbext.settings import Settings

    server = FaultServer()
    for kind, styles in {
        "paging that can be followed": COMPLETE,
        "paging that cannot": HONEST,
    }.items():
        outcomes: Counter[str] = Counter()
        for name, style in styles.items():
            server.handler = serve(style)
            try:
                outcomes[
                    "complete"
                    if len(exported(Client(server.url, KEY, settings=Settings()), name)) == 25
                    else "SILENT"
                ] += 1
            except NbextError:
                outcomes["honest error"] += 1
        print(f"{kind:32} {len(styles):3}  {dict(outcomes)}")
    server.handler = None
    for kind, answers in {
        "descriptions": DESCRIPTIONS,
        "not done": RUNNING,
        "errors under 200": ERRORS,
    }.items():
        outcomes = Counter()
        for answer in answers.values():
            first = (
                answer[0]
                if isinstance(answer, tuple)
                else {"id": "seg-1", **answer}
                if kind == "not done"
                else answer
            )
            server.scripts.clear()
            server.script("POST /v1/segment/execute", reply(first))
            server.script("GET /v1/segment/seg-1", reply({"id": "seg-1", "status": "done"}))
            server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
            try:
                table = Client(server.url, KEY, settings=Settings()).execute_segment({"a": 1})
                outcomes["complete" if len(table) == 25 else "SILENT"] += 1
            except NbextError:
                outcomes["honest error"] += 1
        print(f"{kind:32} {len(answers):3}  {dict(outcomes)}")
    server.close()


if __name__ == "__main__":
    main()
