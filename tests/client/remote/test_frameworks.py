"""Services as ten frameworks make them: all eight operations, with at most three lines, which the messages name.

Each has 25 wallets in pages of 10, and 12 hits of a search in pages of 5.
"""

# A row of a table stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from nbext import Client
from nbext.errors import NbextError
from tests.client.conftest import KEY
from tests.client.faultserver import Request, reply

A = "0x" + "aa" * 20
WALLETS = [{"address": f"0x{i:040x}", "balance": str(10**20 + i)} for i in range(25)]
HITS = [{"address": f"0x{i:040x}", "name": f"Ape {i}", "symbol": "APE"} for i in range(100, 112)]
RECORD = {"address": A, "name": "Dai", "symbol": "DAI", "decimals": 18}


@dataclass(frozen=True)
class Asked:
    """A request for a page: the rows there are, the page's size, and where it was asked for."""

    rows: list[dict[str, Any]]
    size: int
    root: str
    path: str
    query: dict[str, str]

    def number(self, name: str, first: int = 1) -> int:
        return int(self.query.get(name, first))

    def part(self, start: int) -> tuple[list[dict[str, Any]], int | None]:
        """Return the rows from a place on, and the place after them, None after the last."""
        after = start + self.size
        return self.rows[start:after], after if after < len(self.rows) else None


@dataclass(frozen=True)
class Framework:
    """How it sends a page, a job (its id, whether it is done), one record, and the receipt; the lines that it needs."""

    page: Callable[[Asked], Any]
    job: Callable[[str, bool], Any]
    record: Callable[[dict[str, Any]], Any] = lambda record: record
    receipt: Any = None
    lines: tuple[str, ...] = ()
    elsewhere: bool = False
    id: str = "7"

    def answer(self, request: Request) -> Any:
        """Answer one of the eight operations."""
        split = urlsplit(request.path)
        path, root = unquote(split.path), f"http://{request.headers['host']}"
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        creates = path in ("/v1/segment/execute", "/v1/search", "/v1/signup/newsletter")
        status, body = 404, {"detail": "Not found."}
        if creates and request.method != "POST":
            status, body = 405, {"detail": "Method not allowed."}
        elif path == "/v1/segment/execute":
            status, body = 202, self.job(root, False)
        elif path == "/v1/signup/newsletter":
            status, body = 201, self.receipt or {"id": 1, "created": True}
        elif path == "/v1/search":
            status, body = 200, self.page(Asked(HITS, 5, root, path, query))
        elif path.startswith(("/v1/tokens/", "/v1/nfts/")):
            status, body = 200, self.record(RECORD)
        elif path == "/s3/rows.csv":
            text = "".join(f"{row['address']},{row['balance']}\n" for row in WALLETS)
            status, body = 200, f"address,balance\n{text}".encode()
        elif path.rstrip("/") == f"/v1/segment/{self.id}":
            status, body = 200, self.job(root, True)
        elif path in (f"/v1/segment/{self.id}/csv", f"/v1/segment/{self.id}/json"):
            presigned = {"url": f"{root}/s3/rows.csv?X-Amz-Signature=s3cret"}
            rows = Asked(WALLETS, 10, root, path, query)
            status, body = 200, presigned if self.elsewhere else self.page(rows)
        is_file = isinstance(body, bytes)
        return reply(body, status, "binary/octet-stream" if is_file else "application/json")


def drf(asked: Asked) -> Any:
    number = asked.number("page")
    rows, after = asked.part((number - 1) * asked.size)
    following = f"{asked.root}{asked.path}?page={number + 1}" if after else None
    return {"count": len(asked.rows), "next": following, "previous": None, "results": rows}


def rails(asked: Asked) -> Any:
    number = asked.number("page[number]")
    rows, after = asked.part((number - 1) * asked.size)
    link = f"{asked.root}{asked.path}?page%5Bnumber%5D="
    return {
        "data": [
            {"id": str(i), "type": "wallets", "attributes": row} for i, row in enumerate(rows)
        ],
        "links": {"self": f"{link}{number}", **({"next": f"{link}{number + 1}"} if after else {})},
        "meta": {"total-count": len(asked.rows)},
    }


def google(asked: Asked) -> Any:
    rows, after = asked.part(int(asked.query.get("pageToken", "t0")[1:]))
    # proto3 leaves out what is empty.
    return {"wallets": rows, **({"nextPageToken": f"t{after}"} if after else {})}


def gateway(asked: Asked) -> Any:
    rows, after = asked.part(int(asked.query.get("page_token", "t0")[1:]))
    return {
        "holders": rows,
        "next_page_token": f"t{after}" if after else "",
        "total_size": len(asked.rows),
    }


def aws(asked: Asked) -> Any:
    rows, after = asked.part(int(asked.query.get("nextToken", "t0")[1:]))
    return {
        "statusCode": 200,
        "body": json.dumps({"items": rows, **({"nextToken": f"t{after}"} if after else {})}),
    }


def nest(asked: Asked) -> Any:
    number = asked.number("page")
    rows, _ = asked.part((number - 1) * asked.size)
    pages = -(-len(asked.rows) // asked.size)
    return {
        "items": rows,
        "meta": {
            "totalItems": len(asked.rows),
            "itemCount": len(rows),
            "itemsPerPage": asked.size,
            "totalPages": pages,
            "currentPage": number,
        },
    }


def spring(asked: Asked) -> Any:
    number = asked.number("page", 0)
    rows, after = asked.part(number * asked.size)
    return {
        "content": rows,
        "pageable": {
            "pageNumber": number,
            "pageSize": asked.size,
            "offset": number * asked.size,
            "paged": True,
        },
        "totalPages": -(-len(asked.rows) // asked.size),
        "totalElements": len(asked.rows),
        "last": after is None,
        "first": number == 0,
        "number": number,
        "size": asked.size,
        "numberOfElements": len(rows),
        "empty": not rows,
    }


def stripe(asked: Asked) -> Any:
    last = asked.query.get("starting_after")
    rows, after = asked.part(0 if last is None else int(last.removeprefix("w_")) + 1)
    named = [{"id": f"w_{asked.rows.index(row)}", "object": "wallet", **row} for row in rows]
    return {"object": "list", "url": asked.path, "has_more": after is not None, "data": named}


def elastic(asked: Asked) -> Any:
    rows, _ = asked.part(int(asked.query.get("from", 0)))
    hits = [
        {"_index": "wallets", "_id": row["address"], "_score": 1.0, "_source": row} for row in rows
    ]
    return {
        "took": 3,
        "timed_out": False,
        "_shards": {"total": 5, "successful": 5, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": len(asked.rows), "relation": "eq"},
            "max_score": 1.0,
            "hits": hits,
        },
    }


def hasura(asked: Asked) -> Any:
    rows, _ = asked.part(int(asked.query.get("offset", 0)))
    count = {"aggregate": {"count": len(asked.rows)}}
    return {"data": {"wallets": rows, "wallets_aggregate": count}}


def operation(root: str, done: bool) -> Any:
    asked = {
        "name": "operations/7",
        "metadata": {"progressPercent": 40, "createTime": "2026-01-01T00:00:00Z"},
    }
    return {**asked, "done": True, "response": {"segment": "segments/7"}} if done else asked


FRAMEWORKS = {
    "Django REST framework": Framework(
        drf, lambda root, done: {"url": f"{root}/v1/segment/7/", "id": 7, "status": "done" if done else "pending"}
    ),
    "Rails with JSON:API": Framework(
        rails,
        lambda root, done: {"data": {"id": "7", "type": "segments", "attributes": {"status": "completed" if done else "running"}, "links": {"self": f"{root}/v1/segment/7"}}},
        lambda record: {"data": {"id": "1", "type": "contracts", "attributes": record}},
        {"data": {"id": "1", "type": "subscribers", "attributes": {"email": "a@example.com"}}},
    ),
    "Google's AIP-151": Framework(
        google, operation, receipt={"name": "subscribers/1"}, lines=('remote.segment.paths.id = "name"',), id="operations/7"
    ),
    "gRPC gateway": Framework(
        gateway, lambda root, done: {"segment": {"id": "7", "state": "STATE_SUCCEEDED" if done else "STATE_RUNNING"}}, lambda record: {"token": record}
    ),
    "API Gateway and S3": Framework(
        aws,
        lambda root, done: {"statusCode": 200, "body": json.dumps({"executionId": "7", "status": "SUCCEEDED" if done else "RUNNING"})},
        lambda record: {"statusCode": 200, "body": json.dumps(record)},
        elsewhere=True,
    ),
    "NestJS": Framework(nest, lambda root, done: {"id": 7, "status": "COMPLETED" if done else "ACTIVE"}),
    "Spring": Framework(spring, lambda root, done: {"id": 7, "status": "COMPLETED" if done else "STARTED"}),
    "Stripe": Framework(
        stripe, lambda root, done: {"id": "7", "object": "segment", "status": "succeeded" if done else "processing"},
        lines=('remote.paths.next = "data[-1].id"', 'remote.paging.style = "cursor"', 'remote.paging.parameter = "starting_after"'),
    ),
    "Elasticsearch": Framework(
        elastic, lambda root, done: {"id": "7", "is_running": not done, "is_partial": not done}, lambda record: {"_index": "tokens", "_id": A, "found": True, "_source": record},
        lines=('remote.paging.style = "offset"', 'remote.paging.parameter = "from"'),
    ),
    "Hasura": Framework(
        hasura,
        lambda root, done: {"data": {"insert_segment_one": {"id": 7, "status": "done" if done else "queued"}}},
        lambda record: {"data": {"token": [record]}},
        {"data": {"insert_subscriber_one": {"id": 1}}},
        ('remote.segment.paths.id = "data.insert_segment_one.id"', 'remote.paging.style = "offset"'),
    ),
}  # fmt: skip

OPERATIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "execute": (lambda client, segment, file: client.execute_segment({"a": 1}), WALLETS),
    "segment": (lambda client, segment, file: client.segment(segment), None),
    "json": (lambda client, segment, file: client.export_json(segment), WALLETS),
    "csv": (lambda client, segment, file: client.export_csv(segment), WALLETS),
    "file": (lambda client, segment, file: client.export_csv(segment, to=file, overwrite=True), WALLETS),
    "search": (lambda client, segment, file: client.search_nfts("ape", limit=100), HITS),
    "token": (lambda client, segment, file: client.tokens("ethereum", A), [RECORD]),
    "nft": (lambda client, segment, file: client.nfts("ethereum", A), [RECORD]),
    "sign-up": (lambda client, segment, file: client.sign_up("a@example.com"), None),
}  # fmt: skip


def outcomes(server, make, framework: Framework, lines: tuple[str, ...], file) -> dict[str, Any]:
    """Return what is wrong with each operation: the error, or the rows and notes that came; nothing where it is right."""
    remote: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.removeprefix("remote.").partition(" = ")
        *outer, inner = name.split(".")
        place = remote
        for each in outer:
            place = place.setdefault(each, {})
        place[inner] = json.loads(value)
    server.handler = framework.answer
    client = Client(
        server.url, KEY, settings=make(remote=remote, attempts=1, execute_deadline=20.0)
    )
    wrong: dict[str, Any] = {}
    for name, (call, expected) in OPERATIONS.items():
        try:
            table = call(client, framework.id, file)
        except NbextError as error:
            wrong[name] = str(error)
            continue
        rows = (
            list(csv.DictReader(file.read_text().splitlines()))
            if name == "file"
            else table.to_dict("records")
        )
        fields = () if expected is None else tuple(expected[0])
        came = [{field: row.get(field) for field in fields} for row in rows]
        # A field that nobody understands may be noted, and a description that is not read without its line.
        notes = [
            note
            for note in table.attrs["nbext"]["warnings"]
            if "not understand" not in note and (lines or "could not be read" not in note)
        ]
        if notes or (expected is not None and came != expected):
            wrong[name] = came, notes
    return wrong


@pytest.mark.slow
def test_a_framework_needs_three_lines_at_most_and_its_errors_name_them(server, settings, tmp_path):
    wrong, file = {}, tmp_path / "rows.csv"
    for name, framework in FRAMEWORKS.items():
        found = outcomes(server, settings, framework, framework.lines, file)
        if found or len(framework.lines) > 3:
            wrong[name] = found
        # Without them, nothing comes in part: each operation is right, or an error that names the settings.
        before = outcomes(server, settings, framework, (), file)
        said = " ".join(map(str, before.values()))
        for line in framework.lines:
            setting = re.sub(
                r"^remote\.(paths|paging)", r"remote.export.\1", line.partition(" = ")[0]
            )
            if setting not in said:
                wrong[name, line] = before
        if any(not isinstance(each, str) for each in before.values()):
            wrong[name, "without"] = before
    assert wrong == {}
