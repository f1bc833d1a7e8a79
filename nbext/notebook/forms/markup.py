"""HTML of tables, facts and code, for snapshots and for what views show. A stranger's text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.provenance import Provenance
from nbext.core.rules import is_whole
from nbext.core.untrusted_text import html, visible
from nbext.notebook.results.numbers import rows_in_words
from nbext.notebook.results.tables import is_missing, rows_html
from nbext.notebook.views.view import MAX_MESSAGE

if TYPE_CHECKING:
    import pandas as pd

# Words, never colour alone.
MARKS = (("verified", "good", "✓ verified"), ("possibleSpam", "bad", "⚠ possible spam"))


def lines_text(text: str) -> str:
    """Return a text of several lines in which nothing hides, and keep its line breaks."""
    return "\n".join(visible(line, MAX_MESSAGE) for line in text.splitlines())


def lines_html(text: str) -> str:
    """Return a text of several lines as HTML that shows it literally and keeps its line breaks."""
    return "<br>".join(html(line, MAX_MESSAGE) for line in text.splitlines())


def notes_html(notes: Iterable[str]) -> str:
    """Return notes as paragraphs, one below the other."""
    return "".join(f'<p class="nbext-note">{lines_html(note)}</p>' for note in notes)


def cells_html(heads: str, rows: Iterable[str]) -> str:
    """Return a table of cells that are HTML already."""
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return (
        '<div class="nbext-scroll"><table class="nbext-table mathjax_ignore tex2jax_ignore">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bar_html(percent: float) -> str:
    """Return a bar of a cell: how much of the most."""
    return f'<div class="nbext-bar" style="width: {percent:.1f}%"></div>'


def facts_html(facts: Iterable[tuple[str, object]]) -> str:
    """Return names and values as a list that shows every value literally."""
    rows = "".join(
        f'<tr><th scope="row">{html(name)}</th><td>{html(value, 2000)}</td></tr>'
        for name, value in facts
    )
    return f'<table class="nbext-facts mathjax_ignore tex2jax_ignore"><tbody>{rows}</tbody></table>'


def part_of(frame: pd.DataFrame) -> str:
    """Return of which rows a table has a part, as it came or since; nothing where it has all."""
    known = Provenance.of(frame)
    if not known.has_all_of(frame):
        return f"of the {number_text(known.returned)} that were returned"
    matched = number_text(known.matched) or "wallets"
    return f"of the {matched} that match, cut by the limit" if known.truncated else ""


def facts_of(frame: pd.DataFrame) -> list[tuple[str, object]]:
    """Return how many wallets match, how many rows are here, the block and chain that they are of, and the notes."""
    known, as_of, part = Provenance.of(frame), "", part_of(frame)
    if isinstance(known.as_of, Mapping):
        time = text_of(known.as_of.get("timestamp"))
        as_of = f"block {number_text(known.as_of.get('block'))} {time}".strip()
    facts: list[tuple[str, object]] = [
        ("Wallets that match", number_text(known.matched)),
        ("Rows here", f"{len(frame):,}{f' ({part})' * bool(part)}"),
        ("As of", as_of),
        ("Chain", text_of(known.chain)),
        *(("Note", visible(warning)) for warning in known.warnings),
    ]
    return [(name, value) for name, value in facts if value]


def funnel_html(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return conditions with the wallets that match each alone, that it removes and that remain.

    Of conditions of which any holds nothing is left over: these have no ``remaining``.
    """
    if not steps:
        return ""
    heads = ("alone", "removes", "remain") if "remaining" in steps[0] else ("alone",)
    most = max(step.get("remaining", step["alone"]) or 0 for step in steps) or 1
    rows: list[str] = []
    before: int | None = None
    for step in steps:
        alone, left = step["alone"], step.get("remaining")
        removed = None if before is None or left is None else before - left
        bar = bar_html(100 * ((alone if left is None else left) or 0) / most)
        counts = [number_text(number) for number in (alone, removed, left)][: len(heads)]
        numbers = "".join(f'<td class="nbext-number">{html(count)}</td>' for count in counts)
        # The words say of a NOT that it is one: a mark beside them would deny them once more.
        rows.append(f'<td class="nbext-step">{html(step["words"], 400)}{bar}</td>{numbers}')
        before = left
    named = "".join(f'<th scope="col" class="nbext-number">{name}</th>' for name in heads)
    return cells_html(f'<th scope="col">Wallets that</th>{named}', rows)


def code_html(text: str) -> str:
    """Return code that one click selects whole, ready to be copied."""
    # Line by line: html() shows a line break inside a text as an escape.
    shown = "\n".join(html(line, None) for line in text.split("\n"))
    return (
        '<pre class="nbext-code mathjax_ignore tex2jax_ignore" tabindex="0" role="group" aria-label="Code">'
        f"{shown}</pre>"
    )


ROWS = 8


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a table, and how many rows there are in all."""
    if not len(frame):
        return "<p>No wallet matches.</p>"
    note = f"{min(ROWS, len(frame)):,} of {rows_in_words(len(frame))}"
    return f'{rows_html(frame.head(ROWS))}<div class="nbext-note">{note}</div>'


def is_repeated(column: Mapping[str, Any] | None) -> bool:
    """Return whether a column repeats exactly, in the smallest unit, what another says in the token's."""
    return bool(column and column.get("unit") == "raw" and column.get("decimals") is not None)


def marks_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the marks of a result: the kind of each, and its words."""
    return [
        (kind, words)
        for key, kind, words in MARKS
        if not is_missing(one := result.get(key)) and one
    ]


def marks_html(result: Mapping[str, Any]) -> str:
    """Return the marks of a result."""
    return " ".join(
        f'<span class="nbext-mark nbext-mark-{kind}">{words}</span>'
        for kind, words in marks_of(result)
    )


def text_of(value: object) -> str:
    """Return the value as text; an unknown one as an empty text."""
    return "" if is_missing(value) else str(value)


def number_text(value: object) -> str:
    """Return a whole number with thousands separators, any other value as it is."""
    return f"{value:,}" if is_whole(value) else text_of(value)
