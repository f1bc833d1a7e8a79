"""Values of tables as texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def is_missing(value: object) -> bool:
    """Say whether a value is unknown: None, NA or NaN."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def shown(value: object) -> str:
    """Return the value as text; an unknown one as an empty text."""
    return "" if is_missing(value) else str(value)


def count_text(value: Any) -> str:
    """Return a count with its thousands set apart; what is no number, as it is."""
    if is_missing(value) or isinstance(value, bool):
        return ""
    try:
        return f"{int(value):,}"
    except (TypeError, ValueError):
        return str(value)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows, each as a dict."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def about(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what a table says of where it came from."""
    known = frame.attrs.get("nbext", {})
    return known if isinstance(known, dict) else {}
