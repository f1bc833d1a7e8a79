"""Every sentence that the package can show to a person, in one list: ``python -m tests.messages`` prints it.

A sentence is a string of three words or more that is no docstring: messages of errors, details of problems, help texts,
notes, labels. What an f-string inserts is shown by its expression in braces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "nbext"
# Three words, a blank between each two; SQL, HTML, CSS and patterns are for machines.
SENTENCE = re.compile(r"(?:[A-Za-z'`{}_%./,:-]+ ){2,}[A-Za-z'`{}_.]+")
FOR_MACHINES = re.compile(
    r"\s*(SELECT|WITH|CREATE|INSERT|DELETE|UPDATE|COPY|FROM|ATTACH|SET|PRAGMA|ALTER|DROP|BEGIN|VALUES|WHERE|ORDER BY)\b"
    r"|\s*(JOIN|LEFT|AND|OR|ON|GROUP BY|UNION|PRIMARY)\b|\s*[(|]?(case|read_csv|cast|sum|<\w+)\b"
    r"|.*(::|\(SELECT|\bFROM \w+ |[{;] *[\w-]+: )"
)


class Sentence(NamedTuple):
    """A text and where it is."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.text}"


@cache
def sentences() -> list[Sentence]:
    """Return every sentence of the package, in the order of the files."""
    return [
        Sentence(str(path.relative_to(PACKAGE)), line, text)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in _texts(ast.parse(path.read_text("utf-8")))
        if SENTENCE.search(text) and not FOR_MACHINES.match(text)
    ]


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            yield child.lineno, "".join(map(_part, child.values))
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.lineno, child.value
        elif not (
            isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        ):  # a docstring
            yield from _texts(child)


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    assert isinstance(value, ast.FormattedValue)
    return f"{{{ast.unparse(value.value)}}}"


if __name__ == "__main__":
    for sentence in sentences():
        print(sentence)
