"""Where a table comes from: the plain values in ``df.attrs["nbext"]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.client.remote.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client.segment_run import Run


def of_query(table: pd.DataFrame, reading: Reading, body: Mapping[str, Any], run: Run) -> None:
    """Write what is known of a query's table: from the answer where it says so, else from the request."""
    told: Mapping[str, Any] = reading.document if isinstance(reading.document, dict) else {}
    counts = told.get("counts") if isinstance(told.get("counts"), dict) else {}
    matched = (counts or {}).get("matched", reading.stated.get("total"))
    limit = told.get("limit", body.get("limit"))
    table.attrs["nbext"] = {
        "segment_id": run.id,
        "operation": "execute_segment" if body else "export",
        "service": run.transport.origin.url,
        "status": reading.word,
        "operator": told.get("operator", body.get("operator")),
        "filters": told.get("filters", body.get("filters")),
        "limit": limit,
        "chain": told.get("chain", (body.get("filters") or {}).get("chain")),
        "as_of": told.get("asOf"),
        "matched": matched,
        "returned": len(table),
        "truncated": bool(told.get("truncated", matched is not None and matched > len(table))),
        "columns": told.get("columns") or columns_of(table),
        "seconds": round(run.deadline.spent(), 3),
        "cached": bool(told.get("cached", False)),
        "warnings": [*(told.get("warnings") or []), *reading.warnings],
    }


def columns_of(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return the columns of a table whose service did not describe them, as they were read."""
    kinds = {"str": "string", "string": "string", "int64": "integer", "Int64": "integer", "boolean": "boolean"}
    return [{"name": str(name), "type": kinds.get(str(kind), "object")} for name, kind in table.dtypes.items()]


def of_lookup(table: pd.DataFrame, operation: str, service: str, warnings: list[str], **more: Any) -> None:
    """Write what is known of a table that is no segment."""
    table.attrs["nbext"] = {"operation": operation, "service": service, "warnings": warnings, **more}
