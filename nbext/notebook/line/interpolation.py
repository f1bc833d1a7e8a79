"""``{{expression}}`` on a magic's line: its Python value, known when the line runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.notebook.cell.body import Expression, evaluated
from nbext.notebook.line.options import Args, Grammar
from nbext.notebook.line.tokenizer import Word


def value_of(word: Word, args: Args, names: Mapping[str, Any]) -> Any:
    """Return the JSON value of a word's expression, or the text of a word that is none.

    Raises
    ------
    UsageError
        The expression fails, or its value has no JSON form.
    """
    return evaluated(Expression(word.text, word.column), args.line, names) if word.kind == "python" else word.text


def text_of(word: Word, args: Args, names: Mapping[str, Any]) -> str:
    """Return a word as text, whether it was written or is an expression's value."""
    return str(value_of(word, args, names))


def settle(grammar: Grammar, args: Args, names: Mapping[str, Any]) -> None:
    """Read the options whose values are expressions as if the values had been written."""
    for name, given in args.options.items():
        if isinstance(given, Word):
            args.options[name] = grammar.read(args, name, Word(text_of(given, args, names), given.column, "quoted"))
