"""The small faults that can be put into a module's text, one at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_CALLED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "startswith": "endswith",
    "endswith": "startswith",
    "removeprefix": "removesuffix",
    "removesuffix": "removeprefix",
    "union": "intersection",
    "intersection": "union",
}
_CAUGHT = {"OSError": "FileNotFoundError", "Exception": "ValueError", "ValueError": "UnicodeError"}
_SQL = re.compile(r"\b(SELECT|WHERE|JOIN|GROUP BY|ORDER BY|UPDATE|DELETE FROM|INSERT INTO)\b")
# What is found in a statement, and what it becomes.
_IN_SQL = [
    (re.compile(found), becomes)
    for found, becomes in (
        (r"(?<=\s)>=(?=\s)", ">"),
        (r"(?<=\s)<=(?=\s)", "<"),
        (r"(?<=\s)>(?=\s)", ">="),
        (r"(?<=\s)<(?=\s)", "<="),
        (r"(?<=\s)=(?=\s)", "<>"),
        (r"(?<=\s)<>(?=\s)", "="),
        (r"\bSEMI\b", "ANTI"),
        (r"\bANTI\b", "SEMI"),
        (r"\bLEFT JOIN\b", "JOIN"),
        (r"\bUNION ALL\b", "UNION"),
        (r"\bDISTINCT ", ""),
        (r"\bDESC\b", "ASC"),
        (r"\bIS NOT NULL\b", "IS NULL"),
        (r"\bIS NULL\b", "IS NOT NULL"),
        (r"\bNOT IN\b", "IN"),
        (r"\bAND\b", "OR"),
        (r"\bOR\b", "AND"),
        (r"\bmin\(", "max("),
        (r"\bmax\(", "min("),
        (r"\bsum\(", "max("),
        (r"(?<= )\+(?= )", "-"),
        (r"(?<= )-(?= )", "+"),
        (r"\b0\b", "1"),
        (r"\b1\b", "2"),
    )
]


@dataclass(frozen=True)
class Mutant:
    """One fault: the module's text from ``start`` to ``end`` becomes ``after``.

    ``lines`` are those of the statement (of a block its head), which a test that sees the fault runs;
    ``function`` are those of the function around it; ``row`` is the text of ``line``.
    """

    file: str
    line: int
    lines: tuple[int, int]
    function: tuple[int, int]
    row: str
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.change}"

    @property
    def change(self) -> str:
        """What becomes of what."""
        return f"{_short(self.before)} -> {_short(self.after) or 'nothing'}"

    @property
    def name(self) -> str:
        """The mutant as ``equivalent.txt`` has it: without its line's number, which moves."""
        return f"{self.file}: {_short(self.row)}: {self.change}"

    def applied(self, text: str) -> str:
        """Return the module's text with the fault."""
        return text[: self.start] + self.after + text[self.end :]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:40]} ... {text[-15:]}"


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return the faults that can be put into a module's functions."""
    text = path.read_text("utf-8")
    walk = _Walk(text, str(path.relative_to(root)))
    walk.visit(ast.parse(text))
    return walk.found


def is_a_fault(mutant: Mutant, text: str) -> bool:
    """Return whether the module's text is still Python with the mutant, and not the same as before."""
    try:
        return ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


class _Walk(ast.NodeVisitor):
    """Collects the faults inside functions: what runs at import has no test of its own."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.found: list[Mutant] = []
        self.lines = self.function = (0, 0)
        self._rows = text.splitlines(keepends=True)
        self._starts = [0]
        for row in self._rows:
            self._starts.append(self._starts[-1] + len(row))

    def _at(self, line: int, column: int) -> int:
        # Columns are counted in bytes.
        return self._starts[line - 1] + len(self._rows[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(
            node.end_lineno, node.end_col_offset
        )

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def add(self, start: int, end: int, after: str) -> None:
        line = self.text.count("\n", 0, start) + 1
        self.found.append(
            Mutant(
                self.file,
                line,
                self.lines,
                self.function,
                self._rows[line - 1],
                self.text[start:end],
                after,
                start,
                end,
            )
        )

    def replace(self, node: ast.AST, after: str) -> None:
        self.add(*self.span(node), after)

    def word(self, left: ast.AST, right: ast.AST, before: str, after: str) -> None:
        """Replace the operator between two operands, brackets and lines left as they are."""
        start, end = self.span(left)[1], self.span(right)[0]
        if self.text[start:end].strip(" ()\n") == before:
            place = start + self.text[start:end].index(before)
            self.add(place, place + len(before), after)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._visit_function(node)
            return
        before = self.lines
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            self.lines = (node.lineno, last)
        if self.function != (0, 0):
            for made in _FAULTS:
                made(self, node)
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "decorator_list"} or isinstance(
                node, ast.JoinedStr
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)
        self.lines = before

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = self.function, self.lines
        self.function = (node.lineno, node.end_lineno or node.lineno)
        documented = ast.get_docstring(node) is not None
        for child in node.body[documented:]:
            self.visit(child)
        self.function, self.lines = before


def _operators(walk: _Walk, node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for place, operator in enumerate(node.ops):
            walk.word(operands[place], operands[place + 1], *_COMPARED[type(operator)])
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        walk.word(node.left, node.right, *_COMPUTED[type(node.op)])
    elif isinstance(node, ast.BoolOp):
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        walk.word(*node.values[-2:], *words)
        walk.replace(node, f" {words[0]} ".join(map(walk.source, node.values[:-1])))
        walk.replace(node, walk.source(node.values[-1]))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        walk.replace(node, f"bool({walk.source(node.operand)})")


def _branches(walk: _Walk, node: ast.AST) -> None:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.BoolOp):
            walk.replace(node.test, f"(not ({walk.source(node.test)}))")
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            walk.replace(test, "True")
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for each in caught:
            walk.replace(each, _CAUGHT.get(walk.source(each), "ZeroDivisionError"))


def _values(walk: _Walk, node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        walk.replace(node, str(not node.value))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        walk.replace(node, str(node.value + 1))
        walk.replace(node, str(node.value - 1) if node.value else "(-1)")
    elif isinstance(node, ast.Return) and node.value is not None:
        walk.replace(node.value, "None")


def _statements(walk: _Walk, node: ast.AST) -> None:
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    stored = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Attribute | ast.Subscript
    )
    left = isinstance(node, ast.Raise | ast.AugAssign | ast.Delete | ast.Continue | ast.Break)
    if called or stored or left:
        walk.replace(node, "pass")


def _calls(walk: _Walk, node: ast.AST) -> None:
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else walk.source(node.func)
    if name in _CALLED:
        end = walk.span(node.func)[1]
        walk.add(end - len(name), end, _CALLED[name])
    # The order of the numbers of which the least is wanted changes nothing.
    if len(node.args) >= 2 and name not in {"isinstance", "getattr", "cast", "min", "max"}:
        first, second = node.args[:2]
        if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
            between = walk.text[walk.span(first)[1] : walk.span(second)[0]]
            swapped = walk.source(second) + between + walk.source(first)
            walk.add(walk.span(first)[0], walk.span(second)[1], swapped)


def _statement_texts(walk: _Walk, node: ast.AST) -> None:
    if not isinstance(node, ast.JoinedStr | ast.Constant):
        return
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return
    start, _ = walk.span(node)
    text = walk.source(node)
    if _SQL.search(text):
        for pattern, becomes in _IN_SQL:
            for found in pattern.finditer(text):
                walk.add(start + found.start(), start + found.end(), becomes)


_FAULTS = (_operators, _branches, _values, _statements, _calls, _statement_texts)


def changed_lines(diff: str) -> Iterator[tuple[str, int]]:
    """Yield the file and number of each line that a ``git diff --unified=0`` adds or changes."""
    file = ""
    for row in diff.splitlines():
        if row.startswith("+++ "):
            file = row.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", row):
            first, count = int(found[1]), int(found[2] or 1)
            yield from ((file, line) for line in range(first, first + count))
