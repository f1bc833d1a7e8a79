"""What a question's statements are, and how their sets of wallets are combined, for people to read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbext.engine.query.set_tree import Leaf, Narrowed, Settled, Union

if TYPE_CHECKING:
    from nbext.engine.query.set_tree import Sql

# Of a list of values.
_SHOWN = 20
_CLAUSE = re.compile(r" (?=FROM |WHERE |GROUP BY |HAVING |UNION ALL |LEFT JOIN |ANTI JOIN |JOIN )")


def formula_of(node: Settled, leaves: list[Leaf]) -> str:
    """Return how the leaves of a tree are combined, as ``1 and (2 or 3) and not 4``; add them to ``leaves``."""
    if isinstance(node, Leaf):
        leaves.append(node)
        return str(len(leaves))
    if isinstance(node, Union):
        return " or ".join(_member(part, leaves) for part in node.parts)
    # What is narrowed is read from left to right: it needs no brackets.
    narrowed = isinstance(node.first, Narrowed)
    first = formula_of(node.first, leaves) if narrowed else _member(node.first, leaves)
    inside = [_member(part, leaves) for part in node.inside]
    outside = [f"not {_member(part, leaves)}" for part in node.outside]
    return " and ".join([first, *inside, *outside])


def _member(node: Settled, leaves: list[Leaf]) -> str:
    text = formula_of(node, leaves)
    return text if isinstance(node, Leaf) else f"({text})"


def spelled_out(sql: Sql) -> str:
    """Return a statement as it runs, a clause to a line, and its values below it."""
    lines, depth = [], 0
    for clause in _CLAUSE.split(sql.text):
        lines.append("  " * depth + clause)
        depth = max(0, depth + clause.count("(") - clause.count(")"))
    values = [f"-- ${name} = {_shown(value)}" for name, value in sql.values.items()]
    return "\n".join([*lines, *values])


def _shown(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    more = f", and {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else ""
    return f"[{', '.join(map(str, value[:_SHOWN]))}{more}]"
