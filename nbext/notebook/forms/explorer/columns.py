"""A table's columns as the explorer knows them: each with a key in Arrow that sorts, filters and adds up exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nbext.client.frames import inferred, label_names
from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.uint256 import ungrouped, units_text
from nbext.core.untrusted_text import quoted, visible
from nbext.errors import UsageError
from nbext.notebook.forms.distribution import Bins, ranges, trimmed
from nbext.notebook.forms.markup import is_repeated, text_of
from nbext.notebook.results.numbers import IS_ID, IS_SHARE
from nbext.notebook.results.tables import is_missing

if TYPE_CHECKING:
    import pandas as pd

# Digits of a uint256, and of Arrow's widest decimals.
_DIGITS, _WIDE = 78, 76
_EXACT = Context(prec=200)
# A sum up to here has room in Arrow's widest decimals.
_ROOM = 1e75
_DAY = 86_400_000_000
# The first day that there is, and the last one: 9999-12-31 is written for what has no end.
_DAYS = (np.datetime64("0001-01-01"), np.datetime64("9999-12-31"))
# Of a value that is missing, and between values; no text has them, as what is hidden in one is written as an escape.
_MISSING, _BETWEEN = "\0", "\x7f"
_MOST_VALUES = 8
# As `views/numbers.js` takes them: of others, such as 2025-W05-5, a day would not be all of it.
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
# With what a bound that is not part of its filter begins.
_BELOW = {"min": "", "max": "< "}


@dataclass(frozen=True)
class TableColumn:
    """A column: ``kind`` is number, text, address, time or flag; ``key`` an Arrow array in the order of the rows.

    Numbers that are too long for Arrow's decimals are texts of digits there, all of one length.
    """

    name: str
    kind: str
    key: Any
    # What the service says of it: unit, symbol, decimals, chain, address.
    about: Mapping[str, Any]

    @property
    def decimals(self) -> int:
        """How many of a number's digits are a fraction of the token; 0 of a column without a token's unit."""
        return int(self.about["decimals"]) if self.has_unit else 0

    @property
    def has_unit(self) -> bool:
        """Whether its numbers are exact, in the smallest unit of a token; those made floats are as they are shown."""
        return self.kind == "number" and not self._is_float and is_repeated(self.about)

    @property
    def _is_float(self) -> bool:
        return bool(pa.types.is_floating(self.key.type))

    @property
    def _places(self) -> int:
        """How many digits after the point a bound can have: of floats in a token's unit those of the token."""
        if self._is_float:
            return int(self.about.get("decimals") or 0) if self.about.get("unit") == "token" else 0
        return self.decimals + getattr(self.key.type, "scale", 0)

    def described(self) -> dict[str, Any]:
        """Return what the page shows in the heading and makes filters of."""
        unit = text_of(self.about.get("symbol")) if self.has_unit else ""
        return {
            "name": visible(self.name),
            "kind": self.kind,
            "unit": visible(unit, 40),
            # Whole numbers under such a name count shares.
            "share": self._is_float
            and (self.about.get("unit") == "share" or bool(IS_SHARE.search(self.name))),
            "id": bool(IS_ID.search(self.name)),
            # Without these a page adds floats up.
            "decimals": None if self._is_float else self._places,
        }

    @cached_property
    def _written(self) -> str:
        """How times are written after the year: of whole days as days, of whole seconds without fractions."""
        for unit, form in (("day", "-%m-%d"), ("second", "-%m-%dT%H:%M:%SZ")):
            if pc.all(pc.equal(self.key, pc.floor_temporal(self.key, unit=unit))).as_py():
                return form
        return "-%m-%dT%H:%M:%S.%fZ"

    def values(self) -> dict[str, Any]:
        """Return the values as a page holds them, with bins of all: as one exact text; of addresses their digits."""
        texts = [_MISSING if one is None else one for one in map(self.text, self.key.to_pylist())]
        between = _BETWEEN
        if self.kind == "address" and all(map(looks_like_address, texts)):
            # Marks between them would take a twentieth of the page: random digits can't be compressed around them.
            texts, between = [text[2:] for text in texts], ""
        return {"texts": between.join(texts), "bins": self.bars(self.key.drop_null())}

    def matching(self, asked: Mapping[str, str], rows: Any) -> Any:
        """Return which rows of the key a filter takes, as an Arrow mask, null where a value is missing.

        `UsageError` where a bound cannot be read. A ``max`` that begins with < is not part of what it takes; a ``text``
        that begins with = is the whole text.
        """
        text = asked.get("text", "")
        if self.kind in ("text", "address", "flag"):
            if text.startswith("="):
                return pc.equal(rows, text[1:])
            return pc.match_substring(rows, text, ignore_case=True)
        masks = [
            self._compared(rows, asked[side], side) for side in ("min", "max") if asked.get(side)
        ]
        return reduce(pc.and_, masks or [pc.is_valid(rows)])

    def _compared(self, rows: Any, text: str, side: str) -> Any:
        compare = pc.greater_equal if side == "min" else pc.less_equal
        if self.kind == "time":
            edge: Any = day_or_instant(text, side, self.name)
        elif self._is_float:
            compare = pc.less if text.startswith("<") else compare
            edge = float(number(text.lstrip(_BELOW[side]), self.name))
        elif pa.types.is_string(self.key.type):
            whole = min(self._edge(text, side), 10**_DIGITS - 1)
            # Of a bound below 0 a text that is less than any digits.
            edge = str(whole).rjust(_DIGITS, "0") if whole >= 0 else ""
        else:
            whole = min(max(self._edge(text, side), 1 - 10**_WIDE), 10**_WIDE - 1)
            edge = _EXACT.scaleb(Decimal(whole), -self.key.type.scale)
        return compare(rows, pa.scalar(edge, self.key.type))

    def _edge(self, text: str, side: str) -> int:
        """Return the nearest of the numbers that the column can hold within a bound: comparing with it is exact."""
        is_below = text.startswith("<")
        rounding = ROUND_CEILING if side == "min" or is_below else ROUND_FLOOR
        bound = number(text.lstrip(_BELOW[side]), self.name)
        edge = _EXACT.scaleb(bound, self._places)
        return int(edge.to_integral_value(rounding, _EXACT)) - is_below

    def bound(self, text: str, side: str) -> str:
        """Return a bound as a condition takes it: a second, or digits in the token's unit where the column has one."""
        if self.kind == "time":
            # The first second that lies within it, or the last one.
            late = timedelta(microseconds=999_999 * (side == "min"))
            return f"{day_or_instant(text, side, self.name) + late:%Y-%m-%dT%H:%M:%SZ}"
        whole = self._edge(text, side)
        # Of no lower bound below zero: no amount is. An upper one, with which no row matches, is refused as it is.
        return unit_digits(max(whole, 0) if side == "min" else whole, self._places)

    def text(self, value: Any) -> str | None:
        """Return a value of the key as the page shows it; None where it is missing."""
        if value is None:
            return None
        if self.kind == "time":
            # %Y writes the year 999 with three digits, which no page reads.
            return f"{value.year:04}{value:{self._written}}"
        if self.kind != "number":
            return str(value)
        return repr(value) if isinstance(value, float) else unit_digits(value, self.decimals)

    def summed_up(self, rows: Any) -> dict[str, Any]:
        """Return what the page says of some rows of the key: missing, distinct, extremes, the exact sum."""
        known = rows.drop_null()
        made: dict[str, Any] = {"missing": rows.null_count}
        if self.kind not in ("number", "time"):
            made["distinct"] = pc.count_distinct(known).as_py()
        elif len(known):
            least, most = pc.min_max(known).as_py().values()
            made |= {"min": self.text(least), "max": self.text(most)}
            if self.kind == "number":
                made["sum"] = self._sum(known)
        return made

    @cached_property
    def _bins(self) -> Bins:
        """Bins of all rows, each of which is in one: those of some of them are compared with all."""
        known = self.key.drop_null()
        if self._is_float:
            known = known.filter(pc.is_finite(known))
        if not len(known):
            return []
        if is_time := self.kind == "time":
            values = known.cast("int64").to_numpy(zero_copy_only=False) // _DAY
        else:
            values = _floats(known) / 10.0**self.decimals
        ends = list(map(self.text, pc.min_max(known).as_py().values()))
        made = (_dated(bins) if is_time else bins for bins in ranges(values, ends))
        counted = (self._counted(bins, known) for bins in made)
        return next(bars for bars in counted if sum(one["count"] for one in bars) == len(known))

    def bars(self, rows: Any) -> Bins:
        """Return how some rows of the key are spread: bars with the filters that take them, one for those missing."""
        if self.kind in ("number", "time"):
            bars = self._counted(self._bins, rows)
        else:
            bars = self._names(rows.drop_null()) if self.kind != "address" else []
        return [*bars, *[{"name": "missing", "count": rows.null_count}] * bool(rows.null_count)]

    def _counted(self, bins: Bins, rows: Any) -> Bins:
        """Return bins with how many rows their filters take, without the empty ones at both ends."""
        return trimmed([{**one, "count": self.matching(one, rows).true_count} for one in bins])

    def _sum(self, known: Any) -> str:
        if self._is_float:
            total = pc.sum(known).as_py()
            return f"about {total!r}" if math.isfinite(total) else str(total)
        # An approximate sum decides whether Arrow's exact one has room; Python's numbers always have.
        if not pa.types.is_string(known.type) and np.abs(_floats(known)).sum() < _ROOM:
            return unit_digits(pc.sum(known).as_py(), self.decimals)
        with localcontext(_EXACT):
            return unit_digits(sum(map(Decimal, known.to_pylist()), Decimal(0)), self.decimals)

    def _names(self, known: Any) -> Bins:
        found = pa.RecordBatch.from_struct_array(pc.value_counts(known))
        if len(found) > len(known) / 2:
            return []
        # Of equally many the first by name, as a page has them.
        order = [("counts", "descending"), ("values", "ascending")]
        return [
            {"name": one["values"], "count": one["counts"], "text": f"={one['values']}"}
            for one in found.take(pc.select_k_unstable(found, _MOST_VALUES, order)).to_pylist()
        ]


def _floats(known: Any) -> Any:
    return known.cast("float64").to_numpy(zero_copy_only=False)


def _dated(bins: Bins) -> Bins:
    """Return bins of days since 1970 with dates as their bounds."""

    def day(bound: str) -> str:
        *below, days = bound.split()
        return " ".join([*below, str(np.clip(np.datetime64(int(days), "D"), *_DAYS))])

    return [
        {"min": (low := day(one["min"])), "max": day(one["max"]), "name": f"from {low}"}
        for one in bins
    ]


def unit_digits(value: Any, decimals: int) -> str:
    """Return an exact number in its token's unit as plain digits."""
    return units_text(str(value), decimals).replace(",", "")


def columns_of(frame: pd.DataFrame, caller: str) -> list[TableColumn]:
    """Return a table's columns; `UsageError`, by the name of the caller, where it is none.

    One whose amounts are in the token's unit is there once, under its own name, and read from the exact column beside
    it. What names the rows comes before all others.
    """
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise UsageError(f"{caller} needs a DataFrame, not {visible(type(frame).__name__)}.")
    stated = Provenance.of(frame).described()
    index, names = frame.index, [str(name) for name in frame.columns]
    labels = [
        _column(name, index.get_level_values(level).to_series(), {})
        for level, name in enumerate(label_names(frame))
    ]
    shown = {
        exact: name
        for name in names
        if (exact := f"{name}_raw") in names
        and is_repeated(stated.get(exact))
        and stated.get(name, {}).get("unit") == "token"
    }
    columns = [
        _column(shown.get(name, name), frame.iloc[:, place], stated.get(name, {}))
        for place, name in enumerate(names)
        if name not in shown.values()
    ]
    return [*labels, *columns]


def _column(name: str, values: pd.Series[Any], about: Mapping[str, Any]) -> TableColumn:
    if values.dtype.kind == "O" and values.dtype != "str":
        # Of a period Arrow has the number of months since 1970, and of an interval its ends.
        values = values.astype(object)
    try:
        key = pa.array(values, from_pandas=True)
        if pa.types.is_dictionary(key.type):
            key = key.cast(key.type.value_type)
        if pa.types.is_timestamp(key.type) or pa.types.is_nested(key.type):
            # None of what is nested: Arrow's records have the fields of all, and its lists floats for whole numbers.
            pc.min_max(key).as_py()
    except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
        # Objects of several types, numbers past 64 bits, half of a pair of characters, years past 9999: their texts.
        given = [
            None if is_missing(one) else one for one in values.astype(object).to_numpy().tolist()
        ]
        key = _texts(given)
        if inferred([one for one in given if one is not None]) == "integer":
            about = {**about, "type": "uint256"}
            with suppress(pa.ArrowInvalid):  # those of 77 and 78 digits
                key = pa.array(given, pa.decimal256(_WIDE))
    key = key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key
    if pa.types.is_duration(key.type):
        key = key.cast(pa.duration("us"), safe=False).cast(pa.int64())
        about = {"unit": "raw", "decimals": 6, "symbol": "seconds"}
    kind, key = _keyed(key, about)
    return TableColumn(name, kind, key, about)


def _texts(values: list[Any]) -> Any:
    """Return values as their texts, as in a notebook's table: what is searched and compared is what is read."""
    # The text of a long array has no middle.
    plain = (one.tolist() if isinstance(one, np.ndarray) else one for one in values)
    return pa.array([None if one is None else visible(one, None) for one in plain], pa.string())


def _keyed(key: Any, about: Mapping[str, Any]) -> tuple[str, Any]:
    types = pa.types
    if types.is_floating(key.type):
        # Arrow does not sort half floats.
        key = key.cast(pa.float64())
        return "number", pc.if_else(pc.is_nan(key), pa.scalar(None, key.type), key)
    if types.is_integer(key.type) or (types.is_decimal(key.type) and key.type.scale >= 0):
        return "number", key.cast(pa.decimal256(_WIDE, getattr(key.type, "scale", 0)))
    if types.is_boolean(key.type):
        return "flag", key.cast(pa.string())
    if types.is_timestamp(key.type) or types.is_date(key.type):
        # A time of another zone would be written as if it were of UTC.
        zone = getattr(key.type, "tz", None) and "UTC"
        return "time", key.cast(pa.timestamp("us", zone), safe=False)
    if (
        str(key.type) not in ("string", "large_string")
        or pc.any(pc.match_substring_regex(key, "[^ -~]")).as_py()
    ):
        key = _texts(key.to_pylist())
    key = key.cast(pa.string())
    if (
        about.get("type") == "uint256"
        and pc.all(pc.match_substring_regex(key, rf"\A[0-9]{{1,{_DIGITS}}}\z")).as_py()
    ):
        return "number", pc.utf8_lpad(key, _DIGITS, "0")
    is_address = any(map(looks_like_address, key.drop_null()[:1].to_pylist()))
    return ("address" if is_address else "text"), key


def number(text: str, name: str) -> Decimal:
    """Return the number that a filter's bound says; `UsageError` where it is none."""
    try:
        bound = _EXACT.create_decimal(ungrouped(text.strip()))
        if bound.is_finite() and len(text) <= 400 and abs(bound.adjusted()) < 400:
            return bound
    except InvalidOperation:
        pass
    raise UsageError(
        f"{visible(name, 60)}: {quoted(text, 60)} is not a number. Write digits, such as 1000 or 0.5."
    )


def day_or_instant(text: str, side: str, name: str) -> datetime:
    """Return the instant of a filter's bound; of a day alone its first second, or for ``max`` its last one."""
    time = text.lstrip(_BELOW[side])
    is_day = side == "max" and bool(re.fullmatch(r"[\d-]+", text.strip()))
    try:
        # Of what is not written so an empty text, which is none either.
        written = _TIME.fullmatch(time.strip().upper())
        found = datetime.fromisoformat(written[0] if written else "")
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        return found + timedelta(days=is_day, microseconds=-(is_day or text.startswith("<")))
    except (ValueError, OverflowError):
        message = f"{visible(name, 60)}: {quoted(time, 60)} is not a time. Write 2025-01-31 or 2025-01-31T12:00:00Z."
        raise UsageError(message) from None
