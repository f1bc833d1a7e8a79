"""BigQuery and Trino: warehouses that hold the layout's tables, loaded from a generation's Parquet twin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ibis

from nbext.errors import ConfigError, SegmentFailed

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Warehouse:
    """A warehouse that Ibis connects to, as an `nbext.engine.remote.dataset.Backend`."""

    name: str
    connect: Callable[[], Any]
    where: Mapping[str, str]
    _connected: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fetch(self, sql: str, job: str) -> pa.Table:
        """Run a statement to its end."""
        from ibis.common.exceptions import IbisError

        backend = self._backend()
        try:
            return backend.sql(sql).to_pyarrow()
        except IbisError as error:
            failure = SegmentFailed(f"{self.name} could not answer: {str(error).splitlines()[0]}")
        # Raised outside of the handler, so that a traceback ends here and not in the client library's own error.
        raise failure

    def stop(self, job: str) -> None:
        """Leave the statement to the warehouse's own limits: Ibis has no way to end one of several."""

    def plan(self, sql: str) -> str:
        """Return the plan, where the warehouse has a statement for it."""
        if self.name != "trino":
            return f"{self.name} shows the plan of a statement only after it has run."
        rows = self._backend().raw_sql(f"EXPLAIN {sql}").fetchall()
        return "\n".join(str(row[0]) for row in rows)

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            if self._connected is not None:
                self._connected.disconnect()
                self._connected = None

    def _backend(self) -> Any:
        with self._lock:
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def _connect(self) -> Any:
        try:
            return self.connect()
        # A backend is an attribute of ibis: without its extra, looking it up or importing its client fails.
        except (ImportError, AttributeError):
            raise ConfigError(f'{self.name}:// needs its client: pip install "nbext[{self.name}]"') from None


def bigquery(project: str, dataset: str) -> Warehouse:
    """Return a BigQuery dataset that holds the tables."""
    where = {"catalog": project, "database": dataset}
    return Warehouse("bigquery", lambda: ibis.bigquery.connect(project_id=project, dataset_id=dataset), where)


def trino(host: str, port: int, user: str, catalog: str, schema: str) -> Warehouse:
    """Return a Trino schema that holds the tables."""
    where = {"catalog": catalog, "database": schema}
    return Warehouse(
        "trino",
        lambda: ibis.trino.connect(host=host, port=port, user=user, database=catalog, schema=schema),
        where,
    )
