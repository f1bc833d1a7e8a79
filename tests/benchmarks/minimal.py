"""A service of sixty lines beside ours: FastAPI, DuckDB, prepared queries, results in memory; no keys, no disk.

python -m tests.benchmarks.minimal TABLES.duckdb PORT
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import uvicorn
from fastapi import FastAPI, HTTPException, Response

from nbext.core.strict_json import to_json

_FOUND = (
    "SELECT w.address, b.lo AS balance FROM balances AS b JOIN wallets AS w ON b.wallet = w.wallet "
    "WHERE b.contract = (SELECT contract FROM contracts WHERE address = ?) AND b.sort_key >= ? ORDER BY w.address"
)
_TOKEN = "SELECT address, name, symbol, decimals, holders FROM contracts WHERE lower(address) = ?"


def app_of(tables: str) -> FastAPI:
    """Return the application over a generation's tables."""
    db, held = duckdb.connect(tables, read_only=True), threading.local()
    results: dict[str, tuple[int, pa.Table]] = {}
    app = FastAPI()

    def cursor() -> Any:
        # One for each thread, as DuckDB's documentation says.
        if not hasattr(held, "cursor"):
            held.cursor = db.cursor()
        return held.cursor

    def described(name: str) -> Response:
        matched, rows = results[name]
        first = rows.slice(0, 10).cast(pa.schema([("address", "string"), ("balance", "string")]))
        answer = {"id": name, "matched": matched, "returned": rows.num_rows}
        return Response(to_json({**answer, "preview": first.to_pylist()}))

    @app.post("/execute")
    def execute(body: Mapping[str, Any]) -> Response:
        name = hashlib.sha256(to_json(body)).hexdigest()
        if name not in results:
            rows = cursor().sql(_FOUND, params=[body["token"], body["min"]]).to_arrow_table()
            results[name] = rows.num_rows, rows.slice(0, body["limit"])
        return described(name)

    @app.get("/tokens/{address}")
    def token(address: str) -> Response:
        # Every row is fetched: a connection of DuckDB 2 is not asked again before.
        found = cursor().execute(_TOKEN, [address]).fetchall()
        if not found:
            raise HTTPException(404)
        names = ("address", "name", "symbol", "decimals", "holders")
        return Response(to_json(dict(zip(names, found[0], strict=True))))

    return app


if __name__ == "__main__":
    uvicorn.run(app_of(sys.argv[1]), port=int(sys.argv[2]), access_log=False, log_level="error")
