"""Answers that once came back as a part, with no word: each is now the whole table, an error, or a note that says why.

Every row is one stranger's service on loopback, its settings, and what the public client must make of it.
"""

# A row of a table stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import io
import json
import re
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pyarrow as pa
import pytest

from nbext import Client
from nbext.core.wire import ARROW_TYPE
from nbext.errors import ApiError, NbextError, NotFound, OutcomeUnknown, ProtocolError
from nbext.settings import Settings
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, Request, reply
from tests.client.remote.test_never_a_part import (
    FIRST,
    JOB,
    ROWS,
    Style,
    after,
    counted,
    csv_of,
    cursor,
    link,
    numbered,
    part,
    serve,
    simply,
)

WHOLE, ERROR = "whole", "error"
STRIPE = {
    "paths": {"next": "data[-1].id"},
    "paging": {"style": "cursor", "parameter": "starting_after"},
}
NOWHERE = [
    {"paths": {"next": "nowhere"}},
    {"paths": {"next": "header:X-Nowhere"}},
    {"paths": {"total": "nowhere"}},
    STRIPE,
    *({"profile": name} for name in ("alchemy", "opensea", "moralis", "jsonapi", "graphql")),
]


def edges(query: dict[str, str], _request: Request) -> bytes:
    start = int(query.get("after", "cur0")[3:])
    more = after(start)
    info = {"hasNextPage": more is not None, "endCursor": f"cur{more}"}
    wallets = {"edges": [{"node": row} for row in part(start)], "pageInfo": info}
    return reply({"data": {"segment": {"wallets": wallets}}})


def pages(*bodies: Any) -> Style:
    """The pages that a page's number asks for; after the last of them there is what is given last."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        body = bodies[min(int(query.get("page", 1)), len(bodies)) - 1]
        return body if isinstance(body, bytes) else reply(body)

    return answer


def by_page_or_offset(query: dict[str, str], _request: Request) -> bytes:
    """A page that states its number, and may be asked for by that or by its first row."""
    start = int(query.get("offset", 10 * (int(query.get("page", 1)) - 1)))
    return reply({"data": part(start), "page": start // 10 + 1})


def links_called(name: str) -> Style:
    return link(lambda rows, url: {"rows": rows, **({name: url} if url else {})})


def nested(names: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {names[0]: nested(names[1:], inner)} if names else inner


# Solana's addresses begin with no 0x.
MINTS = [{"wallet": f"So{row['n']:042}", "n": row["n"]} for row in ROWS]
PAGED = {"paging": {"style": "page"}}
# What an export answers, the settings that read it, and the outcome: all rows, an error, or a note with these words.
EXPORTS: dict[str, tuple[Style, list[dict[str, Any]], str]] = {
    "has_more": (simply({"data": FIRST, "has_more": True}), NOWHERE, ERROR),
    "truncated": (simply({"data": FIRST, "truncated": True}), NOWHERE, ERROR),
    "total": (simply({"data": FIRST, "total": 25}), NOWHERE, ERROR),
    "a total pages": (simply({"data": FIRST, "total_pages": 3}), NOWHERE, ERROR),
    "next_cursor": (
        cursor("cursor", lambda rows, at: {"data": rows, "next_cursor": at}),
        [*NOWHERE[:2], {"profile": "jsonapi"}],
        WHOLE,
    ),
    "next_cursor under another name": (
        cursor("cursor", lambda rows, at: {"data": rows, "next_cursor": at}),
        [
            STRIPE,
            {"profile": "moralis"},
            {"profile": "alchemy"},
            {"profile": "opensea"},
            {"profile": "graphql"},
        ],
        ERROR,
    ),
    "nextPageToken": (
        cursor("pageToken", lambda rows, at: {"items": rows, "nextPageToken": at}),
        NOWHERE[:2],
        WHOLE,
    ),
    "Link": (link(lambda rows, _url: rows, Link='<{}>; rel="next"'), [*NOWHERE[:2], STRIPE], WHOLE),
    "edges far down": (edges, [{}, {"profile": "graphql"}], WHOLE),
    "Stripe's lines, and its has_more": (
        lambda query, _request: reply(
            {
                "has_more": int(query.get("starting_after", -1)) < 14,
                "data": [
                    {**row, "id": row["n"]}
                    for row in part(int(query.get("starting_after", -1)) + 1)
                ],
            }
        ),
        [STRIPE],
        WHOLE,
    ),
    "a total of nothing, and no other": (
        simply({"data": FIRST}),
        [{"paths": {"total": "nowhere"}}],
        ERROR,
    ),
    "a next page of nothing, and no other": (
        simply({"data": FIRST}),
        NOWHERE[:2],
        "leads to nothing",
    ),
    "a cursor without rows that leads to itself, and more": (
        lambda query, _request: reply(
            {"data": [] if "cursor" in query else FIRST, "next_cursor": "cur10", "has_more": True}
        ),
        [{}],
        ERROR,
    ),
    "a cursor without rows that leads to itself, at the end": (
        lambda query, _request: reply(
            {
                "data": part(int(query.get("cursor", "cur0")[3:])),
                "next_cursor": f"cur{min(int(query.get('cursor', 'cur0')[3:]) + 10, 30)}",
            }
        ),
        [{}],
        WHOLE,
    ),
    # The end is where a sign says so.
    "page 2 is missing": (pages({"rows": FIRST}, reply({}, 404)), [PAGED], "page 2"),
    "page 2 is gone": (pages({"rows": FIRST}, reply({}, 410)), [PAGED], "page 2"),
    "page 2 is missing under a total": (
        pages({"rows": FIRST, "total": 25}, reply({}, 404)),
        [PAGED],
        ERROR,
    ),
    **{
        f"a total of {text}": (simply({"rows": FIRST, "total": text}), [{}], ERROR)
        for text in ("10 000", "10.000", "10'000 wallets", "10_000", "1,00,000", "0X19")
    },
    **{
        f"a total of {text}": (simply({"rows": FIRST, "total": text}), [{}], f"total = '{text}'")
        for text in ("10k", "10.5 K", "10 Mio", "10 million wallets")
    },
    "what was omitted, one by one": (
        simply({"rows": FIRST, "omitted": [row["address"] for row in ROWS[10:]]}),
        [{}],
        ERROR,
    ),
    **{
        f"a range of {text}": (simply(FIRST, Content_Range=text), [{}], ERROR)
        for text in ("rows=0-9/25", "0-9 of 25", "items 0-9 / 25")
    },
    "a total that is at least so many": (
        simply({"rows": FIRST, "total": {"value": 10, "relation": "at_least"}}),
        [{}],
        ERROR,
    ),
    "a last link elsewhere, and no next": (
        simply({"rows": FIRST, "links": {"first": "/w?page=1", "last": "/w?page=3"}}),
        [{}],
        ERROR,
    ),
    "a last link elsewhere in a list, and no next": (
        simply({"rows": FIRST, "links": [{"rel": n, "href": f"/w/{n}"} for n in ("last", "self")]}),
        [{}],
        ERROR,
    ),
    "a last link that is this page's": (
        simply({"rows": ROWS, "links": {"first": "/w?page=1", "last": "/w?page=1"}}),
        [{}],
        WHOLE,
    ),
    "a last link after others": (
        simply({"rows": ROWS, "links": {"prev": "/w?page=1", "last": "/w?page=2"}}),
        [{}],
        WHOLE,
    ),
    **{
        f"a header {name}": (simply(FIRST, **{name: "25"}), [{}], ERROR)
        for name in (
            "Pagination-Total",
            "X-Items-Total",
            "Items-Count",
            "Result-Count",
            "X-Records",
        )
    },
    "headers that count something else": (
        simply(ROWS, **{"X-Retry-Count": "3", "X-Hits": "7"}),
        [{}],
        WHOLE,
    ),
    "a link that only its label calls next": (
        link(lambda rows, url: {"rows": rows, "links": [{"label": "Next", "url": url}]}),
        [{}],
        WHOLE,
    ),
    **{
        f"a number of {name}": (simply({"rows": FIRST, name: 25}), [{}], f"{name} = 25")
        for name in ("nItems", "invalid")
    },
    "a total that falls to the page's own": (
        lambda query, _request: reply(
            {"rows": part(10), "total": 10}
            if "cursor" in query
            else {"rows": FIRST, "total": 25, "next_cursor": "c"}
        ),
        [{}],
        "states 25 rows, but 20 came",
    ),
    "five rows twice and five missing": (
        pages(
            *({"rows": rows, "total": 25} for rows in (ROWS[:10], ROWS[10:20])),
            {"rows": ROWS[:5], "total": 25},
        ),
        [PAGED],
        "came twice",
    ),
    "five rows of another chain's addresses twice and five missing": (
        pages(*({"rows": rows, "total": 25} for rows in (MINTS[:10], MINTS[10:20], MINTS[:5]))),
        [PAGED],
        "came twice",
    ),
    "rows beside the address of a file": (
        simply({"rows": FIRST, "download_url": "/all.csv"}),
        [{}],
        "download_url = '/all.csv'",
    ),
    "a total that is the page's": (
        numbered(
            "page", lambda f: {"total": 10, "limit": 10, "page": f["page"], "items": f["rows"]}
        ),
        [{}],
        WHOLE,
    ),
    "a total that is the page's, of a service that reads no page": (
        simply({"total": 10, "limit": 10, "page": 1, "items": FIRST}),
        [{}],
        "here may be more",
    ),
    "a total that is the page's, and no page": (
        simply({"total": 10, "limit": 10, "items": FIRST}),
        [{}],
        "here may be more",
    ),
    "a total that is the page's, by offset": (
        counted(
            "offset",
            lambda f: {"total": 10, "limit": 10, "offset": f["offset"], "items": f["rows"]},
        ),
        [{}],
        WHOLE,
    ),
    "a link to a page that is missing, and numbers that are set": (
        link(lambda rows, url: {"rows": rows, "next": "/v1/segment/gone" if url else None}),
        [{}, PAGED, {"paging": {"style": "offset"}}],
        ERROR,
    ),
    "a cursor, and numbers that are set": (
        cursor("cursor", lambda rows, at: {"rows": rows, "next_cursor": at}),
        [PAGED],
        WHOLE,
    ),
    "the number of the page, and offsets that are set": (
        by_page_or_offset,
        [{"paging": {"style": "offset"}}],
        WHOLE,
    ),
    "a total that is the page's, and no page 2": (
        lambda query, _request: (
            reply({}, 404) if "page" in query else reply({"total": 10, "page": 1, "rows": FIRST})
        ),
        [{}],
        "page 2",
    ),
    "what is about the answer, as a list of one": (
        simply({"rows": FIRST, "meta": [{"total": 25}]}),
        [{}],
        ERROR,
    ),
    "a link that is a list of one": (
        link(lambda rows, url: {"rows": rows, "links": {"next": [{"href": url}] if url else []}}),
        [{}],
        WHOLE,
    ),
    "has_more is false, and a link leads on": (
        link(lambda rows, url: {"rows": rows, "has_more": False, "next": url}),
        [{}],
        WHOLE,
    ),
    "has_more is false on the first of three pages": (
        simply({"rows": FIRST, "has_more": False, "next": None, "total_pages": 3}),
        [{}],
        "states 3 pages",
    ),
    "a page that comes again with other values": (
        lambda query, _request: reply(
            {
                "rows": [{**row, "n": int(query.get("page", 1))} for row in FIRST],
                "page": int(query.get("page", 1)),
                "pages": 2,
            }
        ),
        [{}],
        "came twice",
    ),
    # A word that says that it is a part, wherever it stands.
    **{
        f"{name}: {value}": (simply({"rows": FIRST, name: value}), [{}], f"{name} = {value!r}")
        for name, value in {
            "type": "partial",
            "format": "sample",
            "title": "First 10 of 99 wallets",
            "kind": "truncated result",
        }.items()
    },
    "staleness": (simply({"rows": FIRST, "staleness_seconds": 90}), [{}], "staleness_seconds = 90"),
    "cached_at": (
        simply({"rows": FIRST, "meta": {"cached_at": "2024-01-01T00:00:00Z"}}),
        [{}],
        "cached_at",
    ),
    "Age": (simply({"rows": FIRST}, Age="86400"), [{}], "age = '86400'"),
    **{
        f"a link called {name}": (links_called(name), [{}], WHOLE)
        for name in ("more", "older", "after")
    },
    # A status without an id beside the rows.
    **{
        f"status {word}": (simply({"status": word, "rows": FIRST}), [{}], ERROR)
        for word in (
            "half done",
            "99% complete",
            "truncated_complete",
            "stale_ready",
            "no longer available",
        )
    },
    # A first answer that is not the first page.
    **{
        f"an earlier page, {name}": (simply({"rows": FIRST, **said}), [{}], "not its first page")
        for name, said in {
            "by number": {"page": 3, "total_pages": 3},
            "by offset": {"offset": 10, "limit": 100},
            "by first": {"first": False, "last": True},
            "by hasPreviousPage": {"pageInfo": {"hasPreviousPage": True, "hasNextPage": False}},
        }.items()
    },
    "more, as a number": (simply({"rows": FIRST, "has_more": 1}), [{}], ERROR),
    "206 of a gateway": (
        simply({"statusCode": 206, "body": json.dumps({"rows": FIRST})}),
        [{}],
        ERROR,
    ),
    "addresses, and a list beside them that is as long": (
        simply({"addresses": [row["address"] for row in ROWS], "balances": list(range(25))}),
        [{}],
        "may be a column",
    ),
    "rows of a job that ended badly": (simply({"status": "cancelled", "rows": FIRST}), [{}], ERROR),
    "a progress that is no share": (
        simply({"rows": FIRST, "progress": "10/25"}),
        [{}],
        "progress = '10/25'",
    ),
    "ok is false beside rows": (simply({"ok": False, "rows": FIRST}), [{}], ERROR),
    # The settings' path leads into a list, through all of its items, or far down.
    **{
        f"more beside the rows at {path}": (simply(body), [{"paths": {"rows": path}}], ERROR)
        for path, body in {
            "pools[0].holders": {"pools": [{"holders": FIRST, "has_more": True}, {"id": 1}]},
            "data.pools[1].holders": {"data": {"pools": [{}, {"holders": FIRST, "total": 25}]}},
            "parts[].rows[]": {"parts": [{"rows": FIRST[:5]}, {"rows": FIRST[5:], "total": 25}]},
            "[].rows[]": [{"rows": FIRST[:5], "n": 1}, {"rows": FIRST[5:], "has_more": True}],
            "a.b.c.d.e.f.g.rows": nested("abcdefg", {"rows": FIRST, "has_more": True}),
        }.items()
    },
    "more far down": (simply(nested("abcdef", {"rows": FIRST, "has_more": True})), [{}], ERROR),
    "rows of two groups": (
        simply({"parts": [{"rows": ROWS[:5]}, {"rows": ROWS[5:], "total": 25}]}),
        [{"paths": {"rows": "parts[].rows[]"}}],
        WHOLE,
    ),
    # A gateway's own answer may have been one with headers.
    **{
        f"a gateway's {name}": (
            simply({"statusCode": 200, "body": json.dumps(FIRST), **headers}),
            [{}],
            ERROR,
        )
        for name, headers in {
            "header": {"headers": {"x-total-count": "25"}},
            "number in a header": {"headers": {"X-Total-Count": 25}},
        }.items()
    },
    "a gateway's Link": (
        link(
            lambda rows, url: {
                "statusCode": 200,
                "headers": {"Link": f'<{url}>; rel="next"'} if url else {},
                "body": json.dumps(rows),
            }
        ),
        [{}],
        WHOLE,
    ),
    # Lists that say something of the rows, whatever their length and their place.
    "warnings far down": (
        simply({"rows": FIRST, "extensions": {"warnings": [{"message": "limited to ten"}] * 7}}),
        [{}],
        "limited to ten",
    ),
    "what failed, one by one": (
        simply({"rows": FIRST, "failed_chains": [f"chain-{n}" for n in range(7)]}),
        [{}],
        "failed_chains = ",
    ),
    "remarks on the answer": (
        simply({"rows": FIRST, "stats": ["the first ten of 25", "x"]}),
        [{}],
        "stats = ",
    ),
    "names and values about the answer": (
        simply(
            {"rows": FIRST, "meta": [{"name": "took", "value": 1}, {"name": "total", "value": 25}]}
        ),
        [{}],
        ERROR,
    ),
    "objects about the answer": (
        simply({"rows": FIRST, "pagination": [{"kind": "x"}, {"has_more": True}]}),
        [{}],
        ERROR,
    ),
    # Of a message every word must be known.
    **{
        f"message {text}": (simply({"rows": FIRST, "message": text}), [{}], "message = ")
        for text in (
            "Found 25 wallets, returned 10",
            "Completed with warnings: 15 wallets were skipped",
            "OK-Missing/Invalid API Key, rate limit of 1/5sec applied",
            "done, but polygon is not available",
        )
    },
    "a message that all went well": (
        simply({"rows": ROWS, "message": "Your request was successfully completed."}),
        [{}],
        WHOLE,
    ),
}


def outcome(server: FaultServer, remote: dict[str, Any], answer: Style, call: Any) -> str:
    server.handler = serve(answer)
    client = Client(server.url, KEY, settings=Settings(arguments={"remote": remote}, environ={}))
    try:
        table = call(client)
    except NbextError as error:
        return f"{ERROR}: {error}"
    notes = table.attrs["nbext"]["warnings"]
    whole = "address" in table and table["address"].tolist() == [row["address"] for row in ROWS]
    return WHOLE if whole and not notes else "; ".join(notes) or f"{len(table)} rows, and no word"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.export_json("abc"),
        pytest.param(lambda client: client.search_nfts("ape", limit=100), marks=pytest.mark.slow),
    ],
    ids=["export", "search"],
)
def test_no_part_comes_without_a_word(server, call, request):
    wrong = {}
    for name, (style, settings, words) in EXPORTS.items():
        is_search = "search" in request.node.name
        # In a search a status is not a job's: the word is noted.
        expected = "status = " if is_search and name.startswith("status") else words
        for remote in settings:
            found = outcome(server, remote, in_body(style) if is_search else style, call)
            if expected not in found:
                wrong[f"{name} {json.dumps(remote)}"] = found
    assert "\n".join(f"{name}: {found}" for name, found in wrong.items()) == ""


def in_body(style: Style) -> Style:
    """The same service, which reads in a POST's body what an export has in its query."""

    def answer(query: dict[str, str], request: Request) -> Any:
        if request.method == "POST":
            body = {name: str(value) for name, value in json.loads(request.body).items()}
            return style({**body, **query}, request)
        return style(query, request)

    return answer


@pytest.mark.slow
def test_what_headers_say_holds_for_rows_of_every_format_and_wherever_they_go(server, tmp_path):
    sink = io.BytesIO()
    table = pa.table({"address": [row["address"] for row in FIRST], "n": list(range(10))})
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    formats = {
        "text/csv": csv_of(FIRST),
        ARROW_TYPE: sink.getvalue(),
        "application/x-ndjson": b"".join(json.dumps(row).encode() + b"\n" for row in FIRST),
        "application/json": json.dumps({"rows": FIRST}).encode(),
    }
    wrong = []
    for (kind, body), settings, (header, expected), to in product(
        formats.items(),
        ({}, {"paths": {"next": "header:X-Nowhere"}}),
        {
            "X-Has-More: true": ERROR,
            "X-Has-More: 1": ERROR,
            "X-Rows: 25": ERROR,
            "X-Rows-Remaining: 15": ERROR,
            "X-Last-Page: 3": ERROR,
            "X-Total-Count: 25": ERROR,
            "X-Truncated: true": ERROR,
            "X-Total-Pages: 3": ERROR,
            "Age: 86400": "age = '86400'",
            "X-Clipped: yes": "clipped = 'yes'",
        }.items(),
        (None, "rows.csv", "rows.parquet"),
    ):
        name, _, value = header.partition(": ")
        answer = simply(body, content_type=kind, **{name: value})
        target = None if to is None else tmp_path / to
        found = outcome(
            server,
            settings,
            answer,
            lambda client, target=target: client.export_csv("abc", to=target, overwrite=True),
        )
        wrong += [] if expected in found else [f"{kind} {settings} {header} {to}: {found}"]
    assert "\n".join(wrong) == ""


def test_every_status_word_must_be_known_for_a_job_to_be_done(server, settings):
    for word in (
        "half done",
        "99% complete",
        "truncated_complete",
        "stale_ready",
        "no longer available",
    ):
        for beside in ({"rows": FIRST}, {}):
            server.script("POST /v1/segment/execute", reply({"id": "r", "status": word, **beside}))
            server.script("GET /v1/segment/r", reply({"id": "r", "status": word}))
            server.script("GET /v1/segment/r/json", reply({"data": FIRST}))
            with pytest.raises(ProtocolError, match=r"remote\.segment\.states\.done"):
                Client(server.url, KEY, settings=settings()).execute_segment({"a": 1})


def test_what_is_no_row_is_refused_in_every_format_and_wherever_rows_go(server, tmp_path):
    address = [row["address"] for row in FIRST]
    tables: dict[str, list[tuple[Any, Any]]] = {
        "a sum above the rows": [("TOTAL", "300"), *((one, "1") for one in address)],
        "a sum among the rows": [
            *((one, "1") for one in address),
            ("TOTAL", "9"),
            (address[0], "1"),
        ],
        "a remark below the rows": [*((one, "1") for one in address), ("and 15 more", "")],
        "a row without its address": [*((one, "1") for one in address), ("", "1")],
        "a remark below rows of names": [*((f"w{at}", "1") for at in range(9)), ("(9 more)", "")],
    }
    wrong = []
    for (name, rows), kind, to in product(
        tables.items(), ("csv", "json", "x-ndjson"), (None, "rows.csv", "rows.json", "rows.parquet")
    ):
        records = [{"wallet": str(one), "n": two} for one, two in rows]
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        table = "".join(f"{record['wallet']},{record['n']}\n" for record in records)
        bodies = {"csv": f"wallet,n\n{table}", "json": json.dumps(records), "x-ndjson": lines}
        answer = simply(
            bodies[kind].encode(),
            content_type="text/csv" if kind == "csv" else f"application/{kind}",
        )
        target = None if to is None else tmp_path / to
        found = outcome(
            server, {}, answer, lambda client, target=target: client.export_csv("abc", to=target)
        )
        wrong += [] if "rows may be missing" in found else [f"{name} {kind} {to}: {found}"]
    assert "\n".join(wrong) == ""


# ------------------------------------------------------------------ settings reach, and silence one name at a time


def test_a_sign_is_silenced_by_its_name_and_for_one_operation(server, settings):
    server.handler = serve(simply({"rows": FIRST, "has_more": True, "total": 25}))

    def rows(remote: dict[str, Any]) -> int:
        client = Client(server.url, KEY, settings=settings(remote=remote))
        return len(client.export_json("abc"))

    assert rows({"export": {"known": "has_more, total"}}) == 10
    for remote in (
        {"search": {"known": "has_more, total"}},
        {"export": {"known": "has_more"}},
        {"paths": {"total": "`null`"}, "export": {"known": "has_more"}},
    ):
        with pytest.raises(ProtocolError, match=r"%nbext set remote\.export\.known = "):
            rows(remote)


def test_a_name_that_a_path_has_in_quotes_is_known_by_the_line_that_a_note_advises(
    server, settings
):
    server.script("*", reply({"rows": FIRST, "record-marks": 57}))

    def notes(remote: dict[str, Any]) -> list[str]:
        client = Client(server.url, KEY, settings=settings(remote=remote))
        return client.export_json("abc").attrs["nbext"]["warnings"]

    (note,) = notes({})
    assert '`%nbext set remote.export.known = "record-marks"` says' in note
    assert notes({"export": {"known": "record-marks"}}) == []


def test_a_search_is_paged_in_its_query_and_by_links_that_want_the_post_again(server, settings):
    def spring(query: dict[str, str], request: Request) -> bytes:
        page = int(query.get("page", 0))
        return reply(
            {"content": part(page * 10), "number": page, "totalPages": 3, "last": page == 2}
        )

    def django(query: dict[str, str], request: Request) -> bytes:
        if request.method != "POST":
            return reply({"detail": 'Method "GET" not allowed.'}, 405)
        following = after(int(query.get("offset", 0)))
        url = None if following is None else f"{server.url}/v1/search?offset={following}"
        return reply({"count": 25, "next": url, "results": part(int(query.get("offset", 0)))})

    for style in (spring, django):
        server.handler = serve(style)
        table = Client(server.url, KEY, settings=settings()).search_nfts("ape", limit=100)
        assert table["address"].tolist() == [row["address"] for row in ROWS]


def test_an_address_of_the_description_itself_is_left_alone_where_the_settings_say_so(
    server, settings
):
    described = {**JOB, "url": "/v1/segment/seg-1"}
    server.script("POST /v1/segment/execute", reply(described))
    server.script("GET /v1/segment/seg-1", reply(described))
    server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
    client = Client(
        server.url, KEY, settings=settings(remote={"segment": {"paths": {"url": "null"}}})
    )
    assert len(client.execute_segment({"a": 1})) == 25


def test_an_empty_object_is_no_rows_where_the_settings_say_where_they_would_be(server, settings):
    server.script("*", reply({}))
    remote = {"search": {"paths": {"rows": "items"}}}
    assert len(Client(server.url, KEY, settings=settings(remote=remote)).search_nfts("ape")) == 0
    # A profile that comes with nbext says no such thing of this service.
    for other in ({}, {"profile": "moralis"}):
        with pytest.raises(ProtocolError):
            Client(server.url, KEY, settings=settings(remote=other)).search_nfts("ape")


def test_a_line_that_an_error_advises_undoes_none_that_was_set_before(server, settings):
    def advised(remote: dict[str, Any], call: Any) -> str:
        client = Client(server.url, KEY, settings=settings(remote=remote))
        with pytest.raises(ProtocolError) as caught:
            call(client)
        return re.findall(r'%nbext set remote\.[a-z.]+ = "([^"]*)"', str(caught.value))[-1]

    def export(client: Client) -> Any:
        return client.export_json("abc")

    server.handler = serve(simply({"rows": FIRST, "has_more": True, "total": 25}))
    first = advised({}, export)
    second = advised({"export": {"known": first}}, export)
    assert {first, second} == {"total", "total, has_more"}
    client = Client(server.url, KEY, settings=settings(remote={"export": {"known": second}}))
    assert len(export(client)) == 10

    words = iter(("half done", "quite done"))
    server.handler = lambda _request: reply({"id": "r", "status": word, "rows": ROWS})
    word, done = next(words), {}
    done = {"segment": {"states": {"done": advised({}, lambda one: one.execute_segment({"a": 1}))}}}
    word = next(words)
    both = advised(done, lambda client: client.execute_segment({"a": 1}))
    assert both == "half done, quite done"
    remote = {"segment": {"states": {"done": both}}}
    client = Client(server.url, KEY, settings=settings(remote=remote))
    assert len(client.execute_segment({"a": 1})) == 25
    # Of a search that is half done it says nothing.
    assert f"status = '{word}'" in client.search_nfts("ape").attrs["nbext"]["warnings"][0]


def test_a_note_comes_once_and_its_line_names_the_operation_that_read_the_answer(server, client):
    server.script("GET /v1/segment/abc", reply({"id": "abc", "status": "done"}))
    server.script("GET /v1/segment/abc/json", reply({"id": "abc", "odd": 7, "nextUri": "/v1/x"}))
    server.script("GET /v1/x", reply({"rows": ROWS}))
    (note,) = client.export_json("abc").attrs["nbext"]["warnings"]
    assert "odd = 7" in note
    assert '%nbext set remote.export.known = "odd"' in note


def test_whole_numbers_that_only_text_holds_are_noted(server, client):
    for digits, noted in ((76, False), (77, True)):
        rows = [{"address": row["address"], "n": 10 ** (digits - 1)} for row in FIRST[:3]]
        server.handler = serve(simply({"rows": rows}))
        for table in (
            client.export_json("abc"),
            client.execute_segment({"a": 1}),
            client.search_nfts("ape"),
        ):
            assert [str(value) for value in table["n"]] == [f"1{'0' * (digits - 1)}"] * 3
            notes = table.attrs["nbext"]["warnings"]
            assert len(notes) == noted
            assert all("more than 76 digits" in note for note in notes)


# ------------------------------------------------------------------ records and receipts

ASKED, OTHER = ROWS[1]["address"], "0x" + "cd" * 20
OTHERS: list[dict[str, Any]] = [
    {"asset_contract": {"address": OTHER}},
    {"contracts": [{"address": OTHER, "chain": "ethereum"}]},
    {"contracts": [{"address": OTHER, "chain": "ethereum"}, {"address": ASKED, "chain": "matic"}]},
    {"address": {"S": OTHER}},
    {"mint": OTHER},
    {"address": OTHER[2:]},
    {"token": {"contract": {"contract_address": OTHER}}},
    {"chain": {"id": 137}},
    {"chainId": "0x89"},
    {"chainId": "0137"},
    {"network": "matic-mainnet"},
    {"chain": "Polygon PoS"},
    {"id": f"POLYGON:{ASKED}"},
    {"chain_id": 424242},
    {"asset_contract": {"chain": "polygon"}},
    {"chains": ["polygon", "base"]},
    {"asset_platform_id": "polygon-pos"},
    {"tokenContract": OTHER},
    {"deployments": [{"chain": "polygon", "address": OTHER}]},
    {"erc20": {"address": OTHER}},
    {"info": {"contract_address": OTHER}},
    {"platforms": {"ethereum": OTHER, "polygon-pos": ASKED}},
    {"detail_platforms": {"Ethereum": {"contract_address": OTHER, "decimal_place": 6}}},
    *({f"token{name}": {"address": OTHER}} for name in ("Info", "_metadata", "Details")),
    {"primary_asset_contracts": [{"address": OTHER}]},
    {"platform": {"name": "Polygon", "token_address": OTHER}},
    {"contract_addresses": [OTHER]},
    {"addresses": {"ethereum": OTHER, "polygon": ASKED}},
    *({name: OTHER} for name in ("tokenContractAddress", "nft_address", "contractHash", "addr")),
    *({name: "polygon"} for name in ("network_name", "chain_slug", "chainKey", "networkUid")),
    {"evmChainId": 137},
    {"caip2": "eip155:137"},
    {"uid": f"eip155:137/erc20:{ASKED}"},
]
SAME: list[dict[str, Any]] = [
    {
        "asset_contract": {
            "address": ASKED.upper().replace("0X", "0x"),
            "chain_identifier": "ethereum",
        }
    },
    {"contracts": [{"address": OTHER, "chain": "matic"}, {"address": ASKED, "chain": "ethereum"}]},
    {"address": {"S": ASKED}, "chain": {"id": "0x1", "name": "Ethereum"}},
    {"id": f"ETHEREUM:{ASKED}", "network": "Ethereum Mainnet"},
    {"address": ASKED, "chains": ["ethereum", "polygon"], "implementation": OTHER},
    {"platforms": {"ethereum": ASKED, "polygon-pos": OTHER}},
    {"addresses": {"ethereum": ASKED, "polygon": OTHER}, "chainSymbol": "MATIC"},
    {"address": ASKED[2:], "network": "eth-mainnet", "owner": OTHER, "creator": {"address": OTHER}},
]


def test_a_record_answers_for_the_contract_that_was_asked_for(server, client):
    for record in OTHERS:
        server.script("*", reply({"name": "Dai", "symbol": "DAI", **record}))
        for look_up in (client.tokens, client.nfts):
            with pytest.raises(ProtocolError, match=r"asked for .* and answered for"):
                look_up("ethereum", ASKED)
    for record in SAME:
        server.script("*", reply({"name": "Dai", "symbol": "DAI", **record}))
        assert client.tokens("ethereum", ASKED)["symbol"].tolist() == ["DAI"]
    # A service may know chains that we do not.
    for record, address in ((SAME[-1], ASKED), ({"contracts": {"zora-test": OTHER}}, OTHER)):
        server.script("*", reply({"symbol": "DAI", **record, "network": "zora-test"}))
        assert client.tokens("zora-test", address)["symbol"].tolist() == ["DAI"]
    with pytest.raises(ProtocolError, match=f"asked for {ASKED}, and answered for {OTHER}"):
        client.tokens("zora-test", ASKED)


def test_a_record_that_says_how_old_it_is_is_noted_once(server, client):
    ages = iter(range(100))
    server.handler = lambda request: reply(
        {"symbol": "DAI", "stale": True, "meta": {"cached_at": f"2024-01-{next(ages)}"}}
    )
    table = client.tokens("ethereum", [row["address"] for row in FIRST])
    assert table.attrs["nbext"]["warnings"] == [
        "The data may be old: stale",
        "The data may be old: meta.cached_at",
    ]


def test_what_a_description_says_of_the_rows_is_not_lost_where_they_are_elsewhere(server, client):
    counted = [{"url": "/f1", "rows": 10}, {"url": "/f2", "rows": 15}]
    for said, words in (
        ({"truncated": True}, "says that its rows are not all: truncated"),
        ({"has_more": True}, "says that its rows are not all: has_more"),
        ({"size": 25}, "size = 25"),
        ({"nextPage": 2}, "says that its rows are not all: nextPage"),
        ({"page": 1, "pages": 3}, "says that its rows are not all: pages"),
        ({"notices": [{"text": "limited to ten"}]}, "limited to ten"),
        ({"warnings": [{"text": "limited to ten"}]}, "^limited to ten$"),
        ({"files": counted}, "states 25 rows, but 20 came"),
    ):
        server.script("POST /v1/segment/execute", reply({**JOB, **said}))
        server.script("GET /v1/segment/seg-1/json", reply({"rows": FIRST}))
        for path, rows in (("/f1", FIRST), ("/f2", ROWS[10:20])):
            server.script(f"GET {path}", reply(rows))
        try:
            found = "; ".join(client.execute_segment({"a": 1}).attrs["nbext"]["warnings"])
        except ProtocolError as error:
            found = str(error)
        assert words in (found, f"^{found}$")[words[0] == "^"]


def test_a_record_of_a_contract_that_is_not_indexed_yet_is_an_error(server, client):
    for said in (
        {"status": "pending"},
        {"indexed": False},
        {"data": {"name": None, "symbol": None, "status": "INDEXING"}},
        {"isIndexed": "false"},
        {"ready": False},
    ):
        server.script("*", reply({"address": ASKED, "symbol": None, **said}))
        for look_up in (client.tokens, client.nfts):
            with pytest.raises(ProtocolError, match="no record of that yet"):
                look_up("ethereum", ASKED)
    server.script("*", reply({"symbol": "DAI", "status": "active", "indexed": True}))
    found = client.tokens("ethereum", ASKED)
    assert (found["symbol"].tolist(), found.attrs["nbext"]["warnings"]) == (["DAI"], [])


def test_decimals_are_a_whole_number_or_noted(server, client):
    for decimals, read, notes in (
        ("0x12", 18, None),
        ("18", 18, None),
        (18.0, 18, None),
        (1.5, 1.5, "decimals is not a whole number"),
        (True, True, "decimals is not a whole number"),
        ("many", "many", "decimals is not a whole number"),
    ):
        for name in ("decimals", "contract_decimals"):
            server.script("*", reply({"symbol": "DAI", name: decimals}))
            found = client.tokens("ethereum", ASKED)
            is_ours = "decimals" in found
            assert found["decimals" if is_ours else name].tolist() == [read]
            said = "; ".join(found.attrs["nbext"]["warnings"])
            assert notes in said if notes and is_ours else said == ""
            assert is_ours or notes


def test_decimals_of_hits_are_whole_numbers_or_stay_as_they_came_in_every_format(server, client):
    notes = (
        "A value of decimals is not a whole number, or it or its sum has more than 76 digits: it is text, which "
        "sorts 9 after 10. .map(int) makes numbers of it."
    )
    for value, read, noted in (
        ("18", 18, None),
        ("", None, None),
        ("0x12", "0x12", notes),
        ("1.5", "1.5", notes),
        ("true", "true", notes),
        ("1e3", "1e3", notes),
        ("007", "007", notes),
    ):
        for answer in (
            table(f"address,decimals\n{OTHER},{value}\n".encode()),
            arrow([{"address": OTHER, "decimals": value}]),
        ):
            server.script("*", answer)
            found = client.search_nfts("ape")
            assert found["decimals"].astype(object).tolist() == [pd.NA if read is None else read]
            assert found.attrs["nbext"]["warnings"] == ([noted] if noted else [])


def test_digits_in_a_column_that_is_to_have_whole_numbers_are_such_in_every_format(
    server, settings
):
    told = Client(server.url, KEY, settings=settings(remote={"types": {"n": "integer"}}))
    for values, dtype in (
        (["5", "-7"], "int64"),
        (["5", None], "Int64"),
        ([None, None], "Int64"),
        ([5, None], "Int64"),
        (["5", str(2**63)], "decimal128(38, 0)[pyarrow]"),
        (["5", str(2**200)], "decimal256(76, 0)[pyarrow]"),
    ):
        rows = [{"address": ASKED, "n": values[0]}, {"address": OTHER, "n": values[1]}]
        text = csv_of(rows).replace(b"None", b"")
        # CSV with one beyond 64 bits is refused by its line.
        as_csv = [] if "decimal" in dtype else [table(text)]
        for answer in (reply({"rows": rows}), arrow(rows), *as_csv):
            server.script("*", answer)
            found = told.export_json("abc")
            assert str(found["n"].dtype) == dtype
            assert found["n"].dropna().map(int).tolist() == [
                int(n) for n in values if n is not None
            ]
            assert found["n"].sum() == sum(int(n) for n in values if n is not None)
            assert not [note for note in found.attrs["nbext"]["warnings"] if "whole" in note]
    for digits in ("007", "1" * 5_000):
        server.script("*", reply({"rows": [{"address": ASKED, "n": digits}]}))
        found = told.export_json("abc")
        assert found["n"].tolist() == [digits]
        assert "A value of n is not a whole number" in found.attrs["nbext"]["warnings"][0]


def test_a_column_of_nothing_is_of_its_type_in_json_and_in_arrow(server, settings):
    kinds = {
        "string": "str",
        "integer": "Int64",
        "uint256": "decimal128(38, 0)[pyarrow]",
        "number": "Float64",
        "boolean": "boolean",
        "object": "object",
    }
    rows = [{"address": one, **dict.fromkeys(kinds)} for one in (ASKED, OTHER)]
    told = Client(server.url, KEY, settings=settings(remote={"types": {n: n for n in kinds}}))
    for answer in (reply({"rows": rows}), arrow(rows)):
        server.script("*", answer)
        found = told.export_json("abc")
        assert found.dtypes.astype(str).to_dict() == {"address": "str", **kinds}
        assert found[list(kinds)].isna().all(axis=None)
        assert found.attrs["nbext"]["warnings"] == []


def test_a_poll_that_is_answered_for_another_segment_is_an_error(server, client, settings):
    server.script("POST /v1/segment/execute", reply({"id": "seg-1", "status": "running"}))
    server.script("GET /v1/segment/seg-1", reply({"id": "zzz", "status": "completed"}))
    server.script("GET /v1/segment/zzz/json", reply({"rows": FIRST}))
    for ask in (lambda one: one.execute_segment({"a": 1}), lambda one: one.segment("seg-1")):
        with pytest.raises(ProtocolError) as caught:
            ask(client)
        assert str(caught.value) == (
            "The service was asked for segment seg-1, and answered for zzz. "
            '`%nbext set remote.segment.known = "id"` says that it does not matter. '
            'If this is its id: `%nbext set remote.segment.paths.id = "id"`. '
            "`%nbext last-answer` shows the answer's fields and the lines of settings that read them."
        )
    told = Client(server.url, KEY, settings=settings(remote={"segment": {"known": "id"}}))
    assert len(told.execute_segment({"a": 1})) == 10
    # The id of a run beside the query's own, and an id as Google writes it.
    for body in ({"runId": "r-7", "queryId": "seg-1"}, {"name": "x", "id": "segments/seg-1"}):
        server.script("GET /v1/segment/seg-1", reply({**body, "status": "done", "rows": FIRST}))
        assert len(client.execute_segment({"a": 1})) == 10


def test_a_segment_is_answered_for_the_chain_that_was_asked_for(server, client):
    done = {"id": "seg-1", "status": "completed", "rows": FIRST}
    asked = {"a": 1, "chain": "ethereum"}
    begun = reply({"id": "seg-1", "status": "running"})
    others = (
        {"chain": "polygon"},
        {"network": {"id": 137}},
        {"chainId": "0x89"},
        {"chains": ["polygon", "base"]},
    )
    for said in others:
        answers = ({**done, **said}, {"data": {**done, **said}}, {**done, "meta": said})
        for answer in map(reply, answers):
            server.script("POST /v1/segment/execute", answer, begun)
            server.script("GET /v1/segment/seg-1", answer)
            for _ in range(2):
                with pytest.raises(ProtocolError) as caught:
                    client.execute_segment(asked)
                assert "was asked for chain ethereum, and answered for " in str(caught.value)
                assert "paths.id" not in str(caught.value)
            # The service decides what a segment is of that names no chain.
            server.script("POST /v1/segment/execute", answer)
            assert len(client.execute_segment({"a": 1})) == 10
    for same in (
        {"chain": "Ethereum"},
        {"network": {"id": 1, "name": "mainnet"}},
        {"chains": ["base", "ethereum"]},
        {"chain": "our own"},
    ):
        server.script("POST /v1/segment/execute", reply({**done, **same}))
        found = client.execute_segment(asked)
        assert (len(found), found.attrs["nbext"]["warnings"]) == (10, [])


def test_a_search_is_answered_for_the_words_and_the_chain_that_were_asked_for(server, client):
    hits = [{"name": "Ape", "address": OTHER}]
    for said in (
        {"query": "dog"},
        {"searchTerm": "bored dog"},
        {"meta": {"q": "apes"}},
        {"query": "grapefruit, bored"},
        {"chain": "polygon"},
        {"network": {"id": 137}},
        {"chains": ["polygon", "base"]},
        {"chainIdentifier": "matic"},
        {"asset_platform_id": "polygon-pos"},
    ):
        for rows in (hits, []):
            server.script("*", reply({"results": rows, **said}))
            with pytest.raises(ProtocolError, match=r"was asked for .*, and answered for"):
                client.search_nfts("Bored Ape", "ethereum")
    for said in (
        {"query": "bored%20ape"},
        {"searchTerm": " *BORED+APE*"},
        {"query": {"match": "name"}},
        {"query": "SELECT * FROM hits WHERE name LIKE '%bored ape%'"},
        {"q": "bored AND ape"},
        {"term": "Bored Ape Yacht Club"},
        {"query": 17},
        {"chain": 1, "query": None},
    ):
        server.script("*", reply({"results": hits, **said}))
        assert client.search_nfts("Bored Ape", "ethereum")["name"].tolist() == ["Ape"]


def test_a_list_of_one_around_a_job_or_a_table_is_no_row(server, client):
    job = {"id": "seg-1", "status": "running"}
    table = {"columns": ["n"], "values": [[one["n"]] for one in ROWS]}
    for begun in ([job], {"data": [job]}, {"result": {"data": [job]}}):
        server.script("POST /v1/segment/execute", reply(begun))
        server.script("GET /v1/segment/seg-1", reply([{**job, "status": "done"}]))
        server.script("GET /v1/segment/seg-1/json", reply({"results": [{"series": [table]}]}))
        assert client.execute_segment({"a": 1})["n"].tolist() == list(range(25))


def test_a_description_that_cannot_be_read_may_have_said_that_rows_are_missing(server, settings):
    client = Client(server.url, KEY, settings=settings(attempts=1))
    server.script("GET /v1/segment/abc/json", reply({"rows": FIRST}))
    for answer, said in (
        (reply(b'{"id": "abc", "rowCount": 25,'), "The answer is not JSON: "),
        (reply({"error": "backend down"}), "The service answered with an error: backend down"),
        (reply({"detail": "later"}, 503), "The service answered 503: later"),
        (reply({}, 404), None),
    ):
        server.script("GET /v1/segment/abc", answer)
        notes = client.export_json("abc").attrs["nbext"]["warnings"]
        assert len(notes) == (said is not None)
        whole = f"What the service says of the segment could not be read: {said}"
        assert all(note.startswith(whole) for note in notes)


def test_a_hit_that_lacks_the_address_and_has_fields_of_its_own_is_no_hit(server, client):
    hits = [{"address": row["address"], "name": f"n{row['n']}"} for row in FIRST[:3]]
    total = {"name": "sum", "total": 3}
    for rows in ([*hits, total], [total, *hits], [*hits[:2], total, hits[2]]):
        server.script("*", reply({"results": rows}))
        with pytest.raises(ProtocolError, match=r"Among the rows is .*sum"):
            client.search_nfts("n")
    owned = [{"id": str(row["n"]), "owner": row["address"]} for row in FIRST[:2]]
    for summed in ({"id": "sum", "n": 3}, {"id": None, "n": 3}, {"id": "all of them", "n": 3}):
        for rows in ([*owned, summed], [summed, *owned], [owned[0], summed, owned[1]]):
            server.script("*", reply({"results": rows}))
            with pytest.raises(ProtocolError, match="Among the rows is "):
                client.search_nfts("n")
    for remark in ("and 15 more", "TOTAL"):
        other = {"address": remark, "name": ""}
        for rows in ([*hits, other], [other, *hits], [*hits[:2], other, hits[2]]):
            for answer in (reply({"results": rows}), arrow(rows)):
                server.script("*", answer)
                with pytest.raises(ProtocolError, match=f"Among the rows is '{remark}'"):
                    client.search_nfts("n")
    # One that has an id of its own, wherever it is.
    noted = {"id": "9", "note": "x"}
    for rows in ([*owned, noted], [noted, *owned], [owned[0], noted, owned[1]]):
        server.script("*", reply({"results": rows}))
        found = client.search_nfts("n")
        assert found["id"].tolist() == [row["id"] for row in rows]
        assert found["owner"].isna().tolist() == [row is noted for row in rows]
    # One whose address is not known, and one of another chain.
    for last in (
        {"name": "n4"},
        {"address": "So11111111111111111111111111111111111111112", "mint": 1},
    ):
        server.script("*", reply({"results": [*hits, last]}))
        assert len(client.search_nfts("n")) == 4


def test_an_id_is_the_one_of_the_path_and_the_same_in_other_case_or_with_zeros(
    server, client, settings
):
    def told(paths: dict[str, str]) -> Client:
        return Client(server.url, KEY, settings=settings(remote={"segment": {"paths": paths}}))

    path = told({"id": "run"})
    for one, begun, ended in (
        (path, {"id": "req-1", "run": "e1"}, {"id": "req-2", "run": "e1"}),
        (client, {"id": "AB1"}, {"id": "ab1"}),
        (client, {"id": 7}, {"id": "007"}),
        (client, {"id": "007"}, {"name": "operations/7", "id": "operations/7"}),
    ):
        server.scripts.clear()
        server.script("POST /v1/segment/execute", reply({**begun, "status": "running"}, 202))
        server.script("*", reply({**ended, "status": "completed", "rows": FIRST}))
        assert len(one.execute_segment({"a": 1})) == 10
    server.scripts.clear()
    server.script(
        "POST /v1/segment/execute", reply({"id": 7, "run": "e1", "status": "running"}, 202)
    )
    server.script("*", reply({"id": 7, "run": "e2", "status": "completed", "rows": FIRST}))
    with pytest.raises(ProtocolError, match="asked for segment e1, and answered for e2"):
        path.execute_segment({"a": 1})


@pytest.mark.parametrize("roles", [["id"], ["status"], ["id", "status"]])
def test_a_path_to_the_whole_answer_is_its_id_or_its_status_where_that_is_one_word(
    server, settings, roles
):
    words = iter(["running", "completed"])

    def answer(request: Request) -> bytes:
        if request.method == "POST":
            return reply("seg-1", 202)
        return reply(
            {"/v1/segment/seg-1": lambda: next(words), "/v1/segment/seg-1/json": lambda: FIRST}[
                urlsplit(request.path).path
            ]()
        )

    server.handler = answer
    remote = {"segment": {"paths": dict.fromkeys(roles, "@")}}
    told = Client(server.url, KEY, settings=settings(remote=remote))
    assert told.execute_segment({"a": 1})["address"].tolist() == [row["address"] for row in FIRST]


@pytest.mark.parametrize(
    "said", [{"status": "pending"}, {"status": "cancelled"}, {"indexed": False}]
)
def test_a_record_whose_state_is_the_contracts_is_read_with_the_line_of_its_error(
    server, client, settings, said
):
    server.script("*", reply({"symbol": "DAI", **said}))
    line = '`%nbext set remote.token.paths.status = "null"`'
    with pytest.raises(NbextError) as caught:
        client.tokens("ethereum", ASKED)
    assert line in str(caught.value)
    told = Client(
        server.url, KEY, settings=settings(remote={"token": {"paths": {"status": "null"}}})
    )
    assert told.tokens("ethereum", ASKED)["symbol"].tolist() == ["DAI"]


def test_rows_that_move_or_pages_that_refuse_row_2_are_no_sign_of_counted_pages(server, settings):
    new, asked = {"address": OTHER, "n": 9}, []

    def moved(query: dict[str, str], _request: Request) -> bytes:
        asked.append(start := int(query.get("offset", 0)))
        rows = MANY if len(asked) < 3 else [new, *MANY]
        return reply({"rows": rows[start : start + 10]})

    def refused(query: dict[str, str], _request: Request) -> bytes:
        start = int(query.get("offset", 0))
        html = reply(b"<html>a multiple of 10</html>", content_type="text/html")
        return html if start % 10 else reply({"rows": MANY[start : start + 10]})

    told = Client(server.url, KEY, settings=settings(remote={"paging": {"style": "offset"}}))
    for style, rows in ((moved, 41), (refused, 40)):
        server.handler = serve(style)
        assert len(told.export_json("abc")) == rows


def test_a_column_that_comes_and_goes_is_noted_once(server, client):
    rows = [{**row, **({"ens": "a.eth"} if row["n"] % 2 else {})} for row in FIRST]
    server.handler = serve(
        lambda query, _request: reply(
            {
                "rows": rows[(page := int(query.get("page", 1))) - 1 : page],
                "page": page,
                "pages": 10,
            }
        )
    )
    notes = client.export_json("abc").attrs["nbext"]["warnings"]
    assert notes == ["After 1 rows the column 'ens' comes first."]


@pytest.mark.parametrize("nothing", [0, 0.0, "0.0", "ok", "OK", "no", "N/A", "false", "", None])
def test_a_value_that_says_that_there_is_no_error_is_none(server, client, nothing):
    server.script("*", reply({"rows": [{**row, "error": nothing} for row in FIRST]}))
    assert client.export_json("abc").attrs["nbext"]["warnings"] == []


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("first", [0, 1])
def test_pages_that_are_asked_for_by_rows_where_the_service_counts_pages_are_an_error(
    server, settings, first, size, tmp_path
):
    def paged(query: dict[str, str], request: Request) -> bytes:
        start = size * (int(query.get("p", first)) - first)
        rows = MANY[start : start + size]
        return (
            table(csv_of(rows) if rows else b"address,n\n")
            if "csv" in request.path
            else reply({"rows": rows})
        )

    server.handler = serve(paged)
    lines = {"style": "offset", "parameter": "p"}
    wrong = Client(server.url, KEY, settings=settings(remote={"paging": lines}))
    right = Client(
        server.url, KEY, settings=settings(remote={"paging": {**lines, "style": "page"}})
    )
    for name, to in product(("export_json", "export_csv"), (None, tmp_path / "rows.csv")):
        with pytest.raises(ProtocolError, match="p seems to count pages, and not rows"):
            getattr(wrong, name)("abc", to=to)
    if first:
        assert len(right.export_json("abc")) == 40


def test_an_object_without_a_field_of_a_contract_is_no_record(server, client):
    for body, status in (
        ({"status": "indexing"}, 202),
        ({"status": "indexing"}, 200),
        ({"data": None}, 200),
        ({"jsonrpc": "2.0", "id": 1, "result": None}, 200),
        ({"success": True}, 200),
        ({"found": False, "address": ASKED}, 200),
    ):
        server.script("*", reply(body, status))
        for look_up in (client.tokens, client.nfts):
            with pytest.raises((ProtocolError, NotFound)):
                look_up("ethereum", ASKED)


def test_a_sign_up_that_was_not_taken_is_an_error(server, client):
    for body, kind in (
        ({"accepted": False}, None),
        ({"subscribed": False}, None),
        ({"rejected": ["a@example.com"], "accepted": []}, None),
        ({"subscribed": "false"}, None),
        ({"accepted": 0}, None),
        ({"accepted": []}, None),
        ({"failed": 1}, None),
        ({"queued": False}, None),
        ({"blocked": True}, None),
        ({"result": "denied"}, None),
        ([{"status": "rejected", "email": "a@example.com"}], None),
        ({"data": {"subscribe": {"success": False}}}, None),
        ({"data": {"subscribe": {"errors": [{"message": "no"}]}}}, None),
        ({"data": [{"accepted": False}]}, None),
        ({"results": [{"status": "rejected", "email": "a@example.com"}]}, None),
        ({"skipped": ["a@example.com"]}, None),
        (0, None),
        (b"Email invalid", "text/plain"),
        (b"Too many requests", "text/plain"),
        (b"maintenance", "text/plain"),
        (b'"KO"', "application/json"),
        (b"<html><title>Just a moment...</title><body>Checking your browser", "text/html"),
        (b"<html><title>Welcome</title><body><div class='g-recaptcha'></div>", "text/html"),
    ):
        answer = reply(body, content_type=kind) if kind else reply(body)
        server.script("*", answer)
        with pytest.raises((ApiError, ProtocolError)):
            client.sign_up("a@example.com")


def test_a_receipt_for_another_address_may_have_been_taken_and_names_the_key_it_was_sent_with(
    server, client
):
    for body in (
        {"status": "subscribed", "email": "b@example.com"},
        {"data": {"email_address": "b@example.com"}},
        {"contacts": [{"email": "b@example.com"}]},
    ):
        server.script("*", reply(body))
        with pytest.raises(OutcomeUnknown) as caught:
            client.sign_up("a@example.com")
        assert str(caught.value) == (
            "The service signed up 'b@example.com' instead of 'a@example.com'. nbext did not send it again."
        )
        assert caught.value.idempotency_key == server.requests[-1].headers["idempotency-key"]


def test_what_became_of_a_sign_up_may_be_in_a_header_that_the_settings_name(server, settings):
    server.script("*", reply({"id": "7"}, X_State="failed"))
    remote = {"signup": {"paths": {"status": "header:X-State"}}}
    with pytest.raises(ApiError, match="its status is failed"):
        Client(server.url, KEY, settings=settings(remote=remote)).sign_up("a@example.com")


def test_a_receipt_that_nobody_understands_is_noted(server, client):
    for body, words in (
        ({"message": "Email already exists"}, "The service says: Email already exists"),
        ({"code": 1, "detail": "no luck"}, "The service says: no luck"),
    ):
        server.script("*", reply(body))
        assert client.sign_up("a@example.com").attrs["nbext"]["warnings"] == [words]


def test_the_words_of_an_error_are_not_the_rows_beside_it(server, client):
    server.script("*", reply({"ok": False, "rows": FIRST}))
    with pytest.raises(ApiError) as caught:
        client.search_nfts("ape")
    assert "0x0" not in str(caught.value)


def test_the_service_s_own_time_of_the_data_is_where_the_table_is_from(server, client, tmp_path):
    server.script(
        "GET /v1/segment/abc", reply({**JOB, "id": "abc", "as_of": "2024-05-01T00:00:00Z"})
    )
    server.script("GET /v1/segment/abc/json", reply({"rows": ROWS}))
    told = reply({"rows": ROWS, "meta": {"asOf": "2024-06-01"}})

    def as_of(table: pd.DataFrame) -> str:
        return table.attrs["nbext"]["as_of"]["timestamp"]

    def executed(answer: bytes) -> str:
        server.script("POST /v1/segment/execute", answer)
        return as_of(client.execute_segment({"a": 1}))

    assert as_of(client.export_json("abc")) == "2024-05-01T00:00:00Z"
    # Also where the rows' own answer says it.
    server.script("GET /v1/segment/abc/json", told)
    server.script("POST /v1/search", told)
    assert as_of(client.export_json("abc")) == "2024-06-01"
    assert as_of(client.export_json("abc", to=tmp_path / "rows.csv")) == "2024-06-01"
    assert as_of(client.search_nfts("ape")) == "2024-06-01"
    assert executed(reply({"id": "abc", "status": "done"})) == "2024-06-01"
    assert executed(told) == "2024-06-01"


def test_the_line_that_an_error_advises_is_one_that_helps(server, settings):
    about = {"metadata": {"progressPercent": 40}, "startDate": "2024-05-01", "auftrag": "T-9"}
    server.script("POST /v1/segment/execute", reply({**about, "status": "queued"}))
    client = Client(server.url, KEY, settings=settings())
    with pytest.raises(
        ProtocolError, match=r"set remote\.segment\.paths\.id = \"auftrag\""
    ) as caught:
        client.execute_segment({"a": 1})
    assert "progressPercent" not in str(caught.value)
    server.handler = serve(simply({"rows": FIRST, "next_cursor": "cur10"}))
    with pytest.raises(ProtocolError, match=r"remote\.export\.paging\.parameter") as caught:
        client.export_json("abc")
    assert "paging.style" not in str(caught.value)
    server.handler = serve(simply({"rows": FIRST, "record-count": 10}))
    assert client.export_json("abc").attrs["nbext"]["warnings"] == []


def test_numbers_that_only_look_like_a_status_say_nothing(server, client):
    rows = [{"address": f"0x{n:040x}"} for n in range(206)]
    for beside in ({"total": 206}, {"code": 600, "message": "rows of 600 blocks"}):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply({"rows": rows, **beside}))
        table = client.export_json("abc")
        assert (len(table), table.attrs["nbext"].get("truncated")) == (206, False), beside


def test_an_answer_without_a_table_that_says_when_to_come_again_is_not_the_result(server, client):
    for early in ({}, {"note": "soon"}, {"rows": []}):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply(early, Retry_After="0"), reply({"rows": ROWS}))
        assert len(client.export_json("abc")) == len(ROWS), early


def test_a_list_beside_the_rows_says_something_of_them_where_it_is_short_and_of_plain_values(
    server, client
):
    found = []
    for beside in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], []):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply({"rows": ROWS, "blob": beside}))
        warnings = client.export_json("abc").attrs["nbext"].get("warnings", [])
        found.append(any("blob" in one for one in warnings))
    assert found == [True, False, False]


def test_a_page_that_is_shorter_than_its_size_or_than_the_one_before_is_the_last(server, client):
    for sizes, said in (([4], {"per_page": 10}), ([10, 4], {"per_page": 10}), ([10, 4], {})):
        bodies = [
            {"rows": ROWS[:size], "page": number, **said} for number, size in enumerate(sizes, 1)
        ]
        bodies[-1]["rows"] = ROWS[10 : 10 + sizes[-1]]
        asked = list[int]()

        def answer(request, bodies=bodies, asked=asked):
            if "/json" not in request.path:
                return reply({}, 404)
            number = int(parse_qs(urlsplit(request.path).query).get("page", ["1"])[0])
            asked.append(number)
            return reply(bodies[number - 1] if number <= len(bodies) else {}, 200)

        server.handler = answer
        assert len(client.export_json("abc")) == sum(sizes), (sizes, said)
        assert asked == list(range(1, len(sizes) + 1)), (sizes, said)


def test_an_empty_answer_that_says_where_to_ask_is_of_a_job_that_runs(server, client):
    server.script("POST /v1/segment/execute", reply(b"", 201, Location="/v1/jobs/7"))
    running = reply({"status": "running"}, Retry_After="0")
    server.script("GET /v1/jobs/7", running, reply({"status": "done", "rows": ROWS}))
    assert len(client.execute_segment({"a": 1})) == len(ROWS)


def test_a_total_of_something_else_says_nothing_of_the_rows(server, client):
    for beside in (
        {"seller": {"stats": {"total": 99}}},
        {"seller": {"pagination": {"has_more": True}}},
    ):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply({"rows": ROWS, **beside}))
        assert len(client.export_json("abc")) == len(ROWS), beside


def test_pages_may_be_of_another_format_than_what_says_where_they_are(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script(
        "GET /v1/segment/abc/csv", reply({"id": "abc", "nextUri": f"{server.url}/v1/rows"})
    )
    server.script("GET /v1/rows", reply(csv_of(ROWS), content_type="text/csv"))
    assert client.export_csv("abc")["address"].tolist() == [row["address"] for row in ROWS]


def test_a_row_with_an_address_is_no_remark_on_the_others_whatever_its_fields(server, client):
    other = {"wallet": f"0x{99:040x}", "m": 3}
    for rows in ([*ROWS, other], [other, *ROWS]):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply({"rows": rows}))
        table = client.export_json("abc")
        found = [row.get("address", row.get("wallet")) for row in rows]
        assert table["address"].fillna(table["wallet"]).tolist() == found
        assert table["m"].count() == 1
    for remark in ({"remaining": 15}, {"next_cursor": other["wallet"]}):
        server.scripts.clear()
        server.script("GET /v1/segment/abc", reply({}, 404))
        server.script("*", reply({"rows": [*ROWS, remark]}))
        with pytest.raises(ProtocolError):
            client.export_json("abc")


def test_no_rows_beside_a_sign_of_more_that_nobody_can_ask_for_are_an_error(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("*", reply({"rows": [], "has_more": True}))
    with pytest.raises(ProtocolError, match=r"remote\.export\."):
        client.export_json("abc")


def test_a_job_whose_result_is_not_there_yet_is_no_error_whatever_its_message(server, client):
    described = {"id": "abc", "result": None, "message": "accepted"}
    server.script("POST /v1/segment/execute", reply(described, 202))
    server.script("GET /v1/segment/abc", reply({"id": "abc", "status": "done"}))
    server.script("GET /v1/segment/abc/json", reply({"rows": ROWS}))
    assert len(client.execute_segment({"a": 1})) == len(ROWS)


# ------------------------------------------------------------------ what no vendor was seen to send


def arrow(rows: list[dict[str, Any]], *, packed: bool = False, **metadata: str) -> bytes:
    """An Arrow stream with metadata of its own; ``packed``: its texts are a dictionary and places in that."""
    table = pa.Table.from_pylist(rows).replace_schema_metadata(metadata)
    if packed:
        table = table.set_column(0, "address", table["address"].dictionary_encode())
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return reply(sink.getvalue(), content_type=ARROW_TYPE)


def table(body: bytes = csv_of(FIRST), **headers: str) -> bytes:
    return reply(body, content_type="text/csv", **headers)


def moving(page: int) -> list[dict[str, Any]]:
    """Page 2 has wallets of page 1 again, in capitals, whose balances have grown; as many others are on no page."""
    again = [
        {"address": f"0x{row['address'][2:].upper()}", "n": row["n"] + 100} for row in ROWS[10:15]
    ]
    return {1: ROWS[5:15], 2: [*again, *ROWS[15:20]], 3: ROWS[20:25]}.get(page, [])


def by_page(answer: Any) -> Any:
    return lambda request: answer(int(parse_qs(urlsplit(request.path).query).get("page", ["1"])[0]))


RANKS = [{"rank": rank, "n": rank} for rank in range(1, 11)]
REST = [row["address"] for row in ROWS[10:]]
MANY = [{"address": f"0x{n:040x}", "n": n} for n in range(40)]
AGAIN = "5 rows came twice"
# The format, the answer, or what answers a request, and the words of the error or of the note.
UNWRITTEN: dict[str, tuple[str, Any, str]] = {
    "the other wallets in a list beside the rows": ("json", {"rows": FIRST, "overflow": REST}, "overflow = ["),
    "a list of what is more": ("json", {"rows": FIRST, "more": REST}, "more = ["),
    "a remark between rows without addresses": ("json", {"rows": [*RANKS[:5], {"skipped": 15}, *RANKS]}, "skipped"),
    "a row of nothing": ("json", {"rows": [*RANKS[:5], {}, *RANKS[5:]]}, "Among the rows is '{}'"),
    "more, in Arrow's metadata": ("csv", arrow(FIRST, has_more="true"), "has_more"),
    "a total in Arrow's metadata": ("csv", arrow(FIRST, total_rows="25"), "states 25 rows"),
    "a remark in a dictionary of Arrow": ("csv", arrow([*MANY, {"address": "15 more rows", "n": 0}, *MANY], packed=True), "15 more rows"),
    "wallets that moved from page to page": ("json", by_page(lambda page: reply({"rows": moving(page), "page": page, "limit": 10, "total": 25})), AGAIN),
    "wallets twice on one page": ("json", {"rows": [*FIRST[:5], *FIRST[:5]], "total": 10}, AGAIN),
    "a row that comes again, alone on its page": ("json", by_page(lambda page: reply({"rows": FIRST[:9] if page == 1 else FIRST[8:9], "page": page, "pages": 2})), "1 rows came twice"),
    "a remark beside an address, early in a table": ("csv", table(b"address,delegate,n\n" + b"".join(f"0x{n:040x},,{n}\n".encode() for n in range(1, 9)) + b"error," + b"0x" + b"a" * 40 + b",9\n" + f"0x{10:040x},,10\n".encode()), "Among the rows is 'error'"),
    "another segment's rows": ("json", {"segment_id": "zzz", "rows": FIRST}, "asked for segment abc, and answered for zzz"),
    "another segment's rows, in a header": ("csv", table(X_Segment_Id="zzz"), "asked for segment abc, and answered for zzz"),
    "another segment's records, in a header": ("json", reply({"rows": FIRST}, X_Segment_Id="zzz"), "answered for zzz"),
    "another segment's rows, in Arrow's metadata": ("csv", arrow(FIRST, segment_id="zzz"), "answered for zzz"),
    "another segment's page": ("json", by_page(lambda page: reply({"rows": ROWS[10 * page - 10 : 10 * page], "page": page, "pages": 3, "segmentId": "abc" if page == 1 else "zzz"})), "answered for zzz"),
    "an error in the last row": ("csv", table(b"address,n,error\n" + b"".join(f"{row['address']},1,{'timeout' if row is FIRST[-1] else ''}\n".encode() for row in FIRST)), "A row has an error, in error"),
    "an error in a record": ("json", {"rows": [{**row, "error": "timeout" if row is FIRST[5] else None} for row in FIRST]}, "A row has an error, in error"),
    "an error in a row of Arrow": ("csv", arrow([{**row, "Error_Message": "timeout" if row is FIRST[5] else None} for row in FIRST]), "A row has an error, in Error_Message"),
    "shortened addresses": ("csv", table(csv_of([{**row, "address": f"0x12...{row['n']:04x}"} for row in FIRST])), "Among the rows is '0x12...0000'"),
    "shortened addresses in records": ("json", {"rows": [{**row, "address": f"0x12…{row['n']:04x}"} for row in FIRST]}, "a shortened address"),
    "shortened addresses in Arrow": ("csv", arrow([{**row, "address": f"0x12****{row['n']:04x}"} for row in FIRST]), "a shortened address"),
    "a shortened address among others": ("csv", table(csv_of([{**row, "address": "0x12...ab"} if row["n"] == 5 else row for row in FIRST])), "Among the rows is '0x12...ab'"),
    "a column that is missing on page 2": ("json", by_page(lambda page: reply({"rows": [{"address": row["address"], **({"n": 1} if page == 1 else {})} for row in ROWS[10 * page - 10 : 10 * page]], "page": page, "pages": 3})), "After 10 rows the column 'n' is missing"),
    "a column that is missing on page 1": ("json", by_page(lambda page: reply({"rows": [{"address": row["address"], **({"n": 1} if page > 1 else {})} for row in ROWS[10 * page - 10 : 10 * page]], "page": page, "pages": 3})), "After 10 rows the column 'n' comes first"),
    "another name on page 2": ("json", by_page(lambda page: reply({"rows": [{"address": row["address"], "n" if page == 1 else "balance": 1} for row in ROWS[10 * page - 10 : 10 * page]], "page": page, "pages": 3})), "'n' is called 'balance'"),
    "a last page that is empty": ("json", by_page(lambda page: reply({"rows": ROWS[10 * page - 10 : 10 * page] if page < 3 else [], "page": page, "total_pages": 3})), "states 3 pages, and says after 2"),
    "answers of which some failed": ("json", reply({"rows": FIRST}, 207), "207"),
    "a difference": ("json", reply({"rows": FIRST}, 226), "226"),
    "more beside what a call costs": ("json", {"rows": FIRST, "usage": {"truncated": True}}, "usage.truncated = true"),
    "a page in a title": ("json", {"rows": FIRST, "title": "Wallets (page 1)"}, "title = "),
    "one of three in a label": ("json", {"rows": FIRST, "label": "1/3"}, "label = '1/3'"),
    "a sample, in a header": ("csv", table(X_Sampled="0.4"), "sampled = '0.4'"),
    "a part, in a header": ("csv", table(X_Export_Status="partial"), "'partial'"),
    "where it was cut, in a header": ("csv", table(X_Truncated_At="10"), "'10'"),
    "a query that runs, in a header": ("csv", table(X_Query_State="RUNNING"), "'RUNNING'"),
    "a page's size, in a header": ("csv", table(X_Per_Page="10"), "exactly the 10 rows"),
    "the most rows, in a header": ("csv", table(X_Row_Limit="10"), "exactly the 10 rows"),
    "a file that is named as a part": ("csv", table(Content_Disposition='attachment; filename="wallets.partial.csv"'), "'partial'"),
    "a file that is named by its rows": ("csv", table(Content_Disposition='attachment; filename="wallets_1-10_of_25.csv"'), "The same page came twice"),
    "a state that follows the body": ("csv", table(Trailer="X-Stream-Status"), "'X-Stream-Status'"),
    "a second header in other case": ("csv", table(b"rank,n\n1,2\n2,3\nRank,N\n1,5\n"), "Among the rows is 'Rank'"),
}  # fmt: skip


def test_what_nobody_was_seen_to_send_comes_with_a_word_in_memory_and_in_a_file(
    server, client, tmp_path
):
    wrong = {}
    for name, (kind, answer, words) in UNWRITTEN.items():
        body = reply(answer) if isinstance(answer, dict) else answer
        server.handler = lambda request, body=body: (
            (body(request) if callable(body) else body)
            if request.path.startswith("/v1/segment/abc/")
            else reply({}, 404)
        )
        for to in (None, tmp_path / "rows.parquet"):
            export = client.export_json if kind == "json" else client.export_csv
            try:
                said = "; ".join(export("abc", to=to, overwrite=True).attrs["nbext"]["warnings"])
            except NbextError as error:
                said = str(error)
            if words not in said:
                wrong[name, to] = said
    assert wrong == {}


def test_a_segment_that_the_service_calls_otherwise_is_known_by_the_line_that_the_error_advises(
    server, client, settings
):
    server.script("GET /v1/segment/whales", reply({}, 404))
    server.script("GET /v1/segment/whales/json", reply({"segment_id": "sg_7", "rows": FIRST}))
    with pytest.raises(ProtocolError) as caught:
        client.export_json("whales")
    assert str(caught.value).startswith(
        "The service was asked for segment whales, and answered for sg_7. "
        '`%nbext set remote.export.known = "segment_id"` says that it does not matter.'
    )
    told = Client(
        server.url, KEY, settings=settings(remote={"export": {"known": "segment_id"}})
    ).export_json("whales")
    assert (len(told), told.attrs["nbext"]["warnings"]) == (10, [])


@pytest.mark.parametrize("named", ["sg_1", None])
def test_rows_that_execute_answers_at_once_are_no_other_segments(server, client, named):
    body = {"segmentId": named, "rows": ROWS, "total": 25}
    server.script("POST /v1/segment/execute", reply(body))
    found = client.execute_segment({"token": {"token": "UNI"}}, limit="all")
    assert (len(found), len(server.requests)) == (25, 1)


HARMLESS = {
    "X_B3_Sampled": "1",
    "X_Shopify_Shop_Api_Call_Limit": "32/40",
    "X_RateLimit_Limit": "25",
    "Trailer": "Server-Timing",
    "Content_Disposition": 'attachment; filename="wallets.csv"',
}


def test_what_headers_say_of_other_things_is_no_note(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/csv", table(csv_of(ROWS), **HARMLESS))
    found = client.export_csv("abc")
    assert (len(found), found.attrs["nbext"]["warnings"]) == (25, [])


@pytest.mark.parametrize("path", ["payload[0].owners", "payload.owners"])
def test_a_path_into_a_list_of_one_leads_there(server, settings, path):
    owners = [row["address"] for row in ROWS]
    body = {"payload": [{"owners": owners, "total": 25, "limit": 50}]}
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/json", reply(body))
    client = Client(server.url, KEY, settings=settings(remote={"paths": {"rows": path}}))
    assert client.export_json("abc")["address"].tolist() == owners


@pytest.mark.parametrize(
    ("asked", "said", "is_other"),
    [("dQw4w9", "DQW4w9", True), ("0", "7", True), ("00ab", "ab", True), ("ab-01", "AB-01", False)],
)
def test_an_id_is_the_same_in_other_letters_where_it_is_hexadecimal_alone(
    server, client, asked, said, is_other
):
    server.script("POST /v1/segment/execute", reply({"id": asked, "status": "running"}, 202))
    server.script("*", reply({"id": said, "status": "completed", "rows": FIRST}))
    if is_other:
        with pytest.raises(ProtocolError, match=f"asked for segment {asked}"):
            client.execute_segment({"a": 1})
    else:
        assert len(client.execute_segment({"a": 1})) == 10
