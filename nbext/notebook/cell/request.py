"""The request that a cell makes: filters, operator, file type and limit, and the place of each in the cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbext.core.rules import MAX_LIMIT, limit_of, one_of, rows_of
from nbext.core.strict_json import below
from nbext.core.untrusted_text import visible
from nbext.core.wire import EXECUTE_KEYS, FILE_TYPES, OPERATORS
from nbext.errors import UsageError, ValidationError, did_you_mean
from nbext.notebook.cell import body
from nbext.notebook.cell.json_errors import corrected
from nbext.notebook.cell.json_source import at, excerpt, place_of
from nbext.notebook.line import Args

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

# Options of the line, and the keys beside the conditions that they give.
ON_LINE = {
    "chain": "chain",
    "as_of": "asOf",
    "columns": "columns",
    "exclude": "exclude",
    "by": "orderBy",
}
# Those of a request that have another name.
_OPTIONS = {"fileType": "type"}


@dataclass(frozen=True)
class SegmentQuery:
    """One execute request. ``body`` is the cell it was read from; ``whole`` says that the cell is a request."""

    filters: Mapping[str, Any]
    operator: str
    file_type: str
    limit: int
    body: body.Body | None = None
    whole: bool = False
    # The first option of its line that another service may not know, and would pass over without a word.
    ours: str = ""

    def run(self, client: Client, **ways: Any) -> pd.DataFrame:
        """Have a client run it, and return the rows; ``ways`` are those of `Client.execute_segment`."""
        if self.ours and not client.is_ours:
            raise UsageError(
                f"{self.ours}: only the embedded service (or another `nbext serve`) is known to take it. Leave it "
                "out, and write in the filters what this service takes."
            )
        with self.located():
            return client.execute_segment(*self.request, **ways)

    @property
    def request(self) -> tuple[Mapping[str, Any], str, str, int]:
        """What a client is given of it."""
        return self.filters, self.operator, self.file_type, self.limit

    @property
    def segment(self) -> dict[str, Any]:
        """What an analysis is given of it: a limit only where the cell has one."""
        written = self.body.value.get("limit") if self.body and self.whole else None
        return {"operator": self.operator, "filters": self.filters, "limit": written}

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add to a `ValidationError` of the query the places in the cell."""
        try:
            yield
        except ValidationError as error:
            self.locate(error)
            raise

    def locate(self, error: ValidationError) -> None:
        """Add the place in the cell of each field that an error names, and a hint where the mistake is known."""
        if self.body is None:
            return
        lines = []
        for field in error.errors:
            pointer = field["pointer"]
            lines.append(
                f"{pointer or '/'}: {field['detail']}{self._hint(pointer, field['detail'])}"
            )
            in_filters = pointer.removeprefix("/filters") if pointer.startswith("/filters") else ""
            position = place_of(self.body.text, pointer if self.whole else in_filters)
            if position is not None:
                lines.append(f"  {at(self.body.text, position)}")
        # The same error, not a new one: a caller catches its class and reads its fields.
        error.args = ("\n".join([*lines, *error.counted()]),)

    def _hint(self, pointer: str, detail: str) -> str:
        # As an f-string, a shell or JupySQL has a variable; a symbol of this form nobody means.
        if single := re.search(r"'(?:\$?\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*))'", detail):
            return f" Write a Python value as {{{{{single[1] or single[2]}}}}}, without quotes."
        key = "" if self.whole else pointer.removeprefix("/filters/")
        if key in EXECUTE_KEYS:
            beside = f'{{"{key}": ..., "filters": {{...}}}}'
            option = _OPTIONS.get(key, key)
            return f" Write it on the first line (--{option}), or beside the filters: {beside}."
        # Somebody who writes a whole request, and misspells the key that says so.
        return " Did you mean 'filters'?" if key == "filter" else ""


def query_of(given: str | body.Body, args: Args, limit: int) -> SegmentQuery:
    """Read a query: the filters or a whole request, as text or read already; options of the line give the rest."""
    if isinstance(given, str) and args["run_corrected"]:
        given, faults = corrected(given)
        if faults:
            print(f"corrected: {', '.join(faults)}")
    read = given if isinstance(given, body.Body) else body.read_json_body(given, args.names)
    if not isinstance(read.value, dict):
        begin = len(read.text) - len(read.text.lstrip())
        kind = "a list" if isinstance(read.value, list) else "a single value"
        raise UsageError(
            f"Filters are one JSON object, {{...}}, not {kind}.\n  {at(read.text, begin)}"
        )
    # No condition is named filters, so one glance tells the two forms apart.
    whole = isinstance(read.value.get("filters"), dict)
    request: dict[str, Any] = read.value if whole else {"filters": read.value}
    query = SegmentQuery(request["filters"], OPERATORS[0], FILE_TYPES[0], limit, read, whole)
    with query.located():
        for key in request:
            if key not in EXECUTE_KEYS:
                hint = f"{did_you_mean(key, EXECUTE_KEYS)} Allowed: {', '.join(EXECUTE_KEYS)}."
                unknown = f"unknown key of a request.{hint}"
                raise ValidationError.of(below("", key), "unknown-key", unknown)
        return replace(
            query,
            filters=_on_line(args, request["filters"]),
            operator=_chosen(args, request, "operator", OPERATORS),
            file_type=_chosen(args, request, "fileType", FILE_TYPES),
            limit=_limit(args, request.get("limit", limit)),
            ours=next(iter(args.given("top", *ON_LINE)), ""),
        )


def _chosen(args: Args, request: Mapping[str, Any], key: str, allowed: Sequence[str]) -> str:
    """Return the word that the line or the cell has, in any case; else the first that is allowed."""
    option = _OPTIONS.get(key, key)
    on_line: str | None = args[option]
    in_body = one_of(request[key], allowed, f"/{key}") if key in request else None
    # Neither wins: whichever we took, somebody would have meant the other.
    if on_line and in_body and on_line != in_body:
        raise UsageError(
            f"--{option} {on_line} on the line contradicts {in_body} in the cell. Write it once."
        )
    return on_line or in_body or allowed[0]


def _on_line(args: Args, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters with the keys that options give which stand beside the conditions."""
    joined, given = dict(filters), {option: args[option] for option in ON_LINE}
    if args["top"] is not None:
        by = args["by"] or "amount"
        if by.startswith("-"):
            column = visible(by[1:])
            raise UsageError(
                f"--by -{column}: --top returns the rows with the largest values. Write --by {column}. For the "
                f'smallest, write "orderBy": "{column}" beside the conditions, and --limit {args["top"]}.'
            )
        given["by"] = f"-{by}"
    elif args["by"] is not None:
        raise UsageError("--by needs --top: --top 100 --by UNI_balance")
    for option, key in ON_LINE.items():
        if (value := given[option]) is None:
            continue
        # What begins with @ is a file of them.
        if option in ("columns", "exclude") and not value.startswith("@"):
            value = [] if value == "[]" else [one.strip() for one in value.split(",")]
        if joined.setdefault(key, value) != value:
            flag = args.given(option, "top")[0]
            raise UsageError(f'{flag} on the line contradicts "{key}" in the cell. Write it once.')
    # Of one token, the largest come with what part of it they have.
    if given["by"] == "-amount" and isinstance(filters.get("token"), Mapping):
        joined.setdefault("columns", ["share"])
    return joined


def _limit(args: Args, written: Any) -> int:
    given = [name for name in ("limit", "all", "count", "top") if args[name] is not None]
    if len(given) > 1:
        raise UsageError(f"Use --{given[0]} or --{given[1]}, not both.")
    if not given:
        return rows_of(written)
    if args["all"]:
        return MAX_LIMIT
    if args["count"]:
        return 0
    try:
        return limit_of(args[given[0]], least=int(given == ["top"]))
    except ValidationError as error:
        detail = error.errors[0]["detail"]
    raise UsageError(
        f"--{given[0]}: {detail}\n{excerpt(args.line, args.columns[given[0]], args.grammar.magic + ' ')}"
    )
