"""Completion inside our cells, by IPython's context matcher: from what was learned, never from the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbext.core.rules import LIST_FILES, LIST_KEYS
from nbext.core.untrusted_text import visible
from nbext.core.wire import EXECUTE_KEYS
from nbext.notebook import schema
from nbext.notebook.cell.json_source import Cursor, cursor_of
from nbext.notebook.line import Grammar
from nbext.notebook.run.root import MAGICS
from nbext.notebook.schema import Kind, help_line, variables_in_words
from nbext.notebook.session import saved_names

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from nbext.notebook.session import Session

_CELL = re.compile(r"%%(segment_query)\b")
_LINE = re.compile(
    rf"\s*(?:[\w.\[\]'\"]+\s*=\s*)?%({'|'.join(name for name in MAGICS if name != 'segment_query')})\s"
)
_SHOWN = 200
_BREAKING = set('"\\{}')
# Keys whose values are symbols or addresses of contracts, where a service publishes no schema that would say so.
_CONTRACTS: dict[str, tuple[Kind, ...]] = {
    "token": ("token",),
    "nft": ("collection",),
    "of": ("collection",),
}


class Offer(NamedTuple):
    """What is typed, what it may become, and what is said of each of these words."""

    typed: str
    words: Mapping[str, str]


def matcher(session: Session) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return the matcher of a session, for ``Completer.custom_matchers``."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier="nbext")  # type: ignore[untyped-decorator]  # IPython's own is untyped
    def nbext_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        offer = offers(session, lines, context.cursor_line, context.cursor_position)
        if offer is None:
            return {"completions": []}
        # IPython takes an empty offer for none, and would offer its own magics and files in the middle of our JSON.
        words = list(offer.words.items())[:_SHOWN] or [(offer.typed, "")]
        return {
            "completions": [SimpleCompletion(text=word, type=about) for word, about in words],
            "matched_fragment": offer.typed,
            # In our cells Python's names and the folder's files would hide the words that fit.
            "suppress": True,
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
        return _in_line(session, MAGICS[cell[1]][0], before[cell.end() :], "\n".join(lines[1:]))
    found = _LINE.match(before)
    if found is None or lines[0].startswith("%%"):
        return None
    rest = before[found.end() :]
    if found[1] == "segment" and rest.lstrip().startswith("{") and " -" not in rest:
        return _in_body(session, rest)
    return _in_line(session, MAGICS[found[1]][0], rest, rest)


def _in_line(session: Session, grammar: Grammar, rest: str, filters: str) -> Offer:
    # The last piece is being typed, also where it is still empty.
    *before, typed = re.split(r"\s+", rest)
    done = [word for word in before if word]
    if (place := grammar.command_at(done)) is not None:
        grammar = grammar.commands[done.pop(place)]
    option = grammar.flags.get(done[-1]) if done else None
    words: Mapping[str, str] = {}
    if "{{" in typed:
        typed = typed.rpartition("{{")[2]
        words = _python(session, typed)
    elif typed.startswith("-"):
        own = grammar.own and grammar.own()
        flags = own or {flag: help_line("option", one.help) for flag, one in grammar.flags.items()}
        words = {flag: about for flag, about in flags.items() if flag.startswith("--")}
    elif option is None or option.kind == "flag":
        words = grammar.completes(session, done, typed)
    # After an option that takes a value, only its values.
    elif option.choices:
        words = dict.fromkeys(option.choices, help_line("value", option.help))
    elif option.name == "by":
        words = dict.fromkeys(_columns(session, filters), "column")
    elif option.name == "from":
        words = dict.fromkeys(saved_names(session.data_dir), "saved query")
    elif option.name == "chain":
        words = session.vocabulary.chains
    return Offer(typed, _starting(typed, words))


def _in_body(session: Session, text: str) -> Offer:
    cursor = cursor_of(text)
    known = session.vocabulary.schema or {}
    # A cell is the filters, or a whole request that contains them.
    whole = cursor.path and cursor.path[0] in EXECUTE_KEYS
    path = cursor.path if whole else ("filters", *cursor.path)
    found: Mapping[str, str] = {}
    if cursor.place == "python":
        found = _python(session, cursor.typed)
    elif cursor.place == "key":
        top = {} if cursor.path else schema.keys_in_words(known, ())
        found = schema.keys_in_words(known, path) | top
    elif cursor.place == "value":
        found = _values(session, path, cursor, text)
    words = _starting(cursor.typed, found)
    if not (cursor.quoted or cursor.place == "python"):
        end = ": " if cursor.place == "key" else ""
        words = {f'"{word}"{end}': about for word, about in words.items()}
    return Offer(cursor.typed, words)


def _columns(session: Session, filters: str) -> list[str]:
    facts = schema.values(session.vocabulary.schema or {}, ("filters", "columns"))
    return schema.row_columns(filters, facts)


def _values(
    session: Session, path: tuple[str, ...], cursor: Cursor, text: str
) -> Mapping[str, str]:
    if path[-1] in LIST_KEYS and cursor.typed.startswith("@"):
        return dict.fromkeys(_files(cursor.typed), help_line("file", "a list of wallets"))
    if path == ("filters", "orderBy"):
        ways = {
            "-": help_line("column", "the largest first"),
            "": help_line("column", "the smallest first"),
        }
        return {sign + name: way for name in _columns(session, text) for sign, way in ways.items()}
    if path[-1] == "chain":
        return session.vocabulary.chains
    known = session.vocabulary.schema
    kinds = schema.contract_kinds(known, path) if known else _CONTRACTS.get(path[-1], ())
    if kinds:
        symbols: dict[str, str] = {}
        for kind in kinds:
            symbols |= session.vocabulary.symbols(kind, cursor.chain, cursor.typed)
        return symbols
    return schema.values(known or {}, path)


def _files(typed: str) -> list[str]:
    """Return the lists in the notebook's folder, or in the one that is typed, as `@FILE`."""
    folder = typed[1:].rpartition("/")[0]
    with suppress(OSError):
        found = sorted(
            path.name
            for path in Path(folder or ".").expanduser().iterdir()
            if path.suffix in LIST_FILES
        )
        return [f"@{folder}/{name}" if folder else f"@{name}" for name in found]
    return []


def _python(session: Session, typed: str) -> Mapping[str, str]:
    """Return the notebook's variables for ``{{``, and after a table's name and a dot its columns."""
    name, dot, _ = typed.rpartition(".")
    if not dot:
        return variables_in_words(session.names)
    columns = getattr(session.names.get(name), "columns", ())
    held = [one for one in columns if isinstance(one, str) and one.isidentifier()]
    return {f"{name}.{one}": help_line("column", f"of {name}") for one in held}


def _starting(typed: str, words: Mapping[str, str]) -> dict[str, str]:
    lowered = typed.lower()
    return {
        word: about
        for word, about in words.items()
        # Symbols and schemas are written by strangers, and a completion goes into the cell as it is: a line break in
        # one begins a line that IPython runs, and a quote or a brace ends the text that it was put into.
        if word.lower().startswith(lowered) and visible(word) == word and not _BREAKING & set(word)
    }
