"""Filters as they go out: exact JSON, in which a list of wallets may be a column, a set or a file.

What JSON cannot hold is refused with its place, and never rounded. ``{"wallet": {"in": ...}}`` takes many wallets in
any form. Our own service gets a long list as the 20 bytes of each address, once, under the hash of these bytes,
and is then asked by that. A stranger's service gets its values, as they are written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import count
from numbers import Integral
from typing import Any

import numpy as np

from nbext.client.addresses import AddressColumn, NotAddresses, texts_of
from nbext.client.service import Service
from nbext.core import wire as op
from nbext.core.addresses import WIDTH, list_id
from nbext.core.rules import LIST_FILES, LIST_KEYS
from nbext.core.strict_json import LONE_SURROGATE, MAX_DEPTH, MAX_DIGITS, below
from nbext.core.times import time_text
from nbext.core.untrusted_text import shown
from nbext.errors import InvalidSegment, NotFound, ProtocolError

MAX_VALUES, MAX_BYTES = 50_000, 1_000_000
# Beyond this, a reader of JSON that keeps numbers as doubles would change the last digits.
_EXACT = 2**53
# Filters travel with every table as ``df.attrs``, which pandas copies at each step.
# Up to here, as many as one request may name, they stay where people can read them; a longer list is its hash.
INLINE = op.MAX_WALLETS
# What becomes one JSON value by itself.
_SINGLE = (type(None), bool, str, Integral, float, Decimal, date)
# Conditions, as a user writes them.
Filters = Mapping[str, Any]
# What a list becomes, under ``in`` or as a ``list``; it also gets whether no stored list is beside it.
Change = Callable[[Any, bool], dict[str, Any]]


class Wallets:
    """Many wallets given as one value, read when they are first needed.

    Parameters
    ----------
    value
        A column, a set, any iterable of addresses; a frame with an ``address`` column; or ``@FILE``.
    source
        How it was written, for messages: ``{{allow.address}}``, ``@allow.csv``.
    """

    def __init__(self, value: Any, source: str) -> None:
        self.source, self._value = source, value

    def __str__(self) -> str:
        if not self._is_read:
            return f"wallets of {self.source}"
        return f"{self.count:,} wallets of {self.source} ({self.id})"

    @cached_property
    def packed(self) -> bytes | None:
        """The 20 bytes of each address, in order and each once; None of what `without_addresses` returned.

        `NotAddresses` where a value is none.
        """
        packed = AddressColumn.of(self._value).all(self.source, blanks=True)
        addresses = np.sort(packed.view(f"S{WIDTH}").ravel())
        # A column's text takes three times as much memory, and its owner may change it.
        self._value = self._value if self._is_file else None
        is_first = np.append(True, addresses[1:] != addresses[:-1])[: len(addresses)]
        found: bytes = addresses[is_first].tobytes()
        return found

    @cached_property
    def id(self) -> str:
        """The list's id, which is made of its addresses."""
        return list_id([self.packed or b""])

    @cached_property
    def count(self) -> int:
        """How many different wallets there are."""
        return len(self.packed or b"") // WIDTH

    def texts(self) -> Any:
        """Return the values: as they were written, or once they were read as addresses, in order."""
        if self._is_read and self.packed is not None:
            return texts_of(self.packed)
        # Iterating a frame gives its columns' names.
        if self._is_file or hasattr(self._value, "columns"):
            return AddressColumn.of(self._value).texts.to_pylist()
        return self._value

    def without_addresses(self, *, by_id: bool = True) -> Any:
        """Return what a history remembers of it: the list by its id, where it may be, or a short list itself."""
        if not (by_id and self._is_read) or self._is_file or self.count <= INLINE:
            return self.source if self._is_file else self.texts()
        light = Wallets(None, self.source)
        light.packed, light.id, light.count = None, self.id, self.count
        return light

    @property
    def _is_file(self) -> bool:
        return isinstance(self._value, str)

    @property
    def _is_read(self) -> bool:
        return "packed" in vars(self)


def as_sent(filters: Any, ours: Callable[[], bool]) -> tuple[dict[str, Any], dict[str, Wallets]]:
    """Return filters as a service gets them, and the lists that they name by an id.

    Decimals, dates, times and whole numbers beyond 2**53 become texts; columns, arrays and sets (sorted) lists. What
    JSON cannot hold is an InvalidSegment. ``ours`` says whose service it is, and is asked where there is a list.
    """
    lists: dict[str, Wallets] = {}

    def change(given: Any, alone: bool) -> dict[str, Any]:
        # Of another service's grammar, a text that begins with @ may be anything.
        if isinstance(given, str) and not given.lower().endswith(LIST_FILES) and not ours():
            return {"in": given}
        one = _wallets(given)
        if not ours() or one.count <= INLINE or not alone:
            return {"in": one.texts()}
        lists[one.id] = one
        return {"list": one.id}

    if not isinstance(filters, Mapping):
        kind = type(filters).__name__
        table = ' Its wallets are {"wallet": {"in": table}}.' * hasattr(filters, "columns")
        raise _refused("/filters", f"Expected an object of conditions, got {kind}.{table}")
    plain: dict[str, Any] = _Walk(change).plain(filters, "/filters")
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > MAX_BYTES:
        raise _refused(
            "/filters", f"The filters have {size:,} bytes as JSON. Allowed: {MAX_BYTES:,}."
        )
    return plain, lists


def from_python(value: Any, source: str, key: str = "") -> Any:
    """Return a value from Python, written as ``source`` under a key, as `as_sent` takes it once it has changed here."""
    value = list(value) if isinstance(value, Iterator) else value
    if key in LIST_KEYS:
        value = _as_given(value)
        if _are_many(value):
            return Wallets(value, source)

    def change(given: Any, alone: bool) -> dict[str, Any]:
        return {"in": given if isinstance(given, str) else Wallets(given, source)}

    return _Walk(change, longer_than=-1).plain(value, source, key)


def remembered(filters: Any, *, by_id: bool = False) -> Any:
    """Return filters without the addresses of their long lists: with a summary of each, or with its id."""

    def change(given: Any, alone: bool) -> dict[str, Any]:
        light = _wallets(given).without_addresses(by_id=alone)
        return {"list": light.id} if by_id and isinstance(light, Wallets) else {"in": light}

    return _Walk(change).plain(filters, "/filters")


def store(service: Service, lists: Mapping[str, Wallets]) -> None:
    """Send our own service the lists that it does not have."""
    for name, wallets in lists.items():
        try:
            service.document(service.call("GET", op.LIST.format(id=name)))
        except NotFound:
            if wallets.packed is None:
                gone = f"The service deleted the list {wallets}. Run its cell again."
                raise _refused("/filters", gone, "address") from None
            call = service.call("POST", op.LISTS, deadline="download_deadline")
            headers = {"Content-Type": op.ADDRESSES_TYPE}
            said = service.document(
                replace(call, body=wallets.packed, headers=headers, patient=True)
            ).get("id")
            if said != name:
                raise ProtocolError(
                    f"The service stored the list {name} under another id, {shown(said)}."
                ) from None


class _Walk:
    """One way through filters: each value becomes JSON, and ``change`` says what a list of wallets becomes.

    Those of at most ``longer_than`` wallets, written as a list, stay: the service points at each mistake in them.
    """

    def __init__(self, change: Change, longer_than: int = INLINE) -> None:
        self._change, self._longer_than, self._values = change, longer_than, count(1)

    def plain(self, given: Any, here: str, of: str = "", level: int = 1) -> Any:
        """Return a value of filters, which stands under the key ``of``."""
        if next(self._values) > MAX_VALUES:
            most = f"The filters have more than {MAX_VALUES:,} values, the most that a request can have."
            raise _refused("/filters", most)
        if isinstance(given, Wallets):
            return self._list(given, False, here)["in"]
        # numpy's spans are whole numbers to Python.
        if isinstance(given, _SINGLE) and type(given).__module__ != "numpy":
            return _single(given, here)
        if isinstance(given, Iterator) and self._longer_than < 0:
            # Read once, here: what is returned is a list.
            given = list(given)
        # An object that contains itself ends here as well.
        if level > MAX_DEPTH:
            raise _refused(here[:80], f"nested more than {MAX_DEPTH} levels deep.")
        if isinstance(given, list | tuple):
            return [self.plain(one, f"{here}/{at}", of, level + 1) for at, one in enumerate(given)]
        if not isinstance(given, Mapping):
            return self.plain(_from_library(given, here), here, of, level + 1)
        made: dict[str, Any] = {}
        for key, one in given.items():
            pointer = below(here, key)
            if not isinstance(key, str):
                raise _refused(here, f"the key {key!r:.40} is not a string.")
            name = _single(key, here)
            if (name == "in" and of == "wallet") or name in LIST_KEYS[1:]:
                many = _as_given(one)
                if self._is_list(many):
                    changed = self._list(many, name == "in" and "list" not in given, pointer)
                    made |= changed if name == "in" else {name: changed["in"]}
                    continue
            made[name] = self.plain(one, pointer, name, level + 1)
        return made

    def _is_list(self, value: Any) -> bool:
        if isinstance(value, str):
            return value.startswith("@")
        if isinstance(value, list | tuple) and len(value) <= self._longer_than:
            return False
        return isinstance(value, Wallets) or _are_many(value)

    def _list(self, given: Any, alone: bool, here: str) -> dict[str, Any]:
        try:
            made = self._change(given, alone)
        except NotAddresses as error:
            raise _refused(here, str(error), "address") from None
        many = made.get("in")
        is_left = many is None or isinstance(many, Wallets)
        return made if is_left else {"in": self.plain(many, here)}


def _as_given(value: Any) -> Any:
    """Return a path as the text that names a file; anything else as it is."""
    return f"@{os.fspath(value)}" if isinstance(value, os.PathLike) else value


def _are_many(value: Any) -> bool:
    """Say whether a value is many wallets, and neither a single one nor a few of which one is a word or a segment."""
    many = isinstance(value, Iterable) or hasattr(value, "columns")
    # What can be read only once would be an empty list the next time.
    single = isinstance(value, str | bytes | Mapping | Iterator)
    if not many or single or getattr(value, "ndim", 1) == 0:
        return False
    if not hasattr(value, "__len__") or len(value) > INLINE:
        return True
    return not any(str(one).startswith("sg_") or str(one) == "burn" for one in value)


def _wallets(given: Any) -> Wallets:
    if isinstance(given, Wallets):
        return given
    return Wallets(given, given if isinstance(given, str) else "the list")


def _refused(pointer: str, detail: str, code: str = "value") -> InvalidSegment:
    return InvalidSegment.of(pointer, code, detail)


def _single(given: Any, here: str) -> Any:
    """Return one value as JSON holds it exactly."""
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str):
        if LONE_SURROGATE.search(given):
            half = "The text has half a character (a lone surrogate), which UTF-8 cannot carry."
            raise _refused(here, half)
        # Enums are texts, but not to every encoder; str() of one is its name.
        return str.__str__(given)
    if isinstance(given, date):
        # NaT, which equals nothing, is a time to Python.
        if given != given:  # noqa: PLR0124
            raise _missing(here, "time")
        return time_text(given)
    # Python writes no integer of more than 4,300 digits.
    if isinstance(given, Integral) and int(given).bit_length() <= 4 * MAX_DIGITS:
        return int(given) if abs(int(given)) <= _EXACT else str(int(given))
    if isinstance(given, float | Decimal) and not Decimal(given).is_finite():
        why = f"{given} cannot be written as JSON; drop missing and infinite values first."
        raise _refused(here, why)
    if isinstance(given, float):
        return given
    if isinstance(given, Decimal) and abs(given.adjusted()) <= MAX_DIGITS:
        return format(given, "f")
    raise _refused(here, f"{shown(given)} is not a number that JSON can hold.")


def _from_library(given: Any, here: str) -> Any:
    """Return an object of numpy, pandas, polars or Arrow as Python has it; none of them is imported for it."""
    name = type(given).__name__
    unfit = f"a {name} cannot be written as JSON; use strings, numbers, times, lists, dicts or a column."
    if isinstance(given, bytes | bytearray):
        unfit = "bytes cannot be written as JSON; write an address as '0x' + value.hex()."
        raise _refused(here, unfit)
    if name == "NAType" or (name == "datetime64" and np.isnat(given)):
        raise _missing(here, "value" if name == "NAType" else "time")
    if isinstance(given, os.PathLike):
        return os.fspath(given)
    # A table first: it can also be iterated, over its columns' names.
    if hasattr(given, "columns"):
        given = _single_column(given, here)
    elif getattr(given, "ndim", None) == 0 and hasattr(given, "item"):
        dtype = str(getattr(given, "dtype", ""))
        # As it is shown: of 32 bits more digits would be sent than anybody wrote.
        item = float(str(given)) if dtype in ("float16", "float32") else given.item()
        # What is finer than Python's times is a number to numpy: digits that those lack are left to the service.
        if dtype.startswith("datetime64") and isinstance(item, int):
            near = given.astype("datetime64[us]")
            item = near.item() if near == given else f"{given}Z"
        is_time = dtype.startswith(("datetime64", "timedelta64"))
        if type(item) is type(given) or (is_time and not isinstance(item, date | str)):
            raise _refused(here, unfit)
        return item
    # Arrow's values and columns: iterated, they give its scalars.
    for method in ("as_py", "to_pylist"):
        if hasattr(given, method):
            return getattr(given, method)()
    # Sorted: the same set makes the same query, and so the same segment's id.
    if isinstance(given, set | frozenset):
        return sorted(given, key=repr)
    if isinstance(given, Iterator):
        unfit = f"a {name} can be read only once. Make a list of it: list(...)."
    elif isinstance(given, Iterable):
        return list(given)
    raise _refused(here, unfit)


def _missing(here: str, what: str) -> InvalidSegment:
    return _refused(here, f"a missing {what} cannot be written as JSON; drop missing values first.")


def _single_column(frame: Any, here: str) -> Any:
    # Arrow's `columns` are the columns themselves.
    names = list(getattr(frame, "column_names", frame.columns))
    columns = [str(name) for name in names]
    if len(columns) == 1:
        return frame[names[0]]
    choice = "address" if "address" in columns else (columns or ["name"])[0]
    raise _refused(
        here,
        f"a DataFrame of {len(columns)} columns ({', '.join(columns[:8])}) cannot be written as JSON; "
        f'choose one column, such as [{choice!r}]. Its wallets are {{"wallet": {{"in": table}}}}.',
    )
