"""Completion inside our cells, by IPython's context matcher: from what was learned, never from the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.notebook.cell.body import LIST_KEY
from nbext.notebook.cell.json_source import Cursor, cursor_of
from nbext.notebook.completion import schema
from nbext.notebook.completion.vocabulary import Kind
from nbext.notebook.line import grammars
from nbext.notebook.line.options import Grammar
from nbext.notebook.run import fetch
from nbext.notebook.session import saved_names
from nbext.settings import SETTINGS

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from nbext.notebook.session import Session

# The commands whose words are segments: symbols stand for their holders.
_OF_SEGMENTS = ("overlap", "funnel", "concentration", "trend", "retention")
_CELL = re.compile(r"%%(segment_query)\b")
_LINE = re.compile(r"\s*(?:[\w.\[\]'\"]+\s*=\s*)?%(segment|token|nft|nbext)\s")
_SHOWN = 200
# The keys of a whole request; a cell may be one.
_REQUEST = {("filters",), ("operator",), ("fileType",), ("limit",)}
_BREAKING = set('"\\{}')
# Keys whose values are symbols or addresses of contracts, where a service publishes no schema that would say so.
_CONTRACTS: dict[str, tuple[Kind, ...]] = {
    "token": ("token",),
    "nft": ("collection",),
    "of": ("collection",),
}

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
        # IPython takes an empty offer for none, and would offer its own magics and files in the middle of our JSON.
        words = words or [typed]
        return {
            "completions": [SimpleCompletion(text=word, type="nbext") for word in words[:_SHOWN]],
            "matched_fragment": typed,
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
        return _in_line(
            session, grammars.BY_MAGIC[cell[1]], before[cell.end() :], "\n".join(lines[1:])
        )
    found = _LINE.match(before)
    if found is None or lines[0].startswith("%%"):
        return None
    rest = before[found.end() :]
    if found[1] == "segment" and rest.lstrip().startswith("{") and " -" not in rest:
        return _in_body(session, rest)
    return _in_line(session, grammars.BY_MAGIC[found[1]], rest, rest)


def _in_line(session: Session, grammar: Grammar, rest: str, filters: str) -> Offer:
    # The last piece is being typed, also where it is still empty.
    *done, typed = re.split(r"\s+", rest)
    if "{{" in typed:
        typed = typed.rpartition("{{")[2]
        return typed, _starting(typed, _python(session, typed))
    if typed.startswith("-"):
        flags = fetch.flags() if done and done[0] in grammar.commands else grammar.flags
        return typed, _starting(typed, (flag for flag in flags if flag.startswith("--")))
    # After an option that takes a value, only its values.
    option = grammar.flags.get(done[-1]) if done else None
    if option is not None and option.name == "by":
        return typed, _starting(typed, _columns(session, filters))
    if option is not None and option.name == "from":
        return typed, _starting(typed, saved_names(session.data_dir))
    if option is not None and option.kind == "text":
        words = option.choices or (session.vocabulary.chains if option.name == "chain" else ())
        return typed, _starting(typed, words)
    return typed, _starting(typed, _words(session, grammar, [word for word in done if word], typed))


def _words(session: Session, grammar: Grammar, done: list[str], typed: str) -> Iterable[str]:
    """Return what the next word may be, from those before it."""
    if grammar is grammars.NBEXT:
        return _words_of_a_command(session, done, typed) if done else grammars.COMMANDS
    if grammar in (grammars.TOKEN, grammars.NFT):
        if not done:
            return [*(["search"] if grammar is grammars.NFT else []), *session.vocabulary.chains]
        kind: Kind = "token" if grammar is grammars.TOKEN else "collection"
        return session.vocabulary.symbols(kind, done[0], typed) if done[0] != "search" else ()
    if grammar is grammars.SEGMENT and not done:
        # The id of a table's segment is 40 letters that nobody types; the table's name stands for it.
        return [
            name for name in tables(session) if "nbext" in getattr(session.names[name], "attrs", {})
        ]
    return ()


def _words_of_a_command(session: Session, done: list[str], typed: str) -> Iterable[str]:
    if done[0] in _OF_SEGMENTS:
        kinds: tuple[Kind, ...] = ("token", "collection")
        return [
            one
            for kind in kinds
            for one in session.vocabulary.symbols(kind, session.settings["chain"], typed)
        ]
    if done[0] == "schema":
        return schema.keys(session.vocabulary.schema or {}, ["filters"])
    if done[0] == "set" and len(done) > 1:
        setting = next((one for one in SETTINGS if one.name == done[1]), None)
        if setting is None or done[1] == "chain":
            return session.vocabulary.chains if setting else ()
        return ("true", "false") if setting.kind is bool else setting.choices
    return session.settings.all() if done[0] in ("set", "unset") else ()


def _in_body(session: Session, text: str) -> Offer:
    cursor = cursor_of(text)
    if cursor.place == "python":
        return cursor.typed, _starting(cursor.typed, _python(session, cursor.typed))
    known = session.vocabulary.schema or {}
    # A cell is the filters, or a whole request that contains them.
    path = cursor.path if cursor.path[:1] in _REQUEST else ("filters", *cursor.path)
    if cursor.place == "key":
        found = [*schema.keys(known, path), *(schema.keys(known, ()) if not cursor.path else ())]
        names = _starting(cursor.typed, found)
        return cursor.typed, names if cursor.quoted else [f'"{name}": ' for name in names]
    if cursor.place == "value":
        words = _starting(cursor.typed, _values(session, path, cursor, text))
        return cursor.typed, words if cursor.quoted else [f'"{word}"' for word in words]
    return cursor.typed, []


def _columns(session: Session, filters: str) -> list[str]:
    facts = schema.values(session.vocabulary.schema or {}, ("filters", "columns"))
    return schema.columns(filters, facts)


def _values(session: Session, path: tuple[str, ...], cursor: Cursor, text: str) -> list[str]:
    if path[-1] == LIST_KEY and cursor.typed.startswith("@"):
        return _files(cursor.typed)
    if path == ("filters", "orderBy"):
        return [sign + name for name in _columns(session, text) for sign in ("-", "")]
    if path[-1] == "chain":
        return list(session.vocabulary.chains)
    known = session.vocabulary.schema
    kinds = schema.contract_kinds(known, path) if known else _CONTRACTS.get(path[-1], ())
    if kinds:
        return [
            symbol
            for kind in kinds
            for symbol in session.vocabulary.symbols(kind, cursor.chain, cursor.typed)
        ]
    return schema.values(known or {}, path)


def _files(typed: str) -> list[str]:
    """Return the lists in the notebook's folder, or in the one that is typed, as `@FILE`."""
    # Imported here: who completes a list has loaded the client, or will.
    from nbext.client.lists import ENDINGS

    folder = typed[1:].rpartition("/")[0]
    with suppress(OSError):
        found = sorted(
            path.name
            for path in Path(folder or ".").expanduser().iterdir()
            if path.suffix in ENDINGS
        )
        return [f"@{folder}/{name}" if folder else f"@{name}" for name in found]
    return []


def _python(session: Session, typed: str) -> list[str]:
    """Return the notebook's variables for ``{{``, and after a table's name and a dot its columns."""
    name, dot, _ = typed.rpartition(".")
    if not dot:
        return tables(session)
    columns = getattr(session.names.get(name), "columns", ())
    return [f"{name}.{one}" for one in columns if isinstance(one, str) and one.isidentifier()]


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
