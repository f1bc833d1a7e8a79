"""A setting under ``remote`` that finds nothing changes nothing: all rows come, or an error or a note says why not."""

from __future__ import annotations

from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from nbext import Client
from nbext.errors import NbextError
from nbext.settings import Settings
from tests.client.conftest import KEY
from tests.client.faultserver import FaultServer, Request, reply

ROWS = [{"address": f"0x{number:040x}", "n": number} for number in range(1, 31)]
PAGE = 10
# Each entry of the settings' page that leads to a place in an answer, or names a word of it: here to none.
USELESS: dict[str, dict[str, Any]] = {
    **{
        f"paths.{name}": {"paths": {name: "nichts"}}
        for name in ("id", "status", "url", "poll", "next", "total", "error")
    },
    "paths.next in a header": {"paths": {"next": "header:X-Nichts"}},
    "paths.next is null": {"paths": {"next": "`null`"}},
    "paging.parameter": {"paging": {"parameter": "nichts"}},
    "states.done": {"states": {"done": "NIE"}},
    "states.running": {"states": {"running": "NIE"}},
    "states.failed": {"states": {"failed": "NIE"}},
    "columns": {"columns": {"nichts": "anything"}},
    "types": {"types": {"nichts": "uint256"}},
    "known": {"export": {"known": "nichts"}},
    "idempotent": {"idempotent": "true"},
}


def page(request: Request, name: str) -> tuple[list[dict[str, Any]], int, str]:
    """Return the rows of the page that a request asks for, where it begins, and the address of the next or ""."""
    url = urlsplit(request.path)
    asked = {key: int(many[0]) for key, many in parse_qs(url.query).items() if many[0].isdigit()}
    start = (asked.get("page", 1) - 1) * PAGE if name == "page" else asked.get(name, 0)
    after = start + PAGE
    value = after // PAGE + 1 if name == "page" else after
    following = f"{url.path}?{name}={value}" if after < len(ROWS) else ""
    return ROWS[start:after], start, following


def next_address(request: Request) -> bytes:
    rows, _, following = page(request, "offset")
    return reply({"rows": rows, "next": following or None})


def cursor(request: Request) -> bytes:
    rows, start, following = page(request, "cursor")
    return reply({"data": rows, "next_cursor": str(start + PAGE) if following else None})


def link_header(request: Request) -> bytes:
    rows, _, following = page(request, "offset")
    return reply(rows, **({"Link": f'<{following}>; rel="next"'} if following else {}))


def numbered(request: Request) -> bytes:
    rows, start, _ = page(request, "page")
    return reply({"items": rows, "page": start // PAGE + 1, "pages": 3, "total": len(ROWS)})


def offset(request: Request) -> bytes:
    rows, start, following = page(request, "offset")
    return reply(
        {"results": rows, "offset": start, "total": len(ROWS), "has_more": bool(following)}
    )


SERVICES = (next_address, cursor, link_header, numbered, offset)


@pytest.mark.slow
def test_a_setting_that_finds_nothing_loses_no_row_unsaid(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    lost = []
    for service, (name, setting) in product(SERVICES, {"none": {}, **USELESS}.items()):
        server = FaultServer(handler=service)
        settings = Settings(arguments={"remote": setting}, environ={}, folder=tmp_path)
        try:
            with Client(server.url, KEY, settings=settings) as client:
                table = client.export_json("one")
            silent = not table.attrs["nbext"]["warnings"]
            if table["address"].tolist() != [row["address"] for row in ROWS] and silent:
                lost.append((service.__name__, name, len(table)))
        except NbextError:
            if name == "none":
                raise
        finally:
            server.close()
    assert lost == []
