"""Lists of wallets in filters: columns, sets and files, checked in bulk, and stored with our own service once.

``{"wallet": {"in": ...}}`` takes any of them. Our own service gets a long one as the 20 bytes of each address, under
the hash of these bytes, and is then asked by that. A stranger's service gets its values, as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nbext.client.addresses import ENDINGS, AddressColumn, NotAddresses, texts_of
from nbext.client.service import Service
from nbext.client.validate import MAX_LEVELS
from nbext.core import wire as op
from nbext.core.addresses import WIDTH, list_id
from nbext.core.rules import LIST_KEYS
from nbext.core.strict_json import NotJson, below
from nbext.core.untrusted_text import shown
from nbext.errors import InvalidSegment, NotFound, ProtocolError

# Filters travel with every table as ``df.attrs``, which pandas copies at each step.
# Up to here, as many as one request may name, they stay where people can read them; a longer list is its hash.
INLINE = op.MAX_WALLETS


class Wallets:
    """Many wallets given as one value, read when they are first needed.

    Parameters
    ----------
    value
        A column, a set, any iterable of addresses; a frame with an ``address`` column; or ``@FILE``.
    source
        How it was written, for messages: ``{{allow.address}}``, ``@allow.csv``.
    as_json
        Makes the value JSON for a service that is not ours; without it, its values are listed.
    """

    def __init__(
        self, value: Any, source: str, as_json: Callable[[Any], Any] | None = None
    ) -> None:
        self.source = source
        self._value, self._as_json = value, as_json or _values

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
        """Return the values as JSON: as they were written, or once they were read as addresses, in order."""
        if self._is_read and self.packed is not None:
            return texts_of(self.packed)
        return self._as_json(
            AddressColumn.of(self._value).texts.to_pylist() if self._is_file else self._value
        )

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


def as_sent(filters: Any, *, ours: bool) -> tuple[Any, dict[str, Wallets]]:
    """Return filters as a service gets them, and the lists that they name by an id."""
    lists: dict[str, Wallets] = {}

    def change(given: Any, alone: bool) -> dict[str, Any]:
        # Of another service's grammar, a text that begins with @ may be anything.
        if isinstance(given, str) and not (ours or given.lower().endswith(ENDINGS)):
            return {"in": given}
        one = _wallets(given)
        if not ours or one.count <= INLINE or not alone:
            return {"in": one.texts()}
        lists[one.id] = one
        return {"list": one.id}

    return _changed(filters, change, "/filters"), lists


def are_in(filters: Any) -> bool:
    """Say whether filters have lists, which our own service and others get in different ways."""
    found: list[Any] = []

    def change(given: Any, alone: bool) -> dict[str, Any]:
        found.append(given)
        return {"in": given}

    _changed(filters, change, "/filters")
    return bool(found)


def remembered(filters: Any, *, by_id: bool = False) -> Any:
    """Return filters without the addresses of their long lists: with a summary of each, or with its id."""

    def change(given: Any, alone: bool) -> dict[str, Any]:
        light = _wallets(given).without_addresses(by_id=alone)
        return {"list": light.id} if by_id and isinstance(light, Wallets) else {"in": light}

    return _changed(filters, change, "/filters")


def store(service: Service, lists: Mapping[str, Wallets]) -> None:
    """Send our own service the lists that it does not have."""
    for name, wallets in lists.items():
        try:
            service.document(service.call("GET", op.LIST.format(id=name)))
        except NotFound:
            if wallets.packed is None:
                raise _refused(
                    "/filters", f"The service deleted the list {wallets}. Run its cell again."
                ) from None
            call = service.call("POST", op.LISTS, deadline="download_deadline")
            headers = {"Content-Type": op.ADDRESSES_TYPE}
            said = service.document(
                replace(call, body=wallets.packed, headers=headers, patient=True)
            ).get("id")
            if said != name:
                raise ProtocolError(
                    f"The service stored the list {name} under another id, {shown(said)}."
                ) from None


def _changed(
    value: Any,
    change: Callable[[Any, bool], dict[str, Any]],
    here: str,
    of: str = "",
    level: int = 0,
) -> Any:
    """Return filters with the value of each list changed; ``change`` also gets whether no stored list is beside it."""
    # An object that contains itself ends here; that it is nested too deeply is said by who writes it as JSON.
    if level > MAX_LEVELS:
        return value
    if isinstance(value, Wallets):
        return _change(change, value, False, here)["in"]
    if isinstance(value, list | tuple):
        return [
            _changed(one, change, f"{here}/{at}", of, level + 1) for at, one in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    made: dict[Any, Any] = {}
    for key, one in value.items():
        pointer = below(here, key)
        if key == "in" and of == "wallet" and _is_list(one):
            made |= _change(change, one, "list" not in value, pointer)
        elif key in LIST_KEYS[1:] and not isinstance(one, list | tuple) and _is_list(one):
            made[key] = _change(change, one, False, pointer)["in"]
        else:
            made[key] = _changed(one, change, pointer, str(key), level + 1)
    return made


def _change(
    change: Callable[[Any, bool], dict[str, Any]], given: Any, alone: bool, here: str
) -> dict[str, Any]:
    try:
        return change(given, alone)
    except (NotAddresses, NotJson) as error:
        raise _refused(here, str(error)) from None


def _is_list(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("@")
    if isinstance(value, list | tuple):
        # A short list stays as it is: the service points at each mistake in it.
        return len(value) > INLINE
    many = isinstance(value, Iterable) or hasattr(value, "columns")
    return isinstance(value, Wallets) or (many and not isinstance(value, Mapping | bytes))


def _wallets(given: Any) -> Wallets:
    if isinstance(given, Wallets):
        return given
    return Wallets(given, given if isinstance(given, str) else "the list")


def _refused(pointer: str, detail: str) -> InvalidSegment:
    return InvalidSegment([{"pointer": pointer, "code": "address", "detail": detail}])


def _values(value: Any) -> list[Any]:
    # Iterating a frame gives its columns' names, and Arrow's columns give scalars, which are no JSON.
    if hasattr(value, "columns") or hasattr(value, "to_pylist"):
        return list(AddressColumn.of(value).texts.to_pylist())
    return list(value)
