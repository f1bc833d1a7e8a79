"""Tables: the one place where a value's type in an answer becomes a column's dtype.

    string   str
    integer  int64; Int64 where some are missing
    uint256  decimal128(38, 0) in Arrow; decimal256(76, 0), or text, where a value or their sum has more digits
    float64  float64
    number   float64 where that is exact; else the exact digits, as str
    timestamp  datetime64[s, UTC]
    boolean  boolean
    object   object: lists and objects, as Python has them

Whole numbers without a stated type are int64 where every value of the column fits; else as uint256.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nbext.core.rules import is_whole
from nbext.core.times import TIMESTAMP
from nbext.core.uint256 import amount_type, as_texts, size_of
from nbext.core.untrusted_text import quoted
from nbext.errors import ProtocolError

# 007 is a name and no number: as one it would come back as 7. Python reads no number of thousands of digits.
_WHOLE = re.compile("0|-?[1-9][0-9]{0,99}")
INT64 = range(-(2**63), 2**63)
_ROWS_AT_ONCE = 10_000
# Text: pandas' ``str``, kept in Arrow. Named in full: "str" alone is another where pyarrow is not installed.
TEXT: Any = pd.StringDtype("pyarrow", na_value=np.nan)
_AS_INTEGERS = ".astype(object) makes Python's integers of all."
Record = Mapping[str, Any]
# Types of columns, as above, by name.
Types = Mapping[str, str]


def frame(
    records: Sequence[Record], types: Types | None = None, configured: Types | None = None
) -> pd.DataFrame:
    """Return records as a table: the columns of ``types`` first, then others in order of appearance.

    ``configured`` has types from the settings, which say nothing of the order of columns. A column without a type gets
    the narrowest one that holds its values exactly.
    """
    types, configured = types or {}, configured or {}
    # A type that is "" names the column alone.
    kinds = {**configured, **{name: kind for name, kind in types.items() if kind}}
    # A table without rows whose service names no columns has those of the settings.
    names = list(
        dict.fromkeys([*types, *(name for record in records for name in record)]) or configured
    )
    columns = {
        name: typed_column([record.get(name) for record in records], kinds.get(name))
        for name in names
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(records)), columns=pd.Index(names))


def typed_column(values: Sequence[Any], kind: str | None) -> Any:
    """Return values as an array of the dtype that their type has."""
    present = [value for value in values if value is not None]
    fits = _FITS.get(kind or "")
    if fits is None or not all(fits(value) for value in present):
        # No type, or the answer has something else than its type says: it stays as it came.
        kind = inferred(present)
    if kind == "timestamp":
        return pd.to_datetime(list(values), format="ISO8601", utc=True).as_unit("s").array
    if kind == "object":
        return pd.Series(list(values), dtype=object).array
    makes: dict[Any, Any] = {"number": float, "float64": float, "boolean": bool, "integer": int}
    make = makes.get(kind, str)
    if make is int and not all(int(v) in INT64 for v in present):
        make = str
    plain = [None if v is None else make(v) for v in values]
    if make is float:
        # NaN is a number to float64: a missing one needs the masked dtype, unless the dtype is promised.
        dtype: Any = "float64" if kind == "float64" or len(present) == len(values) else "Float64"
        return pd.array(plain, dtype=dtype)
    arrow = {str: "string", bool: "bool", int: "int64"}[make]
    return _from_arrow(pa.chunked_array([pa.array(plain, arrow)]), kind or "")


def inferred(present: Sequence[Any]) -> str:
    """Return the type that the values have themselves; text stays text, whatever it looks like."""
    own = {**_FITS, "integer": is_whole}
    kinds = ("string", "boolean", "integer", "number")
    found = next((kind for kind in kinds if all(map(own[kind], present))), "object")
    # A fraction that float64 does not hold exactly makes its column the digits of all.
    are_numbers = all(is_whole(v) or isinstance(v, Decimal) for v in present)
    return "string" if found == "object" and are_numbers else found


# pandas' stubs leave out the methods that its arrays are made of.
_ArrowArray: Any = pd.arrays.ArrowExtensionArray


class ExactArray(_ArrowArray):  # type: ignore[misc]  # as above
    """An array of exact integers: Arrow's decimals, computed with as Python computes with integers.

    Arrow itself refuses every sum and product of decimals whose digits might pass its 38 or 76. What is no whole
    number, such as a quotient or a mean, is the nearest float64. A million rows take two seconds.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle opens where nbext is not installed.
        return _ArrowArray, (self._pa_array,)

    # Python gets integers: Decimals compute with 28 digits, and round what has more without a word. NumPy gets
    # Decimals all the same: Spark makes integers of more than 64 bits null, and refuses these.
    def __iter__(self) -> Iterator[Any]:
        for piece in self._pa_array.iterchunks():
            yield from (pd.NA if one is None else int(one) for one in piece.to_pylist())

    def __getitem__(self, item: Any) -> Any:
        return _as_integer(super().__getitem__(item))

    def map(self, mapper: Any, na_action: Any = None) -> Any:
        return pd.api.extensions.ExtensionArray.map(self, mapper, na_action)

    def _reduce(self, name: str, **options: Any) -> Any:
        return _narrowed(self._operand(name)._reduce(name, **options))

    def _groupby_op(self, *, how: str, **options: Any) -> Any:
        return _narrowed(self._operand(how)._groupby_op(how=how, **options))

    def _operand(self, name: str) -> Any:
        """Return what Arrow computes rightly with: of decimals it cuts a mean, and a sum or product overflows."""
        if name == "mean":
            return _ArrowArray(self._pa_array.cast("float64"))
        if name == "prod" or (name == "sum" and amount_type(size_of(self._pa_array)) == "string"):
            raise OverflowError(f"A {name} has more digits than its type. {_AS_INTEGERS}")
        return _ArrowArray(self._pa_array.cast(pa.decimal256(76, 0))) if name == "sum" else super()

    def _cmp_method(self, other: Any, op: Any) -> Any:
        # Arrow takes integers of 64 bits alone for a number.
        return super()._cmp_method(_as_decimal(other), op)

    def _arith_method(self, other: Any, op: Any) -> Any:
        if "divmod" in op.__name__:
            return tuple(
                self._arith_method(other, lambda one, two, at=at: op(one, two)[at]) for at in (0, 1)
            )
        many = hasattr(other, "__len__") and not isinstance(other, str)
        others = _exactly(other) if many else _exactly([other]) * len(self)
        return _whole_or_float(
            [_computed(op, *pair) for pair in zip(_exactly(self), others, strict=True)]
        )

    def _accumulate(self, name: str, *, skipna: bool = True, **options: Any) -> Any:
        steps: dict[str, Any] = {"cumsum": None, "cummax": max, "cummin": min}
        if name not in steps or self._pa_array.null_count:
            return super()._accumulate(name, skipna=skipna, **options)
        return _whole_or_float(list(accumulate(_exactly(self), steps[name])))

    def isin(self, values: Any) -> Any:
        return super().isin([_as_decimal(one) for one in values])

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        if pd.api.types.is_object_dtype(dtype):
            return np.array(list(self), dtype=object)
        try:
            return super().astype(dtype, copy=copy)
        except OverflowError:
            raise OverflowError(f"A value has more than 64 bits. {_AS_INTEGERS}") from None


def _as_integer(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value


def _as_decimal(value: Any) -> Any:
    return Decimal(int(value)) if is_whole(value) else value


def _narrowed(found: Any) -> Any:
    """Return what was reduced, with whole numbers as integers: in a column of the narrowest decimals, or alone."""
    if "decimal256" not in str(getattr(found, "dtype", "")):
        return _as_integer(found)
    return _whole_or_float(_exactly(found))


def _exactly(values: Iterable[Any]) -> list[Any]:
    """Return numbers as Python computes with them exactly: whole ones as integers."""
    return [
        None
        if pd.isna(one)
        else int(one)
        if is_whole(one) or (isinstance(one, Decimal) and one == int(one))
        else one
        for one in values
    ]


def _computed(op: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    try:
        return None if None in (one, other) else op(one, other)
    except ZeroDivisionError:
        return float("nan")


def _whole_or_float(values: list[Any]) -> Any:
    present = [one for one in values if one is not None]
    if not all(map(is_whole, present)):
        return typed_column(values, "float64")
    # Of more digits than Arrow's decimals have, they stay Python's.
    return typed_column(values, "uint256" if sum(map(abs, present)) < 10**76 else "object")


def exact_column(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the digits of whole numbers as the narrowest decimals that hold their sum, too, or as text."""
    parts = []
    # Part by part: the wide numbers of all of a million rows at once would take as much as the table.
    for part in texts.chunks:
        # Measured first: a cast of 39 digits to 38, and of 78 to 76, may return another number without a word.
        longest = pc.max(pc.binary_length(pc.utf8_ltrim(part, "-"))).as_py() or 0
        parts.append(part if longest > 76 else part.cast(amount_type(10**longest - 1)))
    kind = amount_type(sum(map(size_of, parts)))
    return pa.chunked_array([part.cast(kind) for part in parts], kind)


def wide_columns(stated: Types, found: Any) -> list[str]:
    """Return a note for each column of whole numbers that is none, or wider than 38 digits, by its types."""
    notes = []
    for name, kind in stated.items():
        if kind not in ("uint256", "integer") or name not in found:
            continue
        found_type = str(found[name]).removesuffix("[pyarrow]")
        if found_type.startswith("decimal256"):
            notes.append(
                f"{name} or its sum has more than 38 digits: its type is {found_type}, which polars, DuckDB "
                "and Spark do not know. It is text in polars and in Parquet files."
            )
        elif not found_type.lower().startswith(("int", "decimal")):
            is_text = found_type in ("str", "string", "large_string")
            text = "text, which sorts 9 after 10. .map(int) makes numbers of it"
            notes.append(
                f"A value of {name} is not a whole number, or it or its sum has more than 76 digits: it is "
                f"{text if is_text else found_type}."
            )
    return notes


def whole_texts(records: Sequence[Record], table: pd.DataFrame) -> dict[str, str]:
    """Return the type of the columns that are text, and whole numbers in the records."""
    texts = [str(name) for name, dtype in table.dtypes.items() if dtype == TEXT]
    return {
        name: "uint256"
        for name in texts
        if inferred([one[name] for one in records if one.get(name) is not None]) == "integer"
    }


def _digits(value: Any) -> bool:
    """Say whether a value is a whole number, or the digits of one."""
    if not isinstance(value, str):
        return is_whole(value)
    return _WHOLE.fullmatch(value) is not None


def _exact_as_float(value: Any) -> bool:
    try:
        return bool(Decimal(repr(float(value))) == value)
    except OverflowError:
        return False


def json_number(value: Decimal) -> float | str:
    """Return a fraction as JSON can hold it: a float where that is exact, else its digits."""
    return float(value) if _exact_as_float(value) else str(value)


def text_or_json(value: Any) -> str | None:
    """Return a value as text: a text as it is, a missing one as None, anything else as JSON."""
    return (
        value
        if value is None or isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=json_number)
    )


_FITS: dict[str, Any] = {
    "string": lambda value: isinstance(value, str),
    "integer": _digits,
    "uint256": _digits,
    "number": lambda value: (
        (is_whole(value) or isinstance(value, Decimal)) and _exact_as_float(value)
    ),
    "float64": lambda value: is_whole(value) or isinstance(value, float | Decimal),
    "boolean": lambda value: isinstance(value, bool),
    "timestamp": lambda value: isinstance(value, str) and TIMESTAMP.match(value) is not None,
    "object": lambda value: True,
}


def arrow_frame(table: pa.Table, types: Types) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame; text is not copied."""
    columns = {}
    for name in table.column_names:
        values = table.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        is_null, kind = pa.types.is_null(values.type), types.get(name, "")
        columns[name] = (
            typed_column(values.to_pylist(), kind) if is_null else _from_arrow(values, kind)
        )
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows), copy=False)


def is_text(kind: pa.DataType) -> bool:
    """Say whether an Arrow type is text, however long."""
    return kind in ("string", "large_string")


def _from_arrow(values: pa.ChunkedArray, kind: str) -> Any:
    are_digits = is_text(values.type) and kind in ("integer", "uint256")
    # An empty number is missing.
    if (
        are_digits
        and pc.all(pc.match_substring_regex(values, f"^({_WHOLE.pattern})?$")).as_py() is not False
    ):
        digits = pc.if_else(pc.not_equal(values, ""), values, pa.scalar(None, values.type))
        # One beyond 64 bits makes its column exact decimals: floats, which pandas would take, lose digits.
        with contextlib.suppress(pa.ArrowInvalid):
            digits = digits.cast("int64" if kind == "integer" else digits.type)
        fits = pa.types.is_integer(digits.type)
        values = digits if fits else exact_column(digits)
    if pa.types.is_decimal(values.type) and values.type.scale == 0:
        return ExactArray(values)
    dtypes: dict[Any, Any] = dict.fromkeys((pa.string(), pa.large_string()), TEXT)
    dtypes[pa.bool_()] = pd.BooleanDtype()
    if pa.types.is_integer(values.type) and values.null_count:
        # Without the mask a missing value would turn the whole column into floats.
        dtypes[values.type] = pd.Int64Dtype()
    return values.to_pandas(types_mapper=dtypes.get).array


def to_arrow(table: pd.DataFrame, *, flat: bool = False) -> pa.Table:
    """Return a DataFrame as an Arrow table; its provenance goes along, as metadata of the schema.

    A column of objects that have no one type becomes their texts (`text_or_json`); so does, where ``flat``, every
    column of objects. Labels of rows become the first columns.
    """
    # An analysis has its rows' names as its index.
    labels = label_names(table)
    table = table.reset_index(names=labels) if labels else table.copy(deep=False)
    objects = [name for name, dtype in table.dtypes.items() if str(dtype) == "object"]
    for name in objects:
        if flat or not _has_one_type(table[name]):
            table[name] = typed_column([text_or_json(value) for value in table[name]], "string")
    return pa.Table.from_pandas(table, preserve_index=False)


def label_names(frame: pd.DataFrame) -> list[str]:
    """Return what labels of rows are called as columns: ``name`` without a name, and never as another column is.

    Nothing where they do not say what rows are of, as an overlap's do: a number without a name only counts them.
    """
    index, names = frame.index, list(map(str, frame.columns))
    if index.names == [None] and index.dtype.kind in "iu":
        return []
    for label in index.names:
        name = str(label or "name")
        while name in names:
            name += "_"
        names.append(name)
    return names[len(frame.columns) :]


def to_polars(table: pd.DataFrame) -> Any:
    """Return a DataFrame as a polars one."""
    import polars

    return polars.from_arrow(as_texts(to_arrow(table), wide=True))


def _has_one_type(values: pd.Series[Any]) -> bool:
    try:
        pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return False
    return True


def records_of(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a table's rows as plain values, None where one is missing."""
    names = [str(name) for name in table.columns]
    exact_ones = [name for name, dtype in table.dtypes.items() if str(dtype).startswith("decimal")]
    for start in range(0, len(table), _ROWS_AT_ONCE):
        part = table.iloc[start : start + _ROWS_AT_ONCE].copy(deep=False)
        for name, times in part.select_dtypes("datetimetz").items():
            part[name] = times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        # JSON's readers take numbers for floats: exact ones are written as their digits.
        part = part.astype(dict.fromkeys(exact_ones, "str")).astype(object)
        for row in part.where(part.notna(), None).itertuples(index=False, name=None):
            yield dict(zip(names, row, strict=True))


def types_of(columns: Iterable[Any]) -> dict[str, str]:
    """Return each column's type from an answer's list of columns; two columns of one name are a ProtocolError."""
    found: dict[str, str] = {}
    for entry in columns:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            if entry["name"] in found:
                raise ProtocolError(f"The answer has two columns named {quoted(entry['name'])}.")
            found[entry["name"]] = str(entry.get("type", ""))
    return found


def described_columns(table: pd.DataFrame) -> list[dict[str, str]]:
    """Return the columns of a table whose service did not describe them, as they were read."""
    kinds = {
        "str": "string",
        "string": "string",
        "int64": "integer",
        "Int64": "integer",
        "boolean": "boolean",
    }
    return [
        {"name": str(name), "type": kinds.get(str(kind), "object")}
        for name, kind in table.dtypes.items()
    ]


# The parts of ``asOf``, each of which becomes a column: ``asOf.block`` is ``asOfBlock``.
_AS_OF = {"block": "integer", "timestamp": "string"}


def frame_as_of(records: Sequence[Record], fields: Types) -> pd.DataFrame:
    """Return records as a table that has the parts of their ``asOf`` in its place."""
    table = frame(records, fields)
    moments = [one.get("asOf") for one in records]
    for place, (part, kind) in enumerate(_AS_OF.items(), list(table).index("asOf")):
        parts = [one.get(part) if isinstance(one, Mapping) else None for one in moments]
        table.insert(place, f"asOf{part.title()}", typed_column(parts, kind))
    return table.drop(columns="asOf")


def alike(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables; a ProtocolError where one has other columns than the first."""
    schema = None
    for number, table in enumerate(tables, 1):
        schema = table.schema if schema is None else schema
        if table is None or table.schema != schema:
            raise ProtocolError(f"Page {number:,} of the answer has other columns than the first.")
        yield table
