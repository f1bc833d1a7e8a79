"""Python values as JSON values, exactly: what ``{{expression}}`` becomes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from nbext.core.strict_json import NotJson


def json_value(value: Any) -> Any:
    """Return the value as dicts, lists, texts, whole numbers, Decimals, floats, booleans and None.

    Series, Index, arrays, tuples, ranges and sets (sorted) become lists; times become ISO-8601 in UTC
    (a time without a zone is taken as UTC); numpy's and pandas's numbers become Python's.

    Raises
    ------
    NotJson
        NaN, infinity, a missing value, bytes, a DataFrame of several columns, or any other object.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, datetime.date):
        return _time(value)
    if isinstance(value, bytes | bytearray):
        raise NotJson("value", "bytes have no JSON form; an address is a text: '0x' + value.hex()")
    if isinstance(value, Mapping):
        return _object(value)
    return _from_library(value)


def _number(value: float | Decimal) -> float | Decimal:
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise NotJson("value", f"{value} has no JSON form; leave missing and infinite values out")
    # numpy's float64 is a float too, and writes itself otherwise.
    return value if isinstance(value, Decimal) else float(value)


def _time(value: datetime.date) -> str:
    if type(value).__name__ == "NaTType":  # a datetime to isinstance
        raise NotJson("value", "a missing time has no JSON form; drop missing values first")
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    utc = value.astimezone(datetime.UTC) if value.tzinfo else value
    return utc.replace(tzinfo=None).isoformat() + "Z"


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise NotJson("value", f"the key {key!r} is not a text")
    return {key: json_value(item) for key, item in value.items()}


def _from_library(value: Any) -> Any:
    """Take what numpy, pandas and polars hand out, by what it can do: none of them is imported here."""
    # A table first: it can also be iterated, over its columns' names.
    if hasattr(value, "columns"):
        return _single_column(value)
    if type(value).__name__ == "NAType":
        raise NotJson("value", "a missing value has no JSON form; drop missing values first")
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        item = value.item()
        if type(item) is type(value):
            raise NotJson("value", _unknown(value))
        return _stamp(value) if type(value).__name__ == "datetime64" else json_value(item)
    # Sorted: the same set makes the same query, and so the same segment's id.
    if isinstance(value, set | frozenset):
        return sorted((json_value(item) for item in value), key=repr)
    if hasattr(value, "tolist"):
        return [json_value(item) for item in (value if getattr(value, "ndim", 1) == 1 else value.tolist())]
    if isinstance(value, Iterable):
        return [json_value(item) for item in value]
    raise NotJson("value", _unknown(value))


def _stamp(value: Any) -> str:
    text = str(value)
    if text == "NaT":
        raise NotJson("value", "a missing time has no JSON form; drop missing values first")
    return text + ("Z" if "T" in text else "")


def _single_column(frame: Any) -> list[Any]:
    columns = [str(name) for name in frame.columns]
    if len(columns) != 1:
        choice = "address" if "address" in columns else (columns or ["name"])[0]
        raise NotJson(
            "value",
            f"it is a DataFrame of {len(columns)} columns ({', '.join(columns[:8])}); "
            f"choose one, such as [{choice!r}]"
        )
    return [json_value(item) for item in frame[frame.columns[0]]]


def _unknown(value: Any) -> str:
    return f"a {type(value).__name__} has no JSON form; use texts, numbers, times, lists, dicts or a column"
