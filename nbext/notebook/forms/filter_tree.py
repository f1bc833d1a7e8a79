"""A segment's filters as a tree of parts, and back: the key and the JSON pointer of each part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from nbext.core.untrusted_text import visible
from nbext.errors import UsageError

# JSON of at most this many characters goes on one line: a notebook's cell is about that wide.
WIDTH = 72
_JOIN = {"AND": "all", "OR": "any"}


class Part(Protocol):
    """One child of a group: a condition, or another group."""

    key: str

    def value(self) -> Any:
        """Return its JSON value."""

    def place(self, pointer: str) -> None:
        """Remember the JSON pointer of its value."""


def joined(parts: Sequence[Part], operator: str, pointer: str) -> dict[str, Any]:
    """Return parts as one object, and place each.

    Conditions of one name make a list. An object cannot hold two groups of one name: then all parts go into a list
    under ``all`` or ``any``, which means the same as the operator.
    """
    # Pointers are given here and not by the editors: where a part ends up depends on its neighbours.
    by_key: dict[str, list[Part]] = {}
    for part in parts:
        by_key.setdefault(part.key, []).append(part)
    if any(len(same) > 1 for key, same in by_key.items() if key in ("all", "any")):
        key = _JOIN[operator]
        return {key: listed(parts, f"{pointer}/{key}")}
    return {key: _same(same, f"{pointer}/{key}") for key, same in by_key.items()}


def listed(parts: Sequence[Part], pointer: str) -> list[dict[str, Any]]:
    """Return parts as a list of objects of one key each, and place each."""
    for index, part in enumerate(parts):
        part.place(f"{pointer}/{index}/{part.key}")
    return [{part.key: part.value()} for part in parts]


def denied(parts: Sequence[Part], pointer: str) -> dict[str, Any]:
    """Return the value of ``not``: none of the parts holds."""
    if len(parts) == 1:
        parts[0].place(f"{pointer}/{parts[0].key}")
        return {parts[0].key: parts[0].value()}
    return {"any": listed(parts, f"{pointer}/any")}


def _same(parts: Sequence[Part], pointer: str) -> Any:
    if len(parts) == 1:
        parts[0].place(pointer)
        return parts[0].value()
    for index, part in enumerate(parts):
        part.place(f"{pointer}/{index}")
    return [part.value() for part in parts]


def split(filters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the children of an object as key and value; the conditions of a list one by one."""
    for key, value in filters.items():
        many = isinstance(value, list) and value and all(isinstance(member, Mapping) for member in value)
        if many and key not in ("all", "any"):
            yield from ((key, member) for member in value)
        else:
            yield key, value


def members(key: str, value: Any) -> list[tuple[str, Any]]:
    """Return the children of a group as key and value; raise ValueError where the value is not that of a group.

    A member of several keys becomes a group ``all`` of them.
    """
    if key == "not":
        # "none of these" is written as not any; reading that back as one group keeps it what the user built.
        return members("any", value["any"]) if isinstance(value, Mapping) and list(value) == ["any"] else [_one(value)]
    if not isinstance(value, list) or not value:
        raise ValueError(f"{key} holds a list of conditions")
    return [_one(member) for member in value]


def _one(member: Any) -> tuple[str, Any]:
    if not isinstance(member, Mapping) or not member:
        raise ValueError("a condition is an object")
    children = list(split(member))
    if len(children) == 1:
        return children[0]
    return "all", [{key: value} for key, value in children]


def parsed(query: Any) -> tuple[dict[str, Any], str, int | None]:
    """Return filters, operator and limit of a query: filters, a whole request body, or a segment's table."""
    # A table says by its attrs which query it came from, so a result can be opened again and changed.
    given = getattr(query, "attrs", {}).get("nbext", query)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise UsageError(f"The query is not JSON: {error}") from None
    if not isinstance(given, Mapping):
        raise UsageError("Expected filters, a request body, or a segment's table, such as %%segment_query returns.")
    if "filters" in given and isinstance(given["filters"], Mapping):
        operator, limit = str(given.get("operator") or "AND").upper(), given.get("limit")
        if operator not in _JOIN:
            raise UsageError(f"Unknown operator {visible(repr(given['operator']), 80)}. Use AND or OR.")
        # A limit of 0 only counts, which a builder does anyway.
        return dict(given["filters"]), operator, limit if isinstance(limit, int) and limit > 0 else None
    return dict(given), "AND", None


def json_text(value: Any) -> str:
    """Return JSON for a cell: no hidden character in it, and nothing that a cell would take for a placeholder."""
    text = _laid_out(value, "")
    # Only texts can hold two opening braces in a row, and a cell would take them for {{name}}.
    text = text.replace("{{", "{\\u007b")
    return re.sub(r"[^\n -~]", _escaped_if_hidden, text)


def _laid_out(value: Any, indent: str) -> str:
    """Return JSON whose small parts stand on one line each, as a person would write it."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(one, inner)}" for key, one in value.items()]
        opening, closing = "{", "}"
    else:
        parts = [_laid_out(one, inner) for one in value]
        opening, closing = "[", "]"
    return opening + "".join(f"\n{inner}{part}," for part in parts)[:-1] + f"\n{indent}{closing}"


def _escaped_if_hidden(found: re.Match[str]) -> str:
    character = found.group()
    return character if visible(character) == character else json.dumps(character)[1:-1]


def cell_text(name: str, filters: Mapping[str, Any], operator: str, limit: int | None) -> str:
    """Return the cell that runs the query."""
    # Never the operator's own text, which may be a stranger's: "OR --to FILE" would be an option of the cell.
    words = ["%%segment_query", name, "--operator OR" * (operator == "OR")]
    words.append("" if limit is None else f"--limit {limit}")
    return " ".join(word for word in words if word) + "\n" + json_text(filters)
