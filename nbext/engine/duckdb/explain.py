"""How DuckDB answers, for people to read: how sets of wallets are combined, and the plan of a statement."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nbext.engine.query.set_tree import Leaf, Narrowed, Settled, Union

if TYPE_CHECKING:
    from nbext.engine.query.statements import Statement

# Columns of a notebook's text output before its lines break; DuckDB's own boxes may take several hundred.
_WIDTH = 100


def formula_of(node: Settled[Statement], statements: dict[str, Statement]) -> str:
    """Return how the leaves of a tree are combined, as ``1 and (2 or 3) and not 4``; number them in ``statements``."""
    if isinstance(node, Leaf):
        name = str(len(statements) + 1)
        statements[name] = node.wallets
        return name
    if isinstance(node, Union):
        return " or ".join(_member(part, statements) for part in node.parts)
    # What is narrowed is read from left to right: it needs no brackets.
    narrowed = isinstance(node.first, Narrowed)
    first = formula_of(node.first, statements) if narrowed else _member(node.first, statements)
    inside = [_member(part, statements) for part in node.inside]
    outside = [f"not {_member(part, statements)}" for part in node.outside]
    return " and ".join([first, *inside, *outside])


def _member(node: Settled[Statement], statements: dict[str, Statement]) -> str:
    text = formula_of(node, statements)
    return text if isinstance(node, Leaf) else f"({text})"


def drawn(plan: str) -> str:
    """Return a plan of ``EXPLAIN (FORMAT json)`` with one step to a line and its inputs below it."""
    return "\n".join(line for step in json.loads(plan) for line in _lines(step, "", ""))


def _lines(step: Mapping[str, Any], first: str, rest: str) -> Iterator[str]:
    inputs = step.get("children") or []
    below = rest + ("│    " if inputs else "     ")
    yield from textwrap.wrap(
        _in_words(step), _WIDTH, initial_indent=first, subsequent_indent=below
    ) or [first]
    for i, child in enumerate(inputs):
        last = i == len(inputs) - 1
        yield from _lines(
            child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")
        )


def _in_words(step: Mapping[str, Any]) -> str:
    told = dict(step.get("extra_info") or {})
    rows = str(told.pop("Estimated Cardinality", ""))
    texts = {
        name: ", ".join(value) if isinstance(value, list) else value for name, value in told.items()
    }
    facts = [f"{name}: {text}" for name, text in texts.items() if text]
    facts += [f"~{int(rows):,} row{'s' * (rows != '1')}"] if rows.isdecimal() else []
    return f"{step.get('name', '').strip()}  {'; '.join(facts)}".strip()
