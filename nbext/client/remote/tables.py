"""Tables in a JSON document: every list or object that can be read as rows, with its path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbext.client.frames import types_of
from nbext.client.remote.field_names import (
    COLUMNS,
    ECHOES,
    IDS,
    MOST_NAMES,
    NOT_ROWS,
    RESULTS,
    ROWS,
    STATUSES,
    WRAPPERS,
    bare,
    by_bare,
    fields_of,
    first_named,
    is_address,
    name_set,
    path_to,
    places,
)
from nbext.client.remote.profile import ambiguous, pasteable
from nbext.core.addresses import looks_like_address
from nbext.errors import AmbiguousAnswer, ProtocolError
from nbext.http.errors import one_line
from nbext.settings import Secret

# No answer was seen with more than a dozen objects around its rows; a stranger may send a million.
MAX_DEPTH, MOST_HOLDERS = 6, 20_000
# A record's fields may be in one of these, beside what the service says of it: JSON:API's resources, GraphQL's edges,
# the hits of Elasticsearch and Typesense, the records of Airtable and HubSpot.
_LAYERS = ("node", "attributes", "_source", "fields", "properties", "document", "data")
_BESIDE = name_set(
    "id type kind object cursor typename links relationships meta index score sort version createdat createdtime "
    "updatedat archived highlights highlight textmatch textmatchinfo"
)
_HEX_KEY = re.compile(r"([a-z][\w-]{0,30}:)?0x[0-9a-fA-F]{4,64}|[0-9]{1,78}")


@dataclass(frozen=True)
class FoundTable:
    """One table: its path, its records, the types of its columns where the answer says them, and what holds it."""

    path: str
    records: list[dict[str, Any]] = field(repr=False)
    types: dict[str, str] = field(default_factory=dict)
    source: Any = field(default=None, repr=False, compare=False)
    # Whether its rows are lists, and nothing says what their columns are called.
    unnamed: bool = False


def tables(document: Any, *, beside_id: bool = False) -> list[FoundTable]:
    """Return every table of the document; a preview is not one, nor is a list about the answer.

    ``beside_id``: the answer names a job, so that only what is named as a result is one. A list of rules is no result.
    """
    if isinstance(document, list):
        whole = table_in(document, "", [], document)
        return [whole] if whole else []
    found = list[FoundTable]()

    def is_whole(path: str, holder: Mapping[str, Any]) -> bool:
        table = keyed(holder, path) or _columnar(holder, path)
        found.extend([table] if table else [])
        return table is not None

    def may_hold(plain: str, holder: Mapping[str, Any]) -> bool:
        # A query beside an id is what was asked, and not the wrapper of the job itself.
        is_echo = plain in ECHOES and bool(IDS & {bare(name) for name in holder})
        is_result = not beside_id or (plain in RESULTS | WRAPPERS and not is_echo)
        return plain not in NOT_ROWS and is_result

    def enter(path: str, name: str, value: Any) -> bool:
        plain = bare(name)
        is_about = plain in ECHOES - WRAPPERS or plain.endswith(("metadata", "manifest"))
        return may_hold(plain, holder) and not is_about and not is_whole(path_to(path, name), value)

    if isinstance(document, Mapping) and not beside_id and is_whole("", document):
        return found
    holders = places(document, enter, deep=MAX_DEPTH, most=MOST_HOLDERS + 1)
    for number, (path, holder) in enumerate(holders):
        if number == MOST_HOLDERS:
            raise ProtocolError(
                "The answer has too many objects to look for its rows. Set remote.paths.rows."
            )
        columns = columns_beside(holder)
        for name, value in holder.items():
            plain = bare(name)
            is_rows = isinstance(value, list) and (plain in ROWS or _is_records(value))
            if is_rows and may_hold(plain, holder):
                table = table_in(value, path_to(path, name), columns, document)
                found += [table] if table else []
    return _without_twins(found)


def _without_twins(found: list[FoundTable]) -> list[FoundTable]:
    """GraphQL services send the same records as edges and as nodes: the nodes are taken."""
    rows = {table.path.lower(): len(table.records) for table in found}
    return [
        table
        for table in found
        if not table.path.lower().endswith("edges")
        or rows.get(f"{table.path.lower()[:-5]}nodes") != len(table.records)
    ]


def keyed(holder: Mapping[str, Any], path: str) -> FoundTable | None:
    """Return an object whose names are addresses or numbers as a table, with the names as its first column."""
    if not holder or not all(map(_HEX_KEY.fullmatch, holder)):
        return None
    column = "address" if all(map(looks_like_address, holder)) else "key"
    are_objects = _is_records(list(holder.values()))
    if not are_objects and any(isinstance(value, Mapping | list) for value in holder.values()):
        return None
    # A record that has the column itself says it in its own way.
    records = [
        {column: name, **(record_of(value) if are_objects else {"value": value})}
        for name, value in holder.items()
    ]
    return FoundTable(path, records, source=holder)


def table_in(value: Sequence[Any], path: str, columns: list[Any], root: Any) -> FoundTable | None:
    """Return a list of objects, of lists or of texts as a table; None for any other list."""
    if not value:
        return FoundTable(path, [], _types(columns), value)
    cells = _cells(value)
    named = (columns or _columns_in(root, len(cells[0]))) if cells else []
    if cells and named:
        return _of_lists(cells, path, named, value)
    if _is_records(value):
        return FoundTable(path, [record_of(record) for record in value], _types(columns), value)
    if all(isinstance(item, list) for item in value):
        return _of_lists(value, path, columns or _columns_in(root, len(value[0])), value)
    if all(isinstance(item, str) for item in value):
        name = "address" if all(looks_like_address(item) for item in value) else "value"
        return FoundTable(path, [{name: item} for item in value], source=value)
    return None


def _is_records(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(item, Mapping) for item in value)


def _cells(value: Sequence[Any]) -> list[list[Any]] | None:
    """Return the rows of BigQuery, Athena and Neo4j as lists: {"f": [{"v": 1}]}, {"Data": [{"VarCharValue": "1"}]}."""
    name, *others = value[0] if isinstance(value[0], Mapping) and value[0] else [""]
    found = [row.get(name) for row in value if isinstance(row, Mapping)]
    lists = [cells for cells in found if isinstance(cells, list)]
    if len(lists) < len(value) or any(bare(other) != "meta" for other in others):
        return None
    if not others and not all(isinstance(cell, Mapping) and len(cell) <= 1 for cell in lists[0]):
        return None
    return [
        [next(iter(cell.values()), None) if isinstance(cell, Mapping) else cell for cell in row]
        for row in lists
    ]


def record_of(record: Any) -> Any:
    """Return a record without the layer that a service puts around its fields."""
    if not isinstance(record, Mapping):
        return record
    # Nearly all records, of which there may be a million, are plain.
    layer = next((name for name in _LAYERS if name in record), None)
    if layer is None or len(record) > 12 or not isinstance(record[layer], Mapping):
        return dict(record)
    if not all(bare(name) in _BESIDE for name in record if name != layer):
        return dict(record)
    # What JSON:API, GraphQL and Elasticsearch have beside it is about the record; what others have may be a part of it.
    own = {"id"} if layer in _LAYERS[:3] else record.keys() - {layer}
    return {**{name: value for name, value in record.items() if name in own}, **record[layer]}


def _of_lists(value: Sequence[list[Any]], path: str, columns: list[Any], source: Any) -> FoundTable:
    widths = {len(row) for row in value}
    named = [_name(column) for column in columns] or (list(value[0]) if _is_header(value) else [])
    if named and list(value[0]) == named:
        # Athena, and SQL as lists: the first row has the names.
        value, widths = value[1:], widths | {len(named)}
    names = named or [f"column_{i + 1}" for i in range(max(widths))]
    if widths != {len(names)}:
        raise ProtocolError(
            f"The rows at {path or 'the top'} have {sorted(widths)} values for {len(names)} columns."
        )
    if len(set(names)) != len(names):
        raise ProtocolError("The answer has two columns of the same name.")
    rows = list(zip(*value, strict=True)) if columns and _is_by_column(value, path) else value
    records = [dict(zip(names, row, strict=True)) for row in rows]
    return FoundTable(path, records, _types(columns) or dict.fromkeys(named, ""), source, not named)


def _is_header(value: Sequence[list[Any]]) -> bool:
    """Say whether the first of some lists has the names of columns: one column has an address in all the others."""
    first, *others = value
    are_names = all(isinstance(item, str) and re.match("[A-Za-z_]", item) for item in first)
    if not others or not are_names or len(set(first)) < len(first) or any(map(is_address, first)):
        return False
    return any(
        all(i < len(row) and is_address(row[i]) for row in others) for i in range(len(first))
    )


def _is_by_column(value: Sequence[list[Any]], path: str) -> bool:
    """Say whether lists as many as they are long are columns: the addresses in it tell, as far as they can."""
    if len(value) < 2 or len(value) != len(value[0]):
        return False
    are = [[is_address(item) for item in row] for row in value]
    # Rows that the settings point to have no path here.
    if path and all(map(all, are)):
        line = pasteable("rows", path)
        raise AmbiguousAnswer(
            f"The lists at {one_line(path, length=80)} may be rows or columns: they are as many as each is long, and "
            f"all values are addresses. If they are rows, say it with `%nbext set {line}`.",
            candidates=[path],
            setting=line,
        )
    return any(row != are[0] for row in are) and all(len(set(row)) == 1 for row in are)


def columns_beside(holder: Mapping[str, Any]) -> list[Any]:
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
        column = first_named(by_bare(column), ("name", "columnname", "field", "key", "label", "id"))
    return column if isinstance(column, str) else ""


def _types(columns: list[Any]) -> dict[str, str]:
    if columns and all(isinstance(column, str) for column in columns):
        # Names without types still say which columns an empty table has.
        return dict.fromkeys(columns, "")
    return types_of(columns)


def _columnar(holder: Mapping[str, Any], path: str) -> FoundTable | None:
    """Return an object of equally long lists of values as a table; several lists of rows are not one."""
    lists = list(holder.values())
    if not 1 < len(lists) <= MOST_NAMES or not all(isinstance(value, list) for value in lists):
        return None
    if len(set(map(len, lists))) > 1 or any(bare(name) in ROWS | NOT_ROWS for name in holder):
        return None
    if any(isinstance(item, list | Mapping) for value in lists for item in value):
        return None
    records = [dict(zip(holder, row, strict=True)) for row in zip(*lists, strict=True)]
    return FoundTable(path, records, dict.fromkeys(holder, ""), holder)


def only_empty(document: Any) -> FoundTable | None:
    """Return a table without rows where the only list of an answer is empty, whatever its name."""
    found = [
        FoundTable(path, [], source=value)
        for path, plain, value in fields_of(places(document))
        if isinstance(value, list) and plain not in NOT_ROWS
    ]
    return found[0] if len(found) == 1 and not found[0].source else None


def unlisted(document: Any, *, of_job: bool = False) -> Any:
    """Return the document without a list of one around a table or a job: {"data": [{"id": 7, "status": ...}]}."""
    if isinstance(document, list):
        inner = document[0] if len(document) == 1 else None
        return (
            unlisted(inner, of_job=of_job)
            if isinstance(inner, Mapping) and _wraps(inner, of_job)
            else document
        )
    if not isinstance(document, Mapping) or len(document) > MOST_NAMES:
        return document
    new = {
        name: unlisted(value, of_job=of_job)
        for name, value in document.items()
        if isinstance(value, list | Mapping) and bare(name) in WRAPPERS | {"tables", "series"}
    }
    # The same object where nothing is new: its rows are known by what holds them.
    return {**document, **new} if any(new[name] is not document[name] for name in new) else document


def _wraps(record: Mapping[str, Any], of_job: bool) -> bool:
    names = {bare(name) for name in record}
    if any(is_address(value) for value in record.values()) or len(record) > 20:
        return False
    if of_job and names & IDS and names & STATUSES:
        return True
    lists = {name: value for name, value in record.items() if isinstance(value, list) and value}
    inner = [value for name, value in lists.items() if bare(name) not in NOT_ROWS]
    if len(inner) != 1 or not isinstance(inner[0][0], Mapping | list):
        return False
    # One wallet may have a list, too; it has no columns, and is no page.
    nested = len(inner[0]) == 1 and isinstance(inner[0][0], Mapping) and _wraps(inner[0][0], False)
    return nested or bool(columns_beside(record)) or len(names & _OF_PAGES) > 1


_OF_PAGES = name_set(
    "page limit total totalpage totalpages pages nbpages nbhits hitsperpage pagesize offset hasmore"
)


def links_in(document: Any, *, only_named: bool) -> list[tuple[str, Any, list[str]]]:
    """Return the lists of links to files that an answer has, each with its path; ``only_named``: as their name says."""
    outside = places(
        document,
        lambda _, name, __: bare(name) not in NOT_ROWS | ECHOES,
        deep=MAX_DEPTH - 1,
        most=MOST_HOLDERS,
    )
    found: list[tuple[str, Any, list[str]]] = []
    for path, plain, value in [("", "", document), *fields_of(outside)]:
        if not isinstance(value, list) or plain in NOT_ROWS | ECHOES:
            continue
        named = not plain or not only_named or _LINKS.fullmatch(plain)
        links = [_link_of(item) for item in value] if named and len(value) <= 10_000 else []
        if links and all(links):
            found.append((path, value, [link for link in links if link]))
    return found


_LINKS = re.compile(
    "(results?|output|export|download|data|external|(pre)?signed)?(files|parts|chunks|urls|uris|links|shards)"
)
_LINK_NAME = re.compile("(?!next).*(url|uri|href|link|location|path|file)")
_LINK = re.compile(r"(https?:/)?/\S+|(s3|gs|abfss?|hdfs)://\S+")


def _link_of(item: Any) -> str | None:
    if (
        isinstance(item, Mapping)
        and len(item) <= 12
        and not any(is_address(value) for value in item.values())
    ):
        named = [value for name, value in item.items() if _LINK_NAME.match(bare(name))]
        texts = [value for value in named if isinstance(value, str) and _LINK.fullmatch(value)]
        item = texts[0] if len(texts) == 1 and not item.keys() & {"rel", "name", "title"} else None
    return item if isinstance(item, str) and _LINK.fullmatch(item) else None


def the_record(document: Any, chosen: Any) -> dict[str, Any]:
    """Return the one record of an answer: its object, or the one that its wrappers hold."""
    # The path was set for segments: where it leads to nothing, the record is where it always is.
    document = document if chosen is None else chosen
    # {"data": {"token": {...}}}: no service was seen to wrap a record more than thrice.
    for _ in range(4):
        if isinstance(document, list):
            if len(document) != 1:
                raise ProtocolError(f"Expected one record, but {len(document):,} came.")
            document = record_of(document[0])
        inner = _wrapped(document)
        if inner is None:
            break
        document = inner
    values = list(document.values()) if isinstance(document, dict) else []
    if not 0 < len(values) <= MOST_NAMES or (len(values) == 1 and not values[0]):
        raise ProtocolError(f"Expected one record, but the answer is {kind_of(document)}.")
    return dict(document)


_RECORD_WRAPPERS = WRAPPERS | name_set(
    "token nft collection contract asset item items tokens nfts collections contracts assets "
    "edges nodes node records list"
)
_RECORD_FIELDS = name_set(
    "address contractaddress tokenaddress name symbol decimals tokentype tokenname tokensymbol contractname "
    "contracttickersymbol contractdecimals addresshash"
)


def _wrapped(document: Any) -> Any:
    if not isinstance(document, dict) or len(document) > MOST_NAMES or _record_fields(document):
        return None
    by_key = keyed(document, "")
    if by_key and _is_records(list(document.values())):
        return by_key.records
    inner = {name: value for name, value in document.items() if isinstance(value, dict | list)}
    # One that nobody knows wraps something that has a contract's fields.
    found = {name: value for name, value in inner.items() if bare(name) in _RECORD_WRAPPERS} or {
        name: value for name, value in inner.items() if len(_record_fields(value)) > 1
    }
    if len(found) > 1:
        raise ambiguous("rows", [path_to("", name) for name in found])
    return next(iter(found.values()), None)


def _record_fields(value: Any) -> frozenset[str]:
    """Return the names of a contract's fields that an object, or a list of one, has."""
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    names = list(one)[:MOST_NAMES] if isinstance(one, Mapping) else []
    return _RECORD_FIELDS & set(map(bare, names))


def kind_of(value: Any, key: Secret | None = None) -> str:
    """Return what a value is, for a message."""
    if isinstance(value, Mapping):
        names = ", ".join(one_line(name, key, 40) for name in list(value)[:8])
        return f"an object with {names or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value):,} values"
    return "null" if value is None else f"{one_line(repr(value), key, 60)}"
