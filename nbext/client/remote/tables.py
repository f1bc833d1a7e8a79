"""Tables in a JSON document: every list or object that can be read as rows, with its path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nbext.client.frames import types_of
from nbext.client.remote.field_names import (
    COLUMNS,
    ECHOES,
    IDS,
    MOST_NAMES,
    NOT_ROWS,
    ROWS,
    STATUSES,
    WRAPPERS,
    Place,
    are_records,
    bare,
    by_bare,
    fields_of,
    first_in,
    first_named,
    has_address,
    is_address,
    is_keyed,
    like,
    names,
    path_to,
    places,
)
from nbext.client.remote.profile import ambiguous
from nbext.core.addresses import looks_like_address
from nbext.errors import ProtocolError
from nbext.http.errors import one_line

# No answer was seen with more than a dozen objects around its rows; a stranger may send a million.
MAX_DEPTH, MOST_HOLDERS = 6, 20_000
_HOLDERS = {"tables", "series"}
_NO_ROWS = NOT_ROWS | ECHOES - WRAPPERS
# A record's fields may be in one of these, beside what the service says of it: JSON:API's resources, GraphQL's edges,
# the hits of Elasticsearch and Typesense, the records of Airtable and HubSpot.
_LAYERS = ("node", "attributes", "_source", "fields", "properties", "document", "data")


@dataclass(frozen=True)
class FoundTable:
    """One table: its path, its records, the types of its columns where the answer says them, and what holds it."""

    path: str
    records: list[dict[str, Any]] = field(repr=False)
    types: dict[str, str] = field(default_factory=dict)
    source: Any = field(default=None, repr=False, compare=False)
    # Whether its rows are lists, and nothing says what their columns are called.
    unnamed: bool = False
    # Whether it is texts, and a list beside it is as long: it may be one column of several.
    is_column: bool = False
    # The addresses that its items are, or have: they may be of the files that hold its rows.
    links: list[str] = field(default_factory=list)


def tables(document: Any) -> list[FoundTable]:
    """Return every table of the document; a preview is not one, nor is a list about the answer."""
    whole = as_table(document, "", [], document)
    if whole is not None:
        return [replace(whole, links=_links_of(document))]
    found = list[FoundTable]()
    holders = places(
        document,
        lambda _, name, value: bare(name) not in _NO_ROWS and not is_keyed(value),
        deep=MAX_DEPTH,
        most=MOST_HOLDERS + 1,
    )
    for number, (path, holder) in enumerate(holders):
        if number == MOST_HOLDERS:
            raise ProtocolError(
                "The answer has too many objects to look for its rows. Set remote.export.paths.rows, or that of "
                "another operation."
            )
        columns = columns_beside(holder)
        for name, value in holder.items():
            plain, here = bare(name), path_to(path, name)
            is_list = isinstance(value, list)
            if plain in _NO_ROWS or not (is_list or isinstance(value, Mapping)):
                continue
            within = set(map(bare, here.split(".")))
            about = any(one.endswith(("metadata", "manifest")) for one in within)
            # What is in the echo of a question are the question's.
            links = [] if within & ECHOES else _links_of(value)
            if about or (is_list and not (plain in ROWS or are_records(value))):
                # What is about the answer, and texts under any other name, are no rows: they may name files.
                found += [FoundTable(here, [], source=value, links=links)] if links else []
            elif table := as_table(value, here, columns, document):
                is_text = is_list and len(value) > 1 and isinstance(value[0], str)
                sizes = [len(one) for one in holder.values() if isinstance(one, list)]
                is_column = is_text and sizes.count(len(value)) > 1
                found.append(replace(table, is_column=is_column, links=links))
    return found


def as_table(value: Any, path: str, columns: list[Any], root: Any) -> FoundTable | None:
    """Return a list of objects, lists or texts, or an object whose names are data, as a table; None for any other."""
    if is_keyed(value):
        name = "address" if all(map(looks_like_address, value)) else "key"
        # A record that has the column itself says it in its own way.
        records = [
            {name: key, **(record_of(one) if isinstance(one, Mapping) else {"value": one})}
            for key, one in value.items()
        ]
        return FoundTable(path, records, source=value)
    if not isinstance(value, list):
        return None
    cells = _cells(value)
    columns = columns or (_columns_in(root, len(cells[0])) if cells else [])
    if cells and (columns or isinstance(value[0], list)):
        return _of_lists(cells, path, columns, value)
    if are_records(value):
        return FoundTable(path, [record_of(record) for record in value], _types(columns), value)
    if all(isinstance(item, str) for item in value):
        name = "address" if all(looks_like_address(item) for item in value) else "value"
        types = {} if value else _types(columns)
        return FoundTable(path, [{name: item} for item in value], types, value)
    return None


def _cells(value: Sequence[Any]) -> list[list[Any]] | None:
    """Return rows as lists of cells; None where they are none."""
    rows = [
        first_named(row, "cells") if isinstance(row, Mapping) and len(row) <= 2 else row
        for row in value
    ]
    if not all(isinstance(row, list) for row in rows):
        return None
    return [
        [
            first_in(cell.values()) if isinstance(cell, Mapping) and len(cell) < 2 else cell
            for cell in row
        ]
        for row in rows
    ]


def record_of(record: Any) -> Any:
    """Return a record without the layer that a service puts around its fields."""
    # Nearly all records, of which there may be a million, are plain.
    layer = first_in(name for name in _LAYERS if name in record)
    if layer is None or len(record) > 12 or not isinstance(record[layer], Mapping):
        return dict(record)
    if not all(bare(name) in names("beside_a_layer") for name in record if name != layer):
        return dict(record)
    # What JSON:API, GraphQL and Elasticsearch have beside it is about the record; what others have may be a part of it.
    own = {"id"} if layer in _LAYERS[:3] else record.keys() - {layer}
    return {name: value for name, value in record.items() if name in own} | record[layer]


def _of_lists(value: Sequence[list[Any]], path: str, columns: list[Any], source: Any) -> FoundTable:
    named = [_name(column) for column in columns] or (list(value[0]) if _is_header(value) else [])
    if named and named == value[0]:
        # Athena, and SQL as lists: the first row has the names.
        value = value[1:]
    names = named or [f"column_{i + 1}" for i in range(max(map(len, value), default=0))]
    if widths := {len(row) for row in value} - {len(names)}:
        raise ProtocolError(
            f"The rows at {path or 'the top'} have {sorted(widths)} values for {len(names)} columns."
        )
    if len(set(names)) != len(names):
        raise ProtocolError("The answer has two columns of the same name.")
    are = [set(map(is_address, row)) for row in value]
    # Rows that the settings point to have no path here.
    if path and len(value) == len(names) > 1 == max(map(len, are)) and {True} in are:
        # As many lists as each is long, each of addresses alone or of none: they may be columns.
        raise ambiguous("rows", [path])
    records = [dict(zip(names, row, strict=True)) for row in value]
    return FoundTable(path, records, _types(columns) or dict.fromkeys(named, ""), source, not named)


def _is_header(value: Sequence[list[Any]]) -> bool:
    """Say whether the first of some lists has the names of columns: one column has an address in all the others."""
    first, *others = value
    are_names = all(isinstance(item, str) and re.match("[A-Za-z_]", item) for item in first)
    columns = zip(*others, strict=False)
    return are_names and any(all(map(is_address, column)) for column in columns)


def columns_beside(holder: Place) -> list[Any]:
    """Return the columns that an object names beside its rows; none where it does not."""
    for name, value in holder.items():
        named = bare(name) in COLUMNS or (bare(name) == "meta" and isinstance(value, list))
        # A schema may be an object that has its fields in a list.
        inner = columns_beside(value) if named and isinstance(value, Mapping) else value
        if named and isinstance(inner, list) and inner and all(_name(column) for column in inner):
            return inner
    return []


def _columns_in(root: Any, width: int) -> list[Any]:
    """Return the columns that an answer names elsewhere, of which there must be as many as the rows are wide."""
    outside = places(root, lambda _, name, __: bare(name) not in ECHOES, deep=200, most=200)
    found = [columns for _, place in outside if len(columns := columns_beside(place)) == width]
    return found[0] if found and all(columns == found[0] for columns in found) else []


def _name(column: Any) -> str:
    if isinstance(column, Mapping):
        column = first_named(by_bare(column), "column_in_an_object")
    return column if isinstance(column, str) else ""


def _types(columns: list[Any]) -> dict[str, str]:
    # Names without types still say which columns an empty table has.
    return dict.fromkeys(filter(None, map(_name, columns)), "") | types_of(columns)


def only_empty(document: Any) -> FoundTable | None:
    """Return a table without rows where the only list of an answer is empty, whatever its name."""
    found = {
        path: value
        for path, plain, value in fields_of(document)
        if isinstance(value, list) and plain not in NOT_ROWS
    }
    return FoundTable(first_in(found), []) if list(found.values()) == [[]] else None


def unlisted(document: Any, *, of_job: bool = False) -> Any:
    """Return the document without a list of one around a table or a job: {"data": [{"id": 7, "status": ...}]}."""
    if isinstance(document, Mapping):
        inner = WRAPPERS | _HOLDERS
        some = {name: value for name, value in document.items() if bare(name) in inner}
        return {**document, **{name: unlisted(some[name], of_job=of_job) for name in some}}
    one = document[0] if isinstance(document, list) and len(document) == 1 else None
    # With an address it is a wallet.
    if not isinstance(one, Mapping) or has_address(one):
        return document
    named = by_bare(one).keys()
    is_about = columns_beside(one) or named & _HOLDERS or len(named & names("about_pages")) > 1
    is_job = of_job and named & IDS and named & STATUSES
    return unlisted(one, of_job=of_job) if is_about or is_job else document


def refuse_groups(found: FoundTable) -> None:
    """Ask about rows that are in groups: {"batches": [{"rows": [...]}, {"rows": [...]}]}."""
    for record in found.records[:2]:
        for name, value in record.items():
            first = value[0] if value and isinstance(value, list) else None
            inner = first if isinstance(first, Mapping) else {"": first}
            if has_address(inner) and not has_address(record):
                raise ambiguous("rows", [f"{found.path}[].{path_to('', name)}[]"])


_LINK = re.compile(r"(https?:/)?/\S+|(s3|gs|abfss?|hdfs)://\S+")


def _links_of(value: Any) -> list[str]:
    """Return the addresses that all items of a list are, or have."""
    few = value if isinstance(value, list) and len(value) <= 10_000 else []
    links = list(filter(None, map(_link_of, few)))
    return links if len(links) == len(few) else []


def _link_of(item: Any) -> str | None:
    """Return the one address that an item of a list is, or has: a link that says its relation is of something else."""
    if isinstance(item, Mapping):
        named = by_bare(item, 20)
        of_files = like("of_file_like").fullmatch
        texts = [value for name, value in named.items() if of_files(name)]
        is_row = has_address(item) or named.keys() & {"rel", "name", "title"}
        item = None if is_row or len(texts) != 1 else texts[0]
    return item if isinstance(item, str) and _LINK.fullmatch(item) else None


def the_record(document: Any) -> dict[str, Any]:
    """Return the one record of an answer: the outermost object with fields of a contract, whatever is around it."""
    found: list[Any] = [document]
    # {"data": {"token": {...}}}: no service was seen to wrap a record more than thrice.
    for _ in range(5):
        objects = [
            one
            for each in found
            for one in (each if isinstance(each, list) else [each])
            if isinstance(one, Mapping) and len(one) <= MOST_NAMES
        ]
        records = [one for one in map(record_of, objects) if names("record") & set(map(bare, one))]
        if records:
            break
        found = [
            value
            for one in objects[:MOST_NAMES]
            for name, value in one.items()
            if bare(name) not in NOT_ROWS
        ]
    if len(records) != 1:
        count = f"{len(records):,} came" if records else f"the answer is {kind_of(document)}"
        raise ProtocolError(f"Expected one record, but {count}.")
    return dict(records[0])


def kind_of(value: Any) -> str:
    """Return what a value is, for a message."""
    if isinstance(value, Mapping):
        names = ", ".join(one_line(name, length=40) for name in list(value)[:8])
        return f"an object with {names or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value):,} values"
    return "null" if value is None else one_line(repr(value), length=60)
