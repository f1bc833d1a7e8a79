"""A segment's card: the query in words, how many wallets match it and each condition alone, the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.forms.bins import spread
from nbext.notebook.forms.builder.filters import cell_text
from nbext.notebook.forms.form import Form, Snapshot, message_of
from nbext.notebook.forms.tables import NUMBERS, frame_html, is_missing, is_repeated, number_text, provenance, text_of
from nbext.notebook.forms.widgets import button, code_html, facts_html, lines_html, markup, row, table_html, text_field

if TYPE_CHECKING:
    import pandas as pd

    from nbext.notebook.forms.builder.form import SegmentForm

# A chart of more bars than this is harder to read than a table.
MOST_BARS = 16


class Card(Form):
    """The card of a segment's table."""

    title = "Segment"

    def __init__(self, client: Any, frame: pd.DataFrame) -> None:
        self.known = provenance(frame)
        if not hasattr(frame, "columns"):
            raise UsageError(
                f"show needs a segment's table, such as %%segment_query returns, not {visible(repr(frame), 60)}. "
                "Run %segment ID --card for a segment that you know by its id."
            )
        if not self.known.get("segment_id"):
            raise UsageError(
                "show needs a segment's table, such as %%segment_query returns. This table does not say which segment "
                "it is: some pandas operations drop df.attrs. Show the original table, or run the query again."
            )
        super().__init__(client)
        self.hint = f"{visible(self.known['segment_id'])} of {visible(self.known.get('service') or 'the service')}"
        self.frame = frame
        self.words, self.parts, self.not_explained = explained(client, self.known)
        self.file = text_field("File", f"{self.known['segment_id']}.csv", width="320px")
        csv = button("Save CSV", self.once_typed(lambda: self.save("csv")), classes="nbext-quiet nbext-csv")
        json = button("Save JSON", self.once_typed(lambda: self.save("json")), classes="nbext-quiet nbext-json-file")
        edit = button("Edit", self.guarded(self.edit), classes="nbext-quiet nbext-edit", tip="Open it in the builder")
        self.builder: SegmentForm | None = None
        self.assemble(markup(self.body()), row(self.file.widget, csv, json, edit, classes="nbext-panel"), self.status)

    def save(self, kind: str) -> None:
        """Save the whole segment to the file that the form names, in the background."""
        # The button says which format, whatever ending was typed.
        path = self.file.value.strip().removesuffix(".csv").removesuffix(".json") + f".{kind}"
        export = self.client.export_csv if kind == "csv" else self.client.export_json
        self.say(f"Saving {path} …")

        def run() -> None:
            export(self.known["segment_id"], to=path)
            self.say(f"Saved {path}", "good")

        self.background.schedule(run)

    def edit(self) -> None:
        """Open the query in a builder, below the card."""
        from nbext.notebook.forms.builder.form import SegmentForm

        if self.builder is None:
            self.builder = SegmentForm(self.client, self.frame)
            self.widget.children = (*self.widget.children, self.builder.widget)

    def body(self) -> str:
        """Return the card without its buttons as HTML."""
        sections = [
            facts_html(self.facts()),
            f"<p>Wallets that {html(self.words, 2000)}</p>" if self.words else "",
            section("First rows", frame_html(self.frame)),
            section("Each condition alone", self._overlap()),
            *(section(f"How much: {name}{self._of_the_rows()}", made) for name, made in self._spreads()),
            section("The same query as a cell", code_html(self.cell())),
        ]
        return "".join(sections)

    def facts(self) -> list[tuple[str, object]]:
        """Return the counts, and the block and chain that they are of."""
        known = self.known
        as_of = known.get("as_of")
        facts: list[tuple[str, object]] = [("Wallets that match", number_text(known.get("matched")))]
        facts.append(("Rows here", f"{len(self.frame):,}" + " (cut by the limit)" * bool(known.get("truncated"))))
        if isinstance(as_of, Mapping):
            block, time = number_text(as_of.get("block")), text_of(as_of.get("timestamp"))
            facts.append(("As of", f"block {block} {time}".strip()))
        facts.append(("Chain", text_of(known.get("chain"))))
        facts.extend(("Note", warning) for warning in known.get("warnings") or [])
        return [(name, value) for name, value in facts if value]

    def cell(self) -> str:
        """Return the cell that runs the same query."""
        limit = self.known.get("limit")
        # A number or nothing: of a segment that was read by its id, this is what the service answered.
        given = limit if isinstance(limit, int) and limit != self.client.settings["limit"] else None
        return cell_text("", self.known.get("filters") or {}, str(self.known.get("operator") or "AND"), given)

    def _overlap(self) -> str:
        if self.not_explained:
            return f'<p class="nbext-note">{lines_html(self.not_explained)}</p>'
        pairs = [(part["words"], part["matched"]) for part in self.parts if isinstance(part.get("matched"), int)]
        if not pairs or not isinstance(self.known.get("matched"), int):
            return ""
        pairs.append(("together", self.known["matched"]))
        if not charts.available() or len(pairs) > MOST_BARS:
            return table_html(["Wallets that", "match"], [(words, f"{n:,}") for words, n in pairs], numbers=[1])
        names, counts = [words for words, _ in pairs], [n for _, n in pairs]
        return charts.bars(names, counts, "Wallets that match each condition", self.known).html()

    def _spreads(self) -> list[tuple[str, str]]:
        made = []
        for column in self.known.get("columns") or []:
            name = str(column.get("name"))
            # Of two columns of one name pandas gives a frame where a series is expected.
            once = list(self.frame.columns).count(name) == 1
            if column.get("type") in NUMBERS and not is_repeated(column) and once and len(self.frame):
                made.append((name, self._spread(self.frame[name].tolist(), column)))
        return made

    def _spread(self, values: Sequence[Any], column: Mapping[str, Any]) -> str:
        """Return how a column's known amounts are spread: a picture where matplotlib is installed, else a table."""
        present = [str(value) for value in values if not is_missing(value)]
        try:
            found = spread([float(value) for value in present])
        except ValueError:
            # The user put something else into the column; the card shows what else it can.
            return ""
        if not found:
            return ""
        unit = f"{visible(column.get('symbol') or 'amount', 20)} per wallet"
        if charts.available():
            return charts.histogram(found, unit, self.known).html()
        return table_html([unit, "wallets"], [(label, f"{count:,}") for label, count in found], numbers=[1])

    def _of_the_rows(self) -> str:
        return f" (of the {len(self.frame):,} rows here)" * bool(self.known.get("truncated"))

    def snapshot(self) -> Snapshot:
        """Return the card itself, without its buttons."""
        facts = "\n".join(f"{name}: {visible(value)}" for name, value in self.facts())
        words = f"\nWallets that {visible(self.words, 2000)}" if self.words else ""
        return Snapshot(self.body(), f"{self.title} {self.hint}\n{facts}{words}\n{self.cell()}")


def explained(client: Any, known: Mapping[str, Any]) -> tuple[str, list[Mapping[str, Any]], str]:
    """Return a segment in words and how many wallets match each of its conditions alone, or why that is unknown."""
    if not client.is_ours:
        return "", [], "Only nbext's own service counts the wallets that match each condition alone."
    # The table is there whatever the service says now: a card without this part is better than none.
    try:
        explanation = client.explain(known.get("filters") or {}, known.get("operator") or "AND", known.get("limit"))
    except NbextError as error:
        return "", [], message_of(error)
    return str(explanation.get("words") or "").removeprefix("wallets that "), list(explanation.get("parts") or []), ""


def section(title: str, body: str) -> str:
    """Return a part of the card under its heading, or nothing for an empty part."""
    heading = f'<div class="nbext-label" role="heading" aria-level="3">{html(title)}</div>'
    return f'<div class="nbext-section">{heading}{body}</div>' if body else ""
