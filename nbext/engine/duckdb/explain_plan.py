"""DuckDB's plan of a query, drawn as a tree that fits the width of a notebook."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

# Columns of a notebook's text output before its lines break; DuckDB's own boxes may take several hundred.
WIDTH = 100


def drawn(plan: str) -> str:
    """Return a plan, as ``EXPLAIN (FORMAT json)`` tells it, with one step to a line and its inputs below it."""
    return "\n".join(line for step in json.loads(plan) for line in _lines(step, "", ""))


def _lines(step: Mapping[str, Any], first: str, rest: str) -> Iterator[str]:
    inputs = step.get("children") or []
    below = rest + ("│    " if inputs else "     ")
    yield from textwrap.wrap(_in_words(step), WIDTH, initial_indent=first, subsequent_indent=below) or [first]
    for i, child in enumerate(inputs):
        last = i == len(inputs) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _in_words(step: Mapping[str, Any]) -> str:
    told = dict(step.get("extra_info") or {})
    rows = str(told.pop("Estimated Cardinality", ""))
    texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in told.items()}
    facts = [f"{name}: {text}" for name, text in texts.items() if text]
    facts += [f"~{int(rows):,} row{'s' * (rows != '1')}"] if rows.isdecimal() else []
    return f"{step.get('name', '').strip()}  {'; '.join(facts)}".strip()
