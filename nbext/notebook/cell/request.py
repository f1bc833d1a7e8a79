"""The request that a cell makes: filters, operator, file type and limit, and the place of each in the cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.constants import MAX_LIMIT, limit_of
from nbext.core.operations import EXECUTE_KEYS, FILE_TYPES, OPERATORS
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError, ValidationError, did_you_mean
from nbext.notebook.cell import body
from nbext.notebook.cell.json_source import at, excerpt, place_of
from nbext.notebook.line.options import Args


@dataclass(frozen=True)
class Query:
    """One execute request. ``body`` is the cell it was read from; ``whole`` says that the cell is a request."""

    filters: Mapping[str, Any]
    operator: str
    file_type: str
    limit: int
    body: body.Body | None = None
    whole: bool = False

    def locate(self, error: ValidationError) -> None:
        """Add the place in the cell of each field that an error names, and a hint where the mistake is known."""
        if self.body is None:
            return
        lines = []
        for field in error.errors:
            pointer = field["pointer"]
            lines.append(f"{pointer or '/'}: {field['detail']}{self._hint(pointer)}")
            in_filters = pointer.removeprefix("/filters") if pointer.startswith("/filters") else ""
            position = place_of(self.body.text, pointer if self.whole else in_filters)
            if position is not None:
                lines.append(f"  {at(self.body.text, position)}")
        # The same error, not a new one: a caller catches its class and reads its fields.
        error.args = ("\n".join(lines),)

    def _hint(self, pointer: str) -> str:
        key = pointer.removeprefix("/filters/")
        if key in EXECUTE_KEYS and not self.whole:
            option = {"fileType": "--type"}.get(key, f"--{key}")
            beside = f'{{"{key}": ..., "filters": {{...}}}}'
            return f" Write it on the first line ({option}), or beside the filters: {beside}."
        return ""


def query_of(text: str, args: Args, names: Mapping[str, Any], limit: int) -> Query:
    """Read a query: the text is the filters or a whole request; options of the line give the rest."""
    read = body.read(text, names)
    if not isinstance(read.value, dict):
        begin = len(text) - len(text.lstrip())
        kind = "a list" if isinstance(read.value, list) else "a single value"
        raise UsageError(f"Filters are one JSON object, {{...}}, not {kind}.\n  {at(text, begin)}")
    # No condition is named filters, so one glance tells the two forms apart.
    whole = isinstance(read.value.get("filters"), dict)
    request: dict[str, Any] = read.value if whole else {"filters": read.value}
    if whole:
        _check_request(request, read)
    return Query(
        filters=request["filters"],
        operator=_one_of(args, "operator", request.get("operator"), "AND"),
        file_type=_one_of(args, "type", request.get("fileType"), "json"),
        limit=_limit(args, request.get("limit"), read, limit),
        body=read,
        whole=whole,
    )


def _check_request(request: Mapping[str, Any], read: body.Body) -> None:
    for key in request:
        if key not in EXECUTE_KEYS:
            near = did_you_mean(key, EXECUTE_KEYS)
            raise _at_key(key, f"unknown key of a request.{near} Allowed: {', '.join(EXECUTE_KEYS)}.", read)
    for key, allowed in (("operator", OPERATORS), ("fileType", FILE_TYPES)):
        if key in request and request[key] not in allowed:
            near = did_you_mean(str(request[key]), allowed)
            raise _at_key(key, f"must be {' or '.join(allowed)}, not {visible(repr(request[key]))}.{near}", read)


def _at_key(key: str, message: str, read: body.Body) -> UsageError:
    place = place_of(read.text, "/" + key)
    return UsageError(f"/{visible(key)}: {message}" + (f"\n  {at(read.text, place)}" if place is not None else ""))


def _one_of(args: Args, option: str, in_body: Any, default: str) -> str:
    # Neither wins: whichever we took, somebody would have meant the other.
    on_line = args[option]
    if on_line and in_body and on_line != in_body:
        raise UsageError(f"--{option} {on_line} on the line contradicts {in_body} in the cell. Write it once.")
    return str(on_line or in_body or default)


def _limit(args: Args, in_body: Any, read: body.Body, default: int) -> int:
    given = [name for name in ("limit", "all", "count") if args[name] is not None]
    if len(given) > 1:
        raise UsageError(f"Use --{given[0]} or --{given[1]}, not both.")
    if args["all"]:
        return MAX_LIMIT
    if args["count"]:
        return 0
    if args["limit"] is None and in_body is None:
        return default
    checked = limit_of(args["limit"] if given else in_body)
    if isinstance(checked, int):
        return checked
    if not given:
        raise _at_key("limit", checked, read)
    raise UsageError(f"--limit: {checked}\n{excerpt(args.line, args.columns['limit'], args.magic + ' ')}")
