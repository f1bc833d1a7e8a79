"""Places in a text: line, column, and an excerpt with a caret under it."""

from __future__ import annotations

from nbext.core.untrusted_text import visible

# Around a caret in a very long line, this much is shown on each side.
_SIDE = 70


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return the line and the column of a position, both counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def excerpt(text: str, position: int, prefix: str = "") -> str:
    """Return the line of a position, indented, and a caret under the position.

    ``prefix`` is put before the line: the magic's own name, where the text is what follows it.
    """
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end].rstrip("\r")
    # Hidden characters become escapes, which are longer: the caret is counted after that.
    column = min(position - start, len(line))
    cut_left = max(0, column - _SIDE)
    left = ("…" if cut_left else prefix) + visible(line[cut_left:column], None)
    right = visible(line[column : column + _SIDE], None) + ("…" if len(line) > column + _SIDE else "")
    return f"    {left}{right}\n    {' ' * len(left)}^"


def at(text: str, position: int) -> str:
    """Return ``line 2, column 5`` and the excerpt there."""
    line, column = line_and_column(text, position)
    return f"line {line}, column {column}:\n{excerpt(text, position)}"
