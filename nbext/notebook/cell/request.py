"""A query as a cell asks it: filters, operator, file type and limit, and where each stands in the cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.constants import MAX_LIMIT, limit_of
from nbext.core.operations import FILE_TYPES, OPERATORS
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError, ValidationError, did_you_mean
from nbext.notebook.cell import body
from nbext.notebook.cell.json_source import at
from nbext.notebook.line.options import Args

_REQUEST_KEYS = ("operator", "fileType", "limit", "filters")


@dataclass(frozen=True)
class Query:
    """One execute request. ``body`` is the cell it was read from, ``whole`` says that the cell is a request."""

    filters: Mapping[str, Any]
    operator: str
    file_type: str
    limit: int
    body: body.Body | None = None
    whole: bool = False

    def located(self, error: NbextError) -> NbextError:
        """Return the error with the place in the cell of each field that it names."""
        if self.body is None or not isinstance(error, ValidationError):
            return error
        lines = []
        for field in error.errors:
            pointer = field["pointer"]
            lines.append(f"{pointer or '/'}: {field['detail']}{self._misplaced(pointer)}{self._unwrapped(pointer)}")
            position = self.body.place_of(self._in_cell(field["pointer"]))
            if position is not None:
                lines.append(f"  {at(self.body.text, position)}")
        # The same error, not a new one: its class and its fields are what a caller catches and reads.
        error.args = ("\n".join(lines),)
        return error

    def _misplaced(self, pointer: str) -> str:
        """Return where a key of a request belongs that stands among the filters."""
        key = pointer.removeprefix("/filters/")
        if self.whole or key not in _REQUEST_KEYS:
            return ""
        option = {"fileType": "--type"}.get(key, f"--{key}")
        beside = f'{{"{key}": ..., "filters": {{...}}}}'
        return f" It belongs on the first line ({option}), or beside the filters: {beside}."

    def _unwrapped(self, pointer: str) -> str:
        """Return how a contract is written that stands where a condition belongs."""
        key = pointer.removeprefix("/filters/")
        value = self.filters.get(key)
        if key not in ("token", "nft") or not isinstance(value, str):
            return ""
        return f" Write {json.dumps({key: {key: value}}, ensure_ascii=False)}."

    def _in_cell(self, pointer: str) -> str:
        return pointer if self.whole else pointer.removeprefix("/filters") if pointer.startswith("/filters") else ""


def query_of(text: str, args: Args, names: Mapping[str, Any], limit: int) -> Query:
    """Read a query: the text is the filters or a whole request; options of the line say the rest.

    Raises
    ------
    UsageError
        The text is not a JSON object, or says something else than the line does.
    """
    read = body.read(text, names)
    if not isinstance(read.value, dict):
        begin = len(text) - len(text.lstrip())
        kind = "a list" if isinstance(read.value, list) else "a single value"
        raise UsageError(f"a segment's filters are one JSON object, {{...}}; this is {kind}.\n  {at(text, begin)}")
    # No condition is named filters, so one glance tells the two forms apart.
    whole = isinstance(read.value.get("filters"), dict)
    request: dict[str, Any] = read.value if whole else {"filters": read.value}
    if whole:
        _check_request(request, read)
    return Query(
        filters=request["filters"],
        operator=_one_of(args, "operator", request.get("operator"), "AND"),
        file_type=_one_of(args, "type", request.get("fileType"), "json"),
        limit=_limit(args, request.get("limit"), limit),
        body=read,
        whole=whole,
    )


def _check_request(request: Mapping[str, Any], read: body.Body) -> None:
    for key in request:
        if key not in _REQUEST_KEYS:
            place = read.place_of("/" + key)
            raise UsageError(
                f"/{visible(key)}: a whole request has no such key.{did_you_mean(key, _REQUEST_KEYS)} "
                f"Allowed: {', '.join(_REQUEST_KEYS)}." + (f"\n  {at(read.text, place)}" if place is not None else "")
            )
    for key, allowed in (("operator", OPERATORS), ("fileType", FILE_TYPES)):
        if key in request and request[key] not in allowed:
            place = read.place_of("/" + key)
            shown = visible(repr(request[key]))
            near = did_you_mean(str(request[key]), allowed)
            raise UsageError(
                f"/{key}: it is {' or '.join(allowed)}, not {shown}.{near}"
                + (f"\n  {at(read.text, place)}" if place is not None else "")
            )


def _one_of(args: Args, option: str, in_body: Any, default: str) -> str:
    # Neither wins: whichever we took, somebody would have meant the other.
    on_line = args[option]
    if on_line and in_body and on_line != in_body:
        raise UsageError(f"the line says --{option} {on_line}, the cell says {in_body}: say it once.")
    return str(on_line or in_body or default)


def _limit(args: Args, in_body: Any, default: int) -> int:
    given = [name for name in ("limit", "all", "count") if args[name] is not None]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} exclude each other.")
    if args["all"]:
        return MAX_LIMIT
    if args["count"]:
        return 0
    limit = args["limit"] if args["limit"] is not None else in_body
    if limit is None:
        return default
    checked = limit_of(limit)
    if isinstance(checked, str):
        raise UsageError(checked)
    return checked
