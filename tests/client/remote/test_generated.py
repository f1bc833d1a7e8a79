"""Services that nobody wrote: whatever one answers, the whole table comes, or an error, or a note that says why not.

Each has its own size of pages, way to the next one, wrappers, names and places of its signs, some of them false, and
may fail in the middle. At least one sign says truly that there is more; of a service without any nobody could know.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nbext import Client
from nbext.core.wire import ARROW_TYPE
from nbext.errors import NbextError
from nbext.settings import Settings
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, reply

ROWS = [{"address": f"0x{i:040x}", "n": i} for i in range(1, 31)]
WRAPPERS = (
    lambda rows: {"rows": rows},
    lambda rows: {"data": rows},
    lambda rows: {"data": {"items": rows}},
    lambda rows: {"result": {"rows": rows}, "ok": True},
    lambda rows: {"status": "success", "data": {"holders": rows}},
    lambda rows: {"data": {"wallets": {"edges": [{"cursor": "x", "node": row} for row in rows]}}},
    lambda rows: {"hits": {"hits": [{"_id": "1", "_source": row} for row in rows]}},
    lambda rows: {"columns": ["address", "n"], "rows": [list(row.values()) for row in rows]},
    lambda rows: {"anything": rows},
)
MORE = ("has_more", "hasMore", "hasNextPage", "more", "truncated", "isTruncated", "has_next")
TOTALS = ("total", "totalCount", "total_count", "totalElements", "count", "recordsTotal")
CURSORS = ("next_cursor", "nextCursor", "cursor", "nextPageToken", "continuation", "next_token")
PARAMETERS = {
    "nextPageToken": "pageToken",
    "next_token": "next_token",
    "continuation": "continuation",
}
PLACES = ((), ("meta",), ("pagination",), ("page_info",), ("meta", "pagination"))
STYLES = ("link", "cursor", "page", "offset", "header", "none")
FAULTS = (None, None, None, "404", "410", "500", "cut", "error", "again", "text", "other", "short")


@dataclass(frozen=True)
class Made:
    """A service: its rows, how it pages, what it says of that and where, and what goes wrong on a later page."""

    rows: int
    size: int
    wrapper: int
    kind: str
    style: str
    place: tuple[str, ...]
    more: str | None
    total: str | None
    false_total: int | None
    cursor: str
    numbered: bool
    fault: str | None
    to: str | None

    @property
    def says_more(self) -> bool:
        """Whether anything in its first answer says that there is more."""
        by_total = self.total is not None and self.false_total is None
        # Beside a table a cursor has no place.
        by_way = self.style in ("link", "header") or (
            self.style == "cursor" and self.kind == "json"
        )
        return bool(self.more or by_total or by_way)

    def answer(self, path: str) -> Any:
        """Answer a request for rows."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        start = self.start(query)
        if self.style == "none":
            start = 0
        number = start // self.size
        if number and self.fault not in (None, "other", "short"):
            return self.faulty(path)
        rows = ROWS[: self.rows][start : start + self.size]
        following = start + self.size if start + self.size < self.rows else None
        signs, headers = self.signs(start, rows, following)
        if number and self.fault == "other":
            rows = [{**row, "address": f"0x{row['n']:02x}{'ab' * 19}"} for row in rows]
            headers |= {"X-Segment-Id": "zzz"}
        elif number and self.fault == "short":
            rows = [{**row, "address": f"0x...{row['n']:04x}"} for row in rows]
        if self.kind == "csv":
            lines = ["address,n", *(f"{row['address']},{row['n']}" for row in rows)]
            return reply("\n".join([*lines, ""]).encode(), content_type="text/csv", **headers)
        if self.kind == "arrow":
            sink, schema = io.BytesIO(), pa.schema([("address", pa.string()), ("n", pa.int64())])
            with pa.ipc.new_stream(sink, schema) as out:
                out.write_table(pa.Table.from_pylist(rows, schema))
            return reply(sink.getvalue(), content_type=ARROW_TYPE, **headers)
        body = WRAPPERS[self.wrapper](rows)
        holder = body
        for name in self.place:
            holder = holder.setdefault(name, {})
        holder.update({name: value for name, value in signs.items() if name not in holder})
        return reply(body, **headers)

    def start(self, query: dict[str, str]) -> int:
        def number(name: str) -> int:
            text = query.get(name, "").removeprefix("c")
            return int(text) if text.isdigit() else 0

        if self.style == "page":
            return max(0, number("page") - 1) * self.size
        if self.style == "offset":
            return number("offset")
        name = PARAMETERS.get(self.cursor, "cursor") if self.style == "cursor" else "at"
        return number(name)

    def signs(
        self, start: int, rows: list[Any], following: int | None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        signs: dict[str, Any] = {}
        if self.more:
            signs[self.more] = following is not None
        if self.total:
            signs[self.total] = self.rows if self.false_total is None else self.false_total
        if self.numbered:
            signs |= {"page": start // self.size + 1, "limit": self.size}
            signs |= {"offset": start} if self.style == "offset" else {}
        link = None if following is None else f"/v1/segment/abc/{self.file}?at={following}"
        signs |= {"next": link} if self.style == "link" else {}
        signs |= (
            {self.cursor: None if following is None else f"c{following}"}
            if self.style == "cursor"
            else {}
        )
        headers = {"Link": f'<{link}>; rel="next"'} if self.style == "header" and link else {}
        if self.kind != "json":
            # Beside a table there are only headers.
            named = {"X-Has-More": signs.get(self.more), "X-Total-Count": signs.get(self.total)}
            headers |= {
                name: str(value).lower() for name, value in named.items() if value is not None
            }
            headers |= {"Link": f'<{link}>; rel="next"'} if self.style == "link" and link else {}
        return signs, headers

    @property
    def file(self) -> str:
        return "json" if self.kind == "json" else "csv"

    def faulty(self, path: str) -> Any:
        if self.fault == "cut":
            return [b'HTTP/1.1 200 X\r\nContent-Length: 999\r\n\r\n{"rows": [', None]
        if self.fault == "error":
            return reply({"error": "overloaded"})
        if self.fault == "text":
            return reply(b"overloaded, try later", content_type="text/plain")
        if self.fault == "again":
            return self.answer(path.partition("?")[0])
        return reply({"detail": "no"}, int(self.fault or 500))


def made() -> st.SearchStrategy[Made]:
    """Services that say at least once that there is more."""
    return st.builds(
        Made,
        rows=st.integers(0, 30),
        size=st.integers(1, 12),
        wrapper=st.integers(0, len(WRAPPERS) - 1),
        kind=st.sampled_from(["json", "json", "json", "csv", "arrow"]),
        style=st.sampled_from(STYLES),
        place=st.sampled_from(PLACES),
        more=st.none() | st.sampled_from(MORE),
        total=st.none() | st.sampled_from(TOTALS),
        false_total=st.none() | st.integers(0, 40),
        cursor=st.sampled_from(CURSORS),
        numbered=st.booleans(),
        fault=st.sampled_from(FAULTS),
        to=st.sampled_from([None, "rows.csv", "rows.json", "rows.parquet"]),
    ).filter(lambda service: service.says_more)


@pytest.fixture(scope="module")
def place():
    """A server for all services, a client of it, and a folder for files."""
    server = FaultServer()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text("")
        chosen = {"attempts": 1, "deadline": 20.0}
        yield (
            server,
            Client(
                server.url,
                KEY,
                settings=Settings(arguments=chosen, environ={}, folder=Path(folder)),
            ),
            Path(folder),
        )
    server.close()


def read_file(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an exported file."""
    if path.suffix == ".json":
        return list(json.loads(path.read_text()))
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text().splitlines()))
    return pq.read_table(path).to_pylist()


def outcome(service: Made, place: Any) -> tuple[str, Any]:
    """Return what an export comes to: ``whole``, ``error``, ``note`` or ``silent``, and what it says."""
    server, client, folder = place
    server.handler = lambda request: (
        service.answer(request.path)
        if request.path.startswith(f"/v1/segment/abc/{service.file}")
        else reply({}, 404)
    )
    to = None if service.to is None else folder / service.to
    export = client.export_json if service.file == "json" else client.export_csv
    try:
        table = export("abc", to=to, overwrite=True)
    except NbextError as error:
        return "error", str(error)
    notes, rows = table.attrs["nbext"]["warnings"], table.to_dict("records")
    if to is not None:
        rows = read_file(to)
    came = [row["address"] for row in rows]
    if came == [row["address"] for row in ROWS[: service.rows]]:
        return "whole", notes
    return ("note" if notes else "silent"), (len(came), notes)


def checked(examples: int) -> Any:
    """Return the test of so many services."""

    @pytest.mark.filterwarnings("ignore::nbext.core.provenance.AnswerWarning")
    @hypothesis_settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(made())
    def test(place, service):
        assert outcome(service, place)[0] != "silent"

    return test


test_a_service_gives_the_whole_table_an_error_or_a_note = checked(40)
test_many_services_give_the_whole_table_an_error_or_a_note = pytest.mark.long(checked(20_000))
