"""How much there is to read: ``python -m tests.size`` prints the tokens and modules of each room.

Tokens, because neither the width of a line nor a blank one changes them. Comments, docstrings, line ends and indents
are not counted; a string, also an f-string, is one token.
"""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "nbext"
# A line for each step: date, tokens, modules, why. The last one is the cap.
HISTORY = Path(__file__).with_name("size_history.txt")
_LAYOUT = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
)
# From Python 3.12 on an f-string is several tokens; it counts as one, as before.
_OPENS, _CLOSES = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)


def tokens_of(path: Path) -> int:
    """Return the number of tokens of a module's code."""
    documented = _docstrings(ast.parse(path.read_bytes()))
    count = depth = 0
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in _LAYOUT or token.start in documented:
                continue
            depth -= token.type == _CLOSES
            count += depth == 0 and token.type != _CLOSES
            depth += token.type == _OPENS
    return count


def _docstrings(tree: ast.Module) -> set[tuple[int, int]]:
    bodies = (
        node.body
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {
        (body[0].lineno, body[0].col_offset)
        for body in bodies
        if body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    }


def history() -> list[tuple[int, int, str]]:
    """Return the caps that have been, oldest first: tokens, modules, and why."""
    lines = [
        line.split(None, 3) for line in HISTORY.read_text("utf-8").splitlines() if line[:1] != "#"
    ]
    return [(int(tokens), int(modules), why) for _, tokens, modules, why in lines]


def main() -> None:
    """Print the size of each room, the largest first, and of the whole package."""
    tokens, modules = Counter[str](), Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        for room in (path.relative_to(PACKAGE).parts[0], "nbext"):
            tokens[room] += tokens_of(path)
            modules[room] += 1
    for room, count in tokens.most_common():
        print(f"{room:14} {modules[room]:4} modules {count:8,} tokens")


if __name__ == "__main__":
    main()
