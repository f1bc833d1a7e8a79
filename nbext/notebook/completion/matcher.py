"""Completion inside our cells, by IPython's context matcher: from what was learned, never from the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.notebook.cell.json_source import cursor_of
from nbext.notebook.completion import schema
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Grammar

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from nbext.notebook.session import Session

_CELL = re.compile(r"%%(segment_query)\b")
_LINE = re.compile(r"\s*(?:[\w.\[\]'\"]+\s*=\s*)?%(segment|token|nft|nbext)\s")
_SHOWN = 200
# The keys of a whole request; a cell may be one.
_REQUEST = {("filters",), ("operator",), ("fileType",), ("limit",)}
_BREAKING = set("\"\\{}")
# Keys whose values are symbols or addresses of contracts, where a service publishes no schema that would say so.
_CONTRACTS = {"token", "nft", "of"}

Offer = tuple[str, list[str]]


def matcher(session: Session) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return the matcher of a session, for ``Completer.custom_matchers``."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier="nbext")  # type: ignore[untyped-decorator]  # IPython's own is untyped
    def nbext_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        offer = offers(session, lines, context.cursor_line, context.cursor_position)
        if offer is None:
            return {"completions": []}
        typed, words = offer
        return {
            "completions": [SimpleCompletion(text=word, type="nbext") for word in words[:_SHOWN]],
            "matched_fragment": typed,
            # In our cells Python's names and the folder's files would hide the words that fit.
            "suppress": bool(words),
            "ordered": True,
        }

    made: Callable[[CompletionContext], SimpleMatcherResult] = nbext_matcher
    return made


def offers(session: Session, lines: list[str], line: int, column: int) -> Offer | None:
    """Return what is typed at the cursor and what it may become; None outside our cells."""
    if not 0 <= line < len(lines):
        return None
    before = lines[line][:column]
    cell = _CELL.match(lines[0])
    if cell and line > 0:
        return _in_body(session, "\n".join([*lines[1:line], before]))
    if cell and before.startswith(cell.group()) and len(before) > cell.end():
        return _in_line(session, grammars.BY_MAGIC[cell[1]], before[cell.end() :])
    found = _LINE.match(before)
    if found is None or lines[0].startswith("%%"):
        return None
    rest = before[found.end() :]
    if found[1] == "segment" and rest.lstrip().startswith("{") and " -" not in rest:
        return _in_body(session, rest)
    return _in_line(session, grammars.BY_MAGIC[found[1]], rest)


def _in_line(session: Session, grammar: Grammar, rest: str) -> Offer:
    # The last piece is being typed, also where it is still empty.
    *done, typed = re.split(r"\s+", rest)
    if "{{" in typed:
        typed = typed.rpartition("{{")[2]
        return typed, _starting(typed, tables(session))
    if typed.startswith("-"):
        return typed, _starting(typed, (flag for flag in grammar.flags if flag.startswith("--")))
    # After an option that takes a value, only its values.
    option = grammar.flags.get(done[-1]) if done else None
    if option is not None and option.kind == "text":
        words = option.choices or (session.vocabulary.chains if option.name == "chain" else ())
        return typed, _starting(typed, words)
    return typed, _starting(typed, _words(session, grammar, [word for word in done if word]))


def _words(session: Session, grammar: Grammar, done: list[str]) -> Iterable[str]:
    """Return what the next word may be, from those before it."""
    if grammar is grammars.NBEXT:
        if not done:
            return grammars.COMMANDS
        if done[0] == "schema":
            return schema.keys(session.vocabulary.schema or {}, ["filters"])
        return session.settings.all() if done[0] in ("set", "unset") else ()
    if grammar in (grammars.TOKEN, grammars.NFT):
        if not done:
            return [*(["search"] if grammar is grammars.NFT else []), *session.vocabulary.chains]
        return [*session.vocabulary.symbols, *tables(session)] if done[0] != "search" else ()
    return ()


def _in_body(session: Session, text: str) -> Offer:
    cursor = cursor_of(text)
    if cursor.place == "python":
        return cursor.typed, _starting(cursor.typed, tables(session))
    known = session.vocabulary.schema or {}
    # A cell is the filters, or a whole request that contains them.
    path = cursor.path if cursor.path[:1] in _REQUEST else ("filters", *cursor.path)
    if cursor.place == "key":
        found = [*schema.keys(known, path), *(schema.keys(known, ()) if not cursor.path else ())]
        names = _starting(cursor.typed, found)
        return cursor.typed, names if cursor.quoted else [f'"{name}": ' for name in names]
    if cursor.place == "value":
        words = _starting(cursor.typed, _values(session, path))
        return cursor.typed, words if cursor.quoted else [f'"{word}"' for word in words]
    return cursor.typed, []


def _values(session: Session, path: tuple[str, ...]) -> list[str]:
    if path[-1] == "chain":
        return list(session.vocabulary.chains)
    known = session.vocabulary.schema
    # Words, addresses and times have a list or a pattern in the schema: a text that has neither is a contract's symbol.
    if schema.takes_any_text(known, path) if known else path[-1] in _CONTRACTS:
        return list(session.vocabulary.symbols)
    return schema.values(known or {}, path)


def tables(session: Session) -> list[str]:
    """Return the notebook's variables that have a JSON form: tables, columns, lists, strings, numbers."""
    return sorted(
        name
        for name, value in list(session.names.items())
        if not name.startswith("_") and name not in ("In", "Out") and _can_be_json(value)
    )


def _can_be_json(value: Any) -> bool:
    if isinstance(value, str | int | float | list | tuple | set | dict):
        return True
    return hasattr(value, "tolist") or (hasattr(value, "columns") and hasattr(value, "attrs"))


def _starting(typed: str, words: Iterable[str]) -> list[str]:
    lowered = typed.lower()
    return [word for word in words if word.lower().startswith(lowered) and _fits_a_cell(word)]


def _fits_a_cell(word: str) -> bool:
    # Symbols and schemas are written by strangers, and a completion goes into the cell as it is: a line break in one
    # begins a line that IPython runs, and a quote or a brace ends the text that it was put into.
    return visible(word) == word and not _BREAKING & set(word)
