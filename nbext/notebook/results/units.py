"""Amounts in a token's unit: the raw integers of a segment, divided by ten to the power of the decimals."""

from __future__ import annotations

import contextlib
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal, cast

from nbext.core.uint256 import in_units
from nbext.core.untrusted_text import quoted
from nbext.errors import ValidationError

if TYPE_CHECKING:
    import pandas as pd


def to_units(frame: pd.DataFrame, as_: Literal["decimal", "float"] = "decimal") -> pd.DataFrame:
    """Return the table with its amounts in the tokens' units.

    Parameters
    ----------
    frame
        A segment's rows; ``attrs["nbext"]["columns"]`` says which columns are amounts, and their decimals.
    as_
        ``decimal``: exact, as ``decimal.Decimal``; ``float``: float64, rounded to about 16 digits, for plots.

    Returns
    -------
    pandas.DataFrame
        A new table of the same columns and rows. Columns whose token's decimals are unknown stay raw.
        A table that was converted already is returned unchanged.

    Raises
    ------
    ValidationError
        ``as_`` is neither, the table is not a DataFrame or not a segment's, or an amount is not a number.
    """
    if as_ not in ("decimal", "float"):
        raise ValidationError.of("as_", "choice", f"{as_!r} is not allowed. Use 'decimal' or 'float'.")
    if not hasattr(frame, "attrs"):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise ValidationError.of("frame", "type", f"A {kind} is not allowed. Give a segment's pandas.DataFrame.")
    about = frame.attrs.get("nbext")
    if not about or "columns" not in about:
        raise ValidationError.of(
            "frame", "provenance", "This table is not a segment's: its attrs['nbext'] are missing."
        )
    units = frame.copy()
    # Copies, because the given table must not change, its provenance included.
    columns = [dict(column) for column in about["columns"]]
    for column in columns:
        decimals = column.get("decimals")
        if decimals is not None and column["name"] in units and column.get("unit") != "token":
            units[column["name"]] = _in_units(cast("pd.Series[Any]", units[column["name"]]), int(decimals), as_)
            # Recorded in the provenance, so that a second call does not divide again.
            column["unit"] = "token"
    units.attrs["nbext"] = {**about, "columns": columns}
    return units


def _in_units(raw: pd.Series[Any], decimals: int, as_: str) -> pd.Series[Any]:
    import pandas as pd

    exact = [None if pd.isna(value) else in_units(_number(value, raw.name), decimals) for value in raw]
    if as_ == "decimal":
        return pd.Series(exact, index=raw.index, name=raw.name, dtype=object)
    floats = [float("nan") if value is None else float(value) for value in exact]
    return pd.Series(floats, index=raw.index, name=raw.name, dtype="float64")


def _number(value: Any, name: Any) -> Decimal:
    # Not through int: an amount that is no longer a whole number must not be cut to one.
    with contextlib.suppress(InvalidOperation):
        return Decimal(str(value))
    raise ValidationError.of("frame", "value", f"{name} contains {quoted(value)}, which is not a number.")
