"""Answers in shapes that vendors document, each of 25 rows in pages, lists or files: read right, asked about, or noted."""

# A row of a table stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from nbext.errors import AmbiguousAnswer, ApiError, ProtocolError
from tests.client.faultserver import Request, reply
from tests.client.remote.test_never_a_part import (
    FIRST,
    JOB,
    ROWS,
    SIZE,
    Style,
    after,
    case,
    counted,
    csv_of,
    cursor,
    link,
    numbered,
    part,
    serve,
    simply,
)

ADDRESSES = [row["address"] for row in ROWS]
COLUMNS = [{"name": "address", "type": "varchar"}, {"name": "n", "type": "bigint"}]


def lists(rows: list[Any]) -> list[list[str]]:
    return [[row["address"], str(row["n"])] for row in rows]


def at(start: str, prefix: str = "cur") -> int:
    return int(start.removeprefix(prefix) or 0)


def stepped(parameter: str, body: Any, *, header: str = "") -> Style:
    """Page by a cursor whose answer depends on where its page begins, or whose cursor is in a header."""

    def answer(query: dict[str, str], _request: Request) -> bytes:
        start = at(query.get(parameter, ""))
        following = after(start)
        more = {header: f"cur{following}"} if header and following else {}
        return reply(body(start, None if following is None else f"cur{following}"), **more)

    return answer


def files(body: Any, csv: bool = False) -> Style:
    """An answer that lists three files, which hold the rows."""

    def answer(_query: dict[str, str], request: Request) -> bytes:
        if request.path.startswith("/files/"):
            rows = part(int(request.path.partition("?")[0][-1]) * SIZE)
            return reply(csv_of(rows), content_type="text/csv") if csv else reply(rows)
        return reply(body([f"/files/{number}?signature=1" for number in range(3)]))

    return answer


def divided(number: int) -> dict[str, Any]:
    """One chunk of a Databricks statement; the first answer has the columns beside it."""
    following = after(number * SIZE)
    return {
        "chunk_index": number,
        "row_offset": number * SIZE,
        "row_count": len(part(number * SIZE)),
        "data_array": lists(part(number * SIZE)),
        **(
            {
                "next_chunk_index": number + 1,
                "next_chunk_internal_link": f"/v1/segment/abc/json?chunk={number + 1}",
            }
            if following
            else {}
        ),
    }


MANIFEST = {
    "format": "JSON_ARRAY",
    "schema": {"column_count": 2, "columns": COLUMNS},
    "total_row_count": 25,
    "truncated": False,
    "chunks": [{"chunk_index": 0, "row_offset": 0, "row_count": 25}],
}
SNOWFLAKE = {
    "resultSetMetaData": {
        "numRows": 25,
        "partitionInfo": [{"rowCount": 25, "uncompressedSize": 1}],
        "rowType": COLUMNS,
    },
    "code": "090001",
    "statementHandle": "s-1",
    "message": "Statement executed successfully.",
}
CLICKHOUSE = {
    "meta": [{"name": "address", "type": "String"}, {"name": "n", "type": "UInt64"}],
    "statistics": {"elapsed": 0.1, "rows_read": 90},
}


def trino(query: dict[str, str], request: Request) -> bytes:
    token = int(query.get("token", 0))
    following = (
        {"nextUri": f"http://{request.headers['host']}/v1/segment/abc/json?token={token + 1}"}
        if token < 3
        else {}
    )
    rows = {"columns": COLUMNS, "data": lists(part((token - 1) * SIZE))} if token else {}
    return reply(
        {
            "id": "q",
            "infoUri": "http://x/ui",
            **following,
            **rows,
            "stats": {"state": "RUNNING" if following else "FINISHED"},
        }
    )


COMPLETE: dict[str, Style] = {
    "BigQuery": cursor(
        "pageToken",
        lambda rows, at: {
            "schema": {"fields": COLUMNS},
            "jobComplete": True,
            "totalRows": "25",
            **({"pageToken": at} if at else {}),
            "rows": [{"f": [{"v": cell} for cell in row]} for row in lists(rows)],
        },
    ),
    "Athena": stepped(
        "NextToken",
        lambda start, at: {
            "ResultSet": {
                "Rows": [
                    {"Data": [{"VarCharValue": cell} for cell in row]}
                    for row in ([] if start else [["address", "n"]]) + lists(part(start))
                ],
                "ResultSetMetadata": {"ColumnInfo": [{"Name": "address"}, {"Name": "n"}]},
            },
            **({"NextToken": at} if at else {}),
        },
    ),
    "Snowflake": simply({**SNOWFLAKE, "data": lists(ROWS)}),
    "Databricks, one chunk": simply(
        {
            "statement_id": "abc",
            "status": {"state": "SUCCEEDED"},
            "manifest": MANIFEST,
            "result": {"row_count": 25, "row_offset": 0, "data_array": lists(ROWS)},
        }
    ),
    "Databricks, chunks": lambda query, _request: reply(
        divided(int(query["chunk"]))
        if "chunk" in query
        else {
            "statement_id": "abc",
            "status": {"state": "SUCCEEDED"},
            "manifest": MANIFEST,
            "result": divided(0),
        }
    ),
    "Trino, pages without rows": trino,
    "Elasticsearch SQL, columns on the first page alone": stepped(
        "cursor",
        lambda start, at: {
            **({} if start else {"columns": COLUMNS}),
            "rows": lists(part(start)),
            **({"cursor": at} if at else {}),
        },
    ),
    "Elasticsearch scroll, which has no end": lambda query, _request: reply(
        {
            "_scroll_id": f"cur{at(query.get('scroll_id', '')) + 10}",
            "_shards": {"total": 5, "failed": 0},
            "hits": {
                "total": {"value": 25, "relation": "eq"},
                "hits": [
                    {"_id": "1", "_source": row} for row in part(at(query.get("scroll_id", "")))
                ],
            },
        }
    ),
    "Solr, a cursor that stays": lambda query, _request: reply(
        {
            "responseHeader": {"status": 0},
            "response": {"numFound": 25, "start": 0, "docs": part(at(query.get("cursorMark", "")))},
            "nextCursorMark": f"cur{min(at(query.get('cursorMark', '')) + 10, 25)}",
        }
    ),
    "Solr, numFound and start": counted(
        "start", lambda f: {"response": {"numFound": 25, "start": f["offset"], "docs": f["rows"]}}
    ),
    "Druid, names in the first row": simply([["address", "n"], *lists(ROWS)]),
    "Influx": simply(
        {
            "results": [
                {
                    "statement_id": 0,
                    "series": [{"name": "w", "columns": ["address", "n"], "values": lists(ROWS)}],
                }
            ]
        }
    ),
    "Kusto": simply(
        {
            "Tables": [
                {
                    "TableName": "Table_0",
                    "Columns": [{"ColumnName": "address"}, {"ColumnName": "n"}],
                    "Rows": lists(ROWS),
                }
            ]
        }
    ),
    "Neo4j": simply(
        {
            "results": [
                {
                    "columns": ["address", "n"],
                    "data": [{"row": row, "meta": [None]} for row in lists(ROWS)],
                }
            ],
            "errors": [],
        }
    ),
    "Superset": simply(
        {
            "result": [
                {
                    "cache_key": "x",
                    "colnames": ["address", "n"],
                    "data": ROWS,
                    "rowcount": 25,
                    "status": "success",
                    "error": None,
                }
            ]
        }
    ),
    "Metabase": simply(
        {
            "data": {
                "rows": lists(ROWS),
                "cols": [{"name": "address"}, {"name": "n"}],
                "rows_truncated": None,
            },
            "row_count": 25,
            "status": "completed",
        }
    ),
    "Pinot": simply(
        {
            "resultTable": {"dataSchema": {"columnNames": ["address", "n"]}, "rows": lists(ROWS)},
            "exceptions": [],
        }
    ),
    "ClickHouse": simply(
        {**CLICKHOUSE, "data": ROWS, "rows": 25, "rows_before_limit_at_least": 25}
    ),
    "ClickHouse, compact": simply({**CLICKHOUSE, "data": lists(ROWS), "rows": 25}),
    "lines of JSON declared as JSON": simply(
        b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    ),
    "Flipside": numbered(
        "page",
        lambda f: {
            "jsonrpc": "2.0",
            "id": 0,
            "result": {
                "columnNames": ["address", "n"],
                "rows": lists(f["rows"]),
                "page": {
                    "currentPageNumber": f["page"],
                    "currentPageSize": 10,
                    "totalRows": 25,
                    "totalPages": 3,
                },
            },
            "error": None,
        },
    ),
    "Flipside, columnLabels": numbered(
        "pageNumber",
        lambda f: {
            "results": lists(f["rows"]),
            "columnLabels": ["address", "n"],
            "pageNumber": f["page"],
            "pageSize": 10,
            "status": "finished",
        },
    ),
    "Zapper, deep down": cursor(
        "after",
        lambda rows, at: {
            "data": {
                "portfolio": {
                    "balances": {
                        "byToken": {
                            "totalCount": 25,
                            "edges": [{"node": row} for row in rows],
                            "pageInfo": {"hasNextPage": at is not None, "endCursor": at},
                        }
                    }
                }
            }
        },
    ),
    "Airtable": cursor(
        "offset",
        lambda rows, at: {
            "records": [{"id": "rec", "createdTime": "x", "fields": row} for row in rows],
            **({"offset": at} if at else {}),
        },
    ),
    "HubSpot": cursor(
        "after",
        lambda rows, at: {
            "total": 25,
            "results": [
                {"id": "1", "properties": row, "createdAt": "x", "archived": False} for row in rows
            ],
            **({"paging": {"next": {"after": at, "link": f"?after={at}"}}} if at else {}),
        },
    ),
    "Reddit": cursor(
        "after",
        lambda rows, at: {
            "kind": "Listing",
            "data": {
                "children": [{"kind": "t1", "data": row} for row in rows],
                "after": at,
                "before": None,
            },
        },
    ),
    "Typesense": numbered(
        "page",
        lambda f: {
            "found": 25,
            "page": f["page"],
            "hits": [{"document": row, "highlights": []} for row in f["rows"]],
        },
    ),
    "Algolia": numbered(
        "page",
        lambda f: {
            "results": [
                {
                    "hits": f["rows"],
                    "nbHits": 25,
                    "page": f["page"],
                    "nbPages": 3,
                    "hitsPerPage": 10,
                }
            ]
        },
        first=0,
    ),
    "OKLink": numbered(
        "page",
        lambda f: {
            "code": "0",
            "msg": "",
            "data": [
                {"page": str(f["page"]), "limit": "10", "totalPage": "3", "positionList": f["rows"]}
            ],
        },
    ),
    "Salesforce, a locator in a header": lambda query, _request: reply(
        csv_of(part(at(query.get("locator", "")))),
        content_type="text/csv",
        **{
            "Sforce-Locator": f"cur{after(at(query.get('locator', '')))}"
            if after(at(query.get("locator", "")))
            else "null"
        },
    ),
    "Aptos": stepped("cursor", lambda start, _at: part(start), header="X-Aptos-Cursor"),
    "Cosmos DB": stepped(
        "continuation",
        lambda start, _at: {"Documents": part(start), "_count": len(part(start))},
        header="x-ms-continuation",
    ),
    "Azure Resource Graph": cursor(
        "$skipToken",
        lambda rows, at: {
            "totalRecords": 25,
            "count": len(rows),
            "data": rows,
            "resultTruncated": "false",
            **({"$skipToken": at} if at else {}),
        },
    ),
    "Cosmos SDK": cursor(
        "pagination.key",
        lambda rows, at: {"balances": rows, "pagination": {"next_key": at, "total": "0"}},
    ),
    "Notion": cursor(
        "start_cursor",
        lambda rows, at: {
            "object": "list",
            "results": rows,
            "next_cursor": at,
            "has_more": at is not None,
        },
    ),
    "Twitter": cursor(
        "pagination_token",
        lambda rows, at: {
            "data": rows,
            "meta": {"result_count": len(rows), **({"next_token": at} if at else {})},
        },
    ),
    "Neynar": cursor("cursor", lambda rows, at: {"users": rows, "next": {"cursor": at}}),
    "NodeReal, a total in hex": cursor(
        "pageKey",
        lambda rows, at: {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"pageKey": at or "", "totalCount": "0x19", "details": rows},
        },
    ),
    "Helius, the page's own total": cursor(
        "cursor",
        lambda rows, at: {
            "jsonrpc": "2.0",
            "id": "x",
            "result": {"total": len(rows), "limit": 10, "cursor": at or "", "token_accounts": rows},
        },
    ),
    "Slack, a count of a page": numbered(
        "page",
        lambda f: {
            "ok": True,
            "files": f["rows"],
            "paging": {"count": 10, "total": 25, "page": f["page"], "pages": 3},
        },
    ),
    "Jira": counted(
        "startAt",
        lambda f: {
            "startAt": f["offset"],
            "maxResults": 10,
            "total": 25,
            "isLast": not f["more"],
            "values": f["rows"],
        },
    ),
    "Blockin": numbered(
        "page",
        lambda f: {
            "success": True,
            "data": {
                "list": f["rows"],
                "pagination": {
                    "current": str(f["page"]),
                    "page_size": 10,
                    "total": 25,
                    "count_page": 3,
                },
            },
        },
    ),
    "Facebook, a cursor that stays": link(
        lambda rows, url: {
            "data": rows,
            "paging": {"cursors": {"before": "b", "after": "a"}, **({"next": url} if url else {})},
        }
    ),
    "Zendesk": link(
        lambda rows, url: {
            "users": rows,
            "after_url": url,
            "after_cursor": "x",
            "end_of_stream": url is None,
        }
    ),
    "Zendesk, a last page without users": lambda query, _request: reply(
        {
            "tickets": part(at(query.get("at", ""), "")),
            "next_page": f"/v1/segment/abc/json?at={at(query.get('at', ''), '') + 10}",
            "end_of_stream": at(query.get("at", ""), "") > 20,
        }
    ),
    "Laravel, a page that stays 1": link(
        lambda rows, url: {
            "current_page": 1,
            "data": rows,
            "last_page": 3,
            "next_page_url": url,
            "per_page": 10,
            "total": 25,
        }
    ),
    "Hydra": link(
        lambda rows, url: {
            "@id": "/w",
            "@type": "Collection",
            "totalItems": 25,
            "member": rows,
            "view": {"@id": "x", **({"next": url} if url else {})},
        }
    ),
    "pages in Spanish": numbered(
        "hoja", lambda f: {"filas": f["rows"], "hoja": f["page"], "última": f["page"] == 3}
    ),
    "pages in Italian": numbered(
        "pagina", lambda f: {"risultati": f["rows"], "pagina": f["page"], "pagine": 3, "totale": 25}
    ),
    "pages in German": cursor(
        "weiter", lambda rows, at: {"zeilen": rows, "anzahl": 25, "weiter": at}
    ),
    "a layer that keeps what is beside it": simply(
        [{"id": row["n"], "score": 1, "data": row} for row in ROWS]
    ),
    "links beside rows are no files of them": simply(
        {"data": ROWS, "sources": ["https://etherscan.io/a", "https://dune.com/b"]}
    ),
    "the texts null and None": simply({"data": ROWS, "next": "None", "next_token": "null"}),
    "tokens of the call in headers": simply(
        ROWS, X_Auth_Token="z", X_CSRF_Token="y", X_Cache_Key="x"
    ),
    "cursors that lead back": simply({"data": ROWS, "start_cursor": "a", "previous_cursor": "b"}),
    "an empty part": lambda _query, request: reply(
        {"files": ["/files/0", "/files/1"]}
        if request.path.endswith("json")
        else ROWS
        if request.path.endswith("0")
        else []
    ),
    "files": files(
        lambda links: {
            "files": [{"url": one, "rows": 10 - 5 * (one[7] == "2"), "bytes": 99} for one in links]
        }
    ),
    "files of CSV": files(lambda links: {"data": {"signedUrls": links}}, csv=True),
    "chunks, with an id": files(
        lambda links: {
            **JOB,
            "chunks": [{"index": 0, "href": one} for one in links],
            "total_rows": 25,
        }
    ),
    "a bare list of links": files(lambda links: links),
    "CSV, tabs": lambda _query, _request: reply(
        csv_of(ROWS).replace(b",", b"\t"), content_type="text/tab-separated-values"
    ),
    "CSV, semicolons": lambda _query, _request: reply(
        csv_of(ROWS).replace(b",", b";"), content_type="text/csv"
    ),
    "CSV, a packed file": lambda _query, _request: reply(
        gzip.compress(csv_of(ROWS)), content_type="application/gzip"
    ),
    "CSV, a packed file of any type": lambda _query, _request: reply(
        gzip.compress(csv_of(ROWS)), content_type="binary/octet-stream"
    ),
    "CSV, 16 bits without a word of it": lambda _query, _request: reply(
        csv_of(ROWS).decode().encode("utf-16"), content_type="text/csv"
    ),
    "JSON, 16 bits without a word of it": lambda _query, _request: reply(
        json.dumps(ROWS).encode("utf-16")
    ),
}
HONEST: dict[str, Style] = {
    "Snowflake, partitions": simply(
        {
            **SNOWFLAKE,
            "resultSetMetaData": {
                "partitionInfo": [{"rowCount": 10}, {"rowCount": 15}],
                "rowType": COLUMNS,
            },
            "data": lists(FIRST),
        }
    ),
    "Databricks, truncated": simply(
        {
            "manifest": {**MANIFEST, "total_row_count": 10, "chunks": [], "truncated": True},
            "result": {"data_array": lists(FIRST)},
        }
    ),
    "Stripe": simply({"object": "list", "has_more": True, "data": FIRST}),
    "DynamoDB": simply({"Items": FIRST, "Count": 10, "LastEvaluatedKey": {"pk": {"S": "x"}}}),
    "ClickHouse, a limit": simply(
        {**CLICKHOUSE, "data": FIRST, "rows": 10, "rows_before_limit_at_least": 25}
    ),
    "Influx, partial": simply(
        {
            "results": [
                {"series": [{"columns": ["address", "n"], "values": lists(FIRST)}], "partial": True}
            ]
        }
    ),
    "Metabase, rows_truncated": simply(
        {
            "data": {
                "rows": lists(FIRST),
                "cols": [{"name": "address"}, {"name": "n"}],
                "rows_truncated": 10,
            }
        }
    ),
    "Hasura, an aggregate": simply(
        {"data": {"wallets": FIRST, "wallets_aggregate": {"aggregate": {"count": 25}}}}
    ),
    "CoinMarketCap": simply(
        {"status": {"error_code": 0, "error_message": None, "total_count": 25}, "data": FIRST}
    ),
    "The Graph, indexing errors": simply(
        {"data": {"accounts": FIRST, "_meta": {"hasIndexingErrors": True}}}
    ),
    "Azure, resultTruncated": simply({"count": 10, "data": FIRST, "resultTruncated": "true"}),
    "files where no HTTP leads": simply(
        {"entries": [{"url": "s3://bucket/0.parquet"}, {"url": "s3://bucket/1.parquet"}]}
    ),
    "two documents": simply(
        json.dumps({"data": FIRST}).encode() + b"\n" + json.dumps({"data": ROWS[10:]}).encode()
    ),
    "CSV, a sum as the last row": lambda _query, _request: reply(
        csv_of(FIRST) + b"Total,25\n", content_type="text/csv"
    ),
    "a sum as the last row": simply([*FIRST, {"address": "Total", "n": 25}]),
    "batches": simply({"rows": FIRST, "batch": 1, "batches": 3}),
    "total_chunks": simply({"rows": FIRST, "chunk": 0, "total_chunks": 3}),
    "partition_count": simply({"rows": FIRST, "partition": 1, "partition_count": 3}),
    "range.of": simply({"rows": FIRST, "range": {"from": 0, "to": 9, "of": 25}}),
    "rows_omitted": simply({"rows": FIRST, "rows_omitted": 15}),
    "plan_limit_reached": simply({"rows": FIRST, "plan_limit_reached": True}),
    "eof": simply({"rows": FIRST, "eof": False}),
    "final": simply({"rows": FIRST, "final": False}),
    "is_final_page": simply({"rows": FIRST, "is_final_page": False}),
    "exhausted": simply({"rows": FIRST, "exhausted": False}),
    "no_more_results": simply({"rows": FIRST, "no_more_results": False}),
    "X-Pagination-Total-Count": simply(FIRST, **{"X-Pagination-Total-Count": "25"}),
    "a part that says that there are more": lambda _query, request: reply(
        {"rows": FIRST, "has_more": True} if "files" in request.path else ["/files/0", "/files/1"]
    ),
    "parts of two kinds": lambda _query, request: (
        reply(csv_of(FIRST), content_type="text/csv")
        if request.path == "/files/0"
        else reply(ROWS[10:] if "files" in request.path else ["/files/0", "/files/1"])
    ),
    "the same part twice": lambda _query, request: reply(
        FIRST if "files" in request.path else ["/files/0", "/files/1"]
    ),
    "CSV, half of a packed file": lambda _query, _request: reply(
        gzip.compress(csv_of(ROWS))[:60], content_type="application/octet-stream"
    ),
    "rules beside an id": simply({**JOB, "rules": [{"field": "balance"}]}),
}
# All that came is in the table, and a note says what the service says of the rest.
NOTED: dict[str, tuple[Style, str]] = {
    "message": (
        simply({"rows": FIRST, "message": "Only the first 10 of 25 rows"}),
        "Only the first 10 of 25 rows",
    ),
    "notice": (simply({"rows": FIRST, "notice": "limited to 10 rows"}), "limited to 10 rows"),
    "meta.warnings": (
        simply({"rows": FIRST, "meta": {"warnings": [{"message": "old data"}]}}),
        "old data",
    ),
    "as many rows as its limit": (
        simply({"rows": FIRST, "limit": 10}),
        "exactly the 10 rows that it may have",
    ),
    "lines of JSON without length": (
        lambda _query, _request: [
            b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n\r\n"
            + b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
            None,
        ],
        "cannot be verified",
    ),
    "a number under a name that nobody knows": (
        simply({"rows": FIRST, "left": 15, "id": "abc", "took": 3}),
        "does not understand: left = 15. If",
    ),
    "showing": (simply({"rows": FIRST, "showing": "1-10 of 25"}), "showing = '1-10 of 25'"),
    "page 1 of 3": (simply({"rows": FIRST, "page": "1 of 3"}), "page = '1 of 3'"),
    "page 1/3": (simply({"rows": FIRST, "page": "1/3"}), "page = '1/3'"),
    "coverage": (simply({"rows": FIRST, "coverage": 0.4}), "coverage = 0.4"),
    "code 206 in a body": (simply({"code": 206, "rows": FIRST}), "code = 206"),
    "a word": (simply({"rows": FIRST, "quality": "partial"}), "quality = 'partial'"),
    "a truth": (simply({"rows": FIRST, "allRows": False}), "allRows = false"),
    "0 where a page would be the last": (simply({"rows": FIRST, "isLast": 0}), "isLast = 0"),
    "a size that may be of all": (simply({"rows": FIRST, "size": 25}), "size = 25"),
    "a list": (simply({"rows": FIRST, "search_after": ["x", 9]}), "search_after = ['x', 9]"),
    "an object that nobody knows": (
        simply({"rows": FIRST, "totals": {"wallets": 25}}),
        "totals.wallets = 25",
    ),
    "a message that is no remark": (
        simply({"rows": FIRST, "info": "nur die ersten 10"}),
        "info = 'nur die ersten 10'",
    ),
    "a header": (
        simply({"rows": FIRST}, **{"X-Cut": "yes"}),
        "does not understand: cut = 'yes'. If",
    ),
    "a warning of a later page": (
        cursor(
            "cursor",
            lambda rows, at: {
                "rows": rows,
                "next_cursor": at,
                **({} if at else {"warnings": ["stopped"]}),
            },
        ),
        "stopped",
    ),
    "a task that runs, of a job that is done": (
        simply({"status": "completed", "rows": FIRST, "part": {"status": "running"}}),
        "part.status = 'running'",
    ),
    "a part that runs": (
        simply({"rows": FIRST, "meta": {"status": "running"}}),
        "meta.status = 'running'",
    ),
    "on a later page": (
        cursor(
            "cursor",
            lambda rows, at: {"rows": rows, "next_cursor": at, **({} if at else {"clipped": True})},
        ),
        "clipped = true",
    ),
    "pages that overlap": (
        stepped(
            "cursor",
            lambda start, at: {"rows": ROWS[max(0, start - 2) : start + 10], "next_cursor": at},
        ),
        "2 rows came twice",
    ),
}


def asked(client, name):
    csv = name.startswith(("CSV", "Salesforce"))
    return (client.export_csv if csv else client.export_json)("abc")


@pytest.mark.slow
def test_a_documented_shape_is_read_to_its_end(server, client):
    for name, style in COMPLETE.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(style)
            table = asked(client, name)
            assert table["address"].tolist() == ADDRESSES
            assert [int(n) for n in table["n"]] == list(range(25))


def later(second: Any, first: Any = None) -> Style:
    """A second page that is odd."""
    return lambda query, _request: reply(
        second if "cursor" in query else {"rows": FIRST, "next_cursor": "c", **(first or {})}
    )


def lines(*records: Any) -> Style:
    return simply(b"".join(json.dumps(record).encode() + b"\n" for record in records))


CSV_TEXT = {"content_type": "text/csv"}
HONEST |= {
    "a last line that says how many are left": lines(*FIRST, {"remaining": 15}),
    "a last line that says that it failed": lines(
        *FIRST, {"status": "failed", "reason": "no memory"}
    ),
    "a last line of the same kind": lines(
        *({"k": "w", **row} for row in FIRST), {"k": "end", "remaining": 15}
    ),
    "a first line with a total": lines({"total": 25}, *FIRST),
    "a last record with a status": simply([*FIRST, {"done": False, "scanned": 10}]),
    "groups of rows": simply({"batches": [{"n": 1, "rows": FIRST}, {"n": 2, "rows": part(10)}]}),
    "groups of addresses": simply(
        {
            "groups": [
                {"chain": "a", "wallets": ADDRESSES[:10]},
                {"chain": "b", "wallets": ADDRESSES[10:]},
            ]
        }
    ),
    "a page that still runs": later({"rows": [], "status": "running"}),
    "a total that falls": later({"rows": part(10), "total": 20}, {"total": 25}),
    "a column that is renamed": later(
        {"rows": [{"wallet": row["address"], "n": row["n"]} for row in ROWS[10:]]}
    ),
    "status 429 in a body": simply({"status": 429, "rows": []}),
    "CSV, its header again": lambda _query, _request: reply(
        csv_of(FIRST) + csv_of(part(10)), **CSV_TEXT
    ),
    "CSV, an error at its end": lambda _query, _request: reply(
        csv_of(FIRST) + b"error,timeout\n", **CSV_TEXT
    ),
}


@pytest.mark.slow
def test_a_part_of_a_documented_shape_is_an_error(server, client):
    for name in HONEST:
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(HONEST[name])
            with pytest.raises((ProtocolError, ApiError)) as caught:
                asked(client, name)
            assert getattr(caught.value, "status", 200) != 404


def test_what_a_service_says_of_its_rows_is_a_note(server, client):
    for name, (style, note) in NOTED.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.handler = serve(style)
            table = asked(client, name)
            assert len(table) >= 10
            assert any(note in one for one in table.attrs["nbext"]["warnings"])


@pytest.mark.parametrize("body", [{"rows": FIRST}, {"rows": []}, csv_of([])])
def test_rows_of_an_answer_that_is_only_accepted_are_not_taken(server, settings, body):
    from nbext import Client
    from tests.client.conftest import KEY

    kind = "text/csv" if isinstance(body, bytes) else "application/json"
    accepted, whole = (
        reply(body, 202, content_type=kind),
        reply(csv_of(ROWS) if kind == "text/csv" else {"rows": ROWS}, content_type=kind),
    )
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/" + kind[-4:].lstrip("/"), accepted, whole)
    client = Client(server.url, KEY, settings=settings())
    assert (client.export_csv if kind == "text/csv" else client.export_json)("abc")[
        "address"
    ].tolist() == ADDRESSES


@pytest.mark.parametrize(
    "flag",
    [{"ready": False}, {"pending": True}, {"loading": True}, {"data": {"status": "running"}}],
)
def test_no_rows_beside_a_sign_that_it_still_runs_are_asked_for_again(server, client, flag):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/json", reply({"rows": [], **flag}), reply({"rows": ROWS}))
    assert client.export_json("abc")["address"].tolist() == ADDRESSES


@pytest.mark.parametrize(
    "record",
    [
        {"address": ADDRESSES[1], "chain": "polygon"},
        {"chainId": 137},
        {"chain_id": "eip155:137"},
        {"id": f"eip155:1/erc20:{ADDRESSES[2]}"},
        {"checksumAddress": ADDRESSES[2]},
        {"contract": {"address": ADDRESSES[2]}},
    ],
)
def test_metadata_of_another_contract_or_chain_is_an_error(server, client, record):
    server.script("*", reply({"name": "Dai", "symbol": "DAI", **record}))
    with pytest.raises(ProtocolError, match=r"asked for .* and answered for"):
        client.tokens("ethereum", ADDRESSES[1])


def test_fields_that_nobody_knows_are_one_note_until_the_settings_know_them(
    server, client, settings
):
    from nbext import Client
    from tests.client.conftest import KEY

    odd = {**{f"x{i}": i + 1 for i in range(7)}, "x7": ["a list of one"]}
    server.handler = lambda request: reply(
        {"id": "abc", "status": "done", "tier": "gold"}
        if request.path.endswith("/abc")
        else {"rows": ROWS, **odd}
    )
    described, rows = client.export_json("abc").attrs["nbext"]["warnings"]
    assert described.startswith(
        "Beside the rows the segment's description has fields that nbext does not understand: tier = 'gold'. If one of them"
    )
    assert "x0 = 1, x1 = 2, x2 = 3, x3 = 4, x4 = 5, x5 = 6 and 2 more. If" in rows
    assert '`%nbext set remote.export.known = "x0, x1, x2, x3, x4, x5"`' in rows
    few = Client(server.url, KEY, settings=settings(remote={"export": {"known": list(odd)[:7]}}))
    assert "x7 = ['a list of one']" in few.export_json("abc").attrs["nbext"]["warnings"][1]
    told = Client(
        server.url,
        KEY,
        settings=settings(remote={"segment": {"known": "tier"}, "export": {"known": list(odd)}}),
    )
    assert told.export_json("abc").attrs["nbext"]["warnings"] == []


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
@pytest.mark.parametrize(
    "name", ["files", "files of CSV", "Trino, pages without rows", "CSV, a packed file"]
)
def test_a_file_has_the_rows_of_all_files_that_an_answer_lists(
    server, client, tmp_path, name, ending
):
    server.handler = serve(COMPLETE[name])
    export = client.export_csv if name.startswith("CSV") else client.export_json
    assert export("abc", to=tmp_path / f"rows{ending}")["rows"].tolist() == [25]


def test_the_key_goes_to_no_file_of_another_origin(server, client):
    from tests.client.faultserver import FaultServer

    other = FaultServer()
    other.script("*", reply(ROWS))
    server.handler = serve(simply({"files": [f"{other.url}/files/0"]}))
    assert asked(client, "")["address"].tolist() == ADDRESSES
    assert ["x-api-key" in request.headers for request in other.requests] == [False]
    other.close()


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("body", [b"Internal error, try later\n", b"error\nquery killed\n"])
def test_no_file_is_an_error_that_is_declared_as_csv(server, client, tmp_path, body, raw):
    server.handler = serve(lambda _query, _request: reply(body, content_type="text/csv"))
    with pytest.raises(ApiError):
        client.export_csv("abc", to=tmp_path / "rows.csv", raw=raw)
    assert not (tmp_path / "rows.csv").exists()


# ------------------------------------------------------------------ jobs

RUN, DATA = "POST /v1/segment/execute", reply({"data": ROWS})
JOBS: dict[str, dict[str, list[bytes]]] = {
    "words alone": {
        RUN: [reply({"run_id": "r"})],
        "GET /v1/segment/r": [reply("created"), reply("success")],
        "GET /v1/segment/r/json": [DATA],
    },
    "a job in a list of one": {
        RUN: [reply({"code": 200, "data": [{"executionId": "r", "status": "PENDING"}]})],
        "GET /v1/segment/r": [reply({"data": [{"executionId": "r", "status": "FINISHED"}]})],
        "GET /v1/segment/r/json": [DATA],
    },
    "an id in a reference": {
        RUN: [reply({"jobReference": {"projectId": "p", "jobId": "r"}, "jobComplete": False})],
        "GET /v1/segment/r": [reply({"jobReference": {"jobId": "r"}, "jobComplete": True})],
        "GET /v1/segment/r/json": [DATA],
    },
    "201, and a status alone": {
        RUN: [reply({"status": "queued"}, 201, Location="/v1/segment/r")],
        "GET /v1/segment/r": [reply({"status": "running"}), reply({"status": "done"})],
        "GET /v1/segment/r/json": [DATA],
    },
    "202 without a body": {
        RUN: [reply(b"", 202, None, Location="/v1/jobs/9")],
        "GET /v1/jobs/9": [reply(b"", 202, None), DATA],
    },
    "resourceLocation": {
        RUN: [reply(b"", 202, None, Operation_Location="/v1/operations/9")],
        "GET /v1/operations/9": [
            reply({"status": "Running"}),
            reply({"status": "Succeeded", "resourceLocation": "/v1/results/9"}),
        ],
        "GET /v1/results/9": [DATA],
    },
    "statusUrl, then resultsUrl": {
        RUN: [reply({"status": "queued", "statusUrl": "/v1/st/9"})],
        "GET /v1/st/9": [reply({"status": "done", "resultsUrl": "/v1/rs/9"})],
        "GET /v1/rs/9": [DATA],
    },
    "both addresses at once": {
        RUN: [reply({"status": "queued", "status_url": "/v1/st/9", "response_url": "/v1/rs/9"})],
        "GET /v1/st/9": [reply({"status": "done"})],
        "GET /v1/rs/9": [DATA],
    },
    "one address, while it runs": {
        RUN: [reply({"status": "queued", "url": "/v1/st/9"})],
        "GET /v1/st/9": [reply({"status": "done", "rows": ROWS})],
    },
    "files beside an id": {
        RUN: [reply({**JOB, "files": [{"url": "/files/0"}, {"url": "/files/1"}]})],
        "GET /files/0": [reply(ROWS[:10])],
        "GET /files/1": [reply(ROWS[10:])],
    },
    "files in a manifest": {
        RUN: [
            reply(
                {**JOB, "manifest": {"files": ["/files/0", "/files/1"], "chunks": [{"rows": 10}]}}
            )
        ],
        "GET /files/0": [reply(ROWS[:10])],
        "GET /files/1": [reply(ROWS[10:])],
    },
    "pages of what was polled": {
        RUN: [reply({"id": "r", "status": "queued"})],
        "GET /v1/segment/r": [reply({**JOB, "id": "r", "rows": ROWS[:20], "next_cursor": "c"})],
        "GET /v1/segment/r?cursor=c": [reply({"rows": ROWS[20:]})],
    },
}


@pytest.mark.slow
def test_a_job_is_followed_to_its_rows_by_whatever_it_says(server, client):
    for name, replies in JOBS.items():
        with case(name):
            server.requests.clear()
            server.scripts.clear()
            server.scripts.update({path: list(each) for path, each in replies.items()})
            assert client.execute_segment({"a": 1})["address"].tolist() == ADDRESSES


@pytest.mark.parametrize("word", ["FERTIG", "terminé", "完了", "en_cours"])
def test_a_word_of_another_language_is_asked_about_at_once(server, client, word):
    server.script(RUN, reply({"id": "r", "status": word}))
    server.script("GET /v1/segment/r", reply({"id": "r", "status": word}))
    with pytest.raises(AmbiguousAnswer, match=r"remote\.segment\.states\.done"):
        client.execute_segment({"a": 1})
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        (
            {RUN: [reply({"travail": {"reference": "R-1", "etat": "x"}})]},
            ['remote.segment.paths.id = "travail.reference"'],
        ),
        (
            {RUN: [reply({"trabajo": {"codigo": "T-9", "estado": "pendiente"}})]},
            ['remote.segment.paths.id = "trabajo.codigo"'],
        ),
        (
            {RUN: [reply({"handle": {"part": "a", "no": 7}, "status": "ok"})]},
            ['remote.segment.paths.id = "handle.no"'],
        ),
        (
            {RUN: [reply({"status": "queued", "ticket": "T-1"})]},
            ['remote.segment.paths.id = "ticket"'],
        ),
        (
            {RUN: [reply({"status": "done", "where": "/x/9"})]},
            ['remote.segment.paths.url = "where"'],
        ),
    ],
)
def test_what_may_be_a_jobs_id_or_address_is_named_with_its_line(server, client, answers, lines):
    server.scripts.update(answers)
    with pytest.raises(ProtocolError) as caught:
        client.execute_segment({"a": 1})
    assert [line in str(caught.value) for line in lines] == [True] * len(lines)


def test_pages_of_a_query_that_is_not_run_again_name_the_setting_that_allows_it(
    server, client, settings
):
    from nbext import Client
    from tests.client.conftest import KEY

    def answer(request: Request) -> bytes:
        if request.method == "GET":
            return reply({}, 404)
        start = at(json.loads(request.body).get("cursor", ""))
        return reply(
            {"data": part(start), "next_cursor": f"cur{after(start)}" if after(start) else None}
        )

    server.handler = answer
    with pytest.raises(ProtocolError, match=r"`%nbext set remote\.idempotent true`"):
        client.execute_segment({"a": 1})
    told = Client(server.url, KEY, settings=settings(remote={"idempotent": True}))
    assert told.execute_segment({"a": 1})["address"].tolist() == ADDRESSES
    # Under the first one's key, the next page would be the first again.
    assert ["idempotency-key" in request.headers for request in server.requests[-3:]] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("style", "remote"),
    [
        (
            lambda query, _request: reply(
                {
                    "object": "list",
                    "has_more": int(query.get("starting_after", -1)) < 14,
                    "data": part(int(query.get("starting_after", -1)) + 1),
                }
            ),
            {
                "paths": {"next": "data[-1].n"},
                "paging": {"style": "cursor", "parameter": "starting_after"},
            },
        ),
        (
            numbered(
                "pagination[page]",
                lambda f: {
                    "data": f["rows"],
                    "meta": {"pagination": {"page": f["page"], "pageCount": 3, "total": 25}},
                },
            ),
            {"paging": {"style": "page", "parameter": "pagination[page]"}},
        ),
        (
            lambda query, _request: reply(
                {
                    **SNOWFLAKE,
                    "resultSetMetaData": {"numRows": 25, "rowType": COLUMNS},
                    "data": lists(part(int(query.get("partition", 0)) * SIZE)),
                }
            ),
            {"paging": {"style": "page", "parameter": "partition"}},
        ),
    ],
    ids=["after the last row", "a name in brackets", "partitions"],
)
def test_three_lines_of_settings_walk_pages_that_nobody_guesses(server, settings, style, remote):
    from nbext import Client
    from tests.client.conftest import KEY

    server.handler = serve(style)
    client = Client(server.url, KEY, settings=settings(remote=remote))
    assert client.export_json("abc")["address"].tolist() == ADDRESSES


@pytest.mark.parametrize("mark", ["²", "٣", "007", "None", "12345678901"])
def test_a_cursor_that_is_no_plain_number_comes_back_in_the_body_as_it_was_sent(
    server, settings, mark
):
    from nbext import Client
    from tests.client.conftest import KEY

    def answer(request: Request) -> bytes:
        if request.method == "GET":
            return reply({}, 404)
        if json.loads(request.body).get("at") == mark:
            return reply({"data": part(20), "next": None})
        return reply({"data": part(10), "next": mark})

    server.handler = answer
    remote = {
        "search": {"paths": {"next": "next"}, "paging": {"style": "cursor", "parameter": "at"}}
    }
    client = Client(server.url, KEY, settings=settings(remote=remote))
    assert client.search_nfts("ape", limit=100)["address"].tolist() == ADDRESSES[10:]


@pytest.mark.parametrize("name", ["searchTerm.cursor", "type.a.cursor"])
def test_a_cursor_whose_name_leads_into_what_was_asked_is_an_error_of_ours(server, client, name):
    server.handler = lambda _request: reply({"rows": FIRST, name: "c"})
    with pytest.raises(ProtocolError, match=r"remote\.search\.paging"):
        client.search_nfts("ape", limit=100)


def test_the_page_of_a_search_may_be_in_an_object_of_its_body(server, settings):
    from nbext import Client
    from tests.client.conftest import KEY

    def answer(request: Request) -> bytes:
        if request.method == "GET":
            return reply({}, 404)
        page = json.loads(request.body).get("pagination", {}).get("page", 1)
        return reply(
            {
                "data": part((page - 1) * SIZE),
                "pagination": {"page": page, "is_last_page": page == 3},
            }
        )

    server.handler = answer
    remote = {"search": {"paging": {"style": "page", "parameter": "pagination.page"}}}
    client = Client(server.url, KEY, settings=settings(remote=remote))
    assert client.search_nfts("ape", limit=100)["address"].tolist() == ADDRESSES


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            {"result": {"currencies": [{"address": ADDRESSES[0], "name": "Dai", "decimals": 18}]}},
            {"name": "Dai", "decimals": 18},
        ),
        (
            {"data": {"id": "x", "type": "token", "attributes": {"name": "Dai", "decimals": 18}}},
            {"name": "Dai", "decimals": 18},
        ),
    ],
)
def test_a_record_is_found_under_a_wrapper_that_nobody_knows(server, client, sent, expected):
    server.script("*", reply(sent))
    record = client.tokens("ethereum", ADDRESSES[0]).iloc[0].to_dict()
    assert {name: record[name] for name in expected} == expected


@pytest.mark.parametrize("sent", [None, {}, {"data": None}, [], {"result": {}}])
def test_no_record_is_an_error(server, client, sent):
    server.script("*", reply(sent))
    with pytest.raises(ProtocolError):
        client.tokens("ethereum", ADDRESSES[0])


@pytest.mark.slow
def test_an_answer_of_too_many_objects_is_refused_and_its_rows_can_be_named(server, settings):
    from nbext import Client
    from tests.client.conftest import KEY

    inner: dict[str, Any] = {"x": 1}
    for _ in range(5):
        inner = {f"k{number}": inner for number in range(8)}
    server.handler = serve(simply({"data": ROWS, **inner}))
    with pytest.raises(ProtocolError, match=r"Set remote\.export\.paths\.rows"):
        Client(server.url, KEY, settings=settings()).export_json("abc")
    told = Client(server.url, KEY, settings=settings(remote={"paths": {"rows": "data"}}))
    assert told.export_json("abc")["address"].tolist() == ADDRESSES


@pytest.mark.parametrize(
    "hits",
    [
        ["https://a.example/1", "https://a.example/2"],
        [{"n": 1, "file": "/1"}, {"n": 2, "file": "/2"}],
    ],
    ids=["texts", "objects"],
)
def test_the_hits_of_a_search_are_no_files_though_each_is_a_link(server, client, hits):
    server.script("POST /v1/search", reply({"results": hits}))
    rows = [hit if isinstance(hit, dict) else {"value": hit} for hit in hits]
    assert client.search_nfts("ape").to_dict("records") == rows
    assert [request.path for request in server.requests] == ["/v1/search"]


def test_lists_of_links_beside_rows_are_of_something_else(server, client):
    server.script(
        "GET /v1/segment/abc/json",
        reply({"rows": ROWS[:2], "images": ["/1", "/2"], "logos": ["/3"]}),
    )
    server.script("GET /v1/segment/abc", reply({}, 404))
    assert client.export_json("abc").to_dict("records") == ROWS[:2]


@pytest.mark.parametrize("within", ["query", "Query.data", "data.query", "data.query.result"])
def test_lists_of_links_in_the_echo_of_a_question_are_not_followed(server, client, within):
    echo: dict[str, Any] = {"files": ["/1", "/2"]}
    for name in reversed(within.split(".")):
        echo = {name: echo}
    server.script("GET /v1/segment/abc/json", reply({"rows": [], **echo}))
    server.script("GET /v1/segment/abc", reply({}, 404))
    assert client.export_json("abc").to_dict("records") == []
    asked = [request.path for request in server.requests]
    assert asked == ["/v1/segment/abc", "/v1/segment/abc/json"]


def test_an_item_whose_first_twenty_names_have_no_link_or_that_has_an_address_is_a_row(
    server, client
):
    many = {f"f{number}": number for number in range(20)}
    server.script("GET /v1/segment/abc", reply({}, 404))
    for file in ({**many, "url": "/1"}, {"url": "/1", **many, "wallet": ADDRESSES[0]}):
        server.script("GET /v1/segment/abc/json", reply({"files": [file]}))
        assert client.export_json("abc").to_dict("records") == [file]
    assert "/1" not in [request.path for request in server.requests]


def test_an_address_of_rows_beside_an_id_leads_nowhere_that_a_redirect_may_not(server, client):
    server.script(RUN, reply({**JOB, "resultsUrl": "http://169.254.169.254/latest"}))
    with pytest.raises(ProtocolError, match="where nbext does not follow"):
        client.execute_segment({"a": 1})
    assert [request.path for request in server.requests] == ["/v1/segment/execute"]
