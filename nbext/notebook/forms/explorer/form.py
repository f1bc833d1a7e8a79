"""A whole table: sorted, filtered and summed up here, or by a page that does so offline; a chart that opens such."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nbext.analysis.charts import Chart, drawn_width
from nbext.analysis.segments import SCOPE, Result, Segment
from nbext.client.frames import label_names
from nbext.client.writer import target_of
from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.forms.builder.filters import cell_text
from nbext.notebook.forms.distribution import holding
from nbext.notebook.forms.explorer.columns import TableColumn, columns_of
from nbext.notebook.forms.form import Form, Steps, Variable, has_cells, variables
from nbext.notebook.forms.markup import code_html, facts_html, facts_of, part_of
from nbext.notebook.results.numbers import rows_in_words, size_in_words
from nbext.notebook.results.tables import as_text, rows_html
from nbext.notebook.views.view import STYLE, Asked, Box, Button, Markup, ViewPart, row, script_of

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from nbext.client import Client

# Columns of a wallet's activity, and the field of the condition that asks for them.
_FACTS = {
    "firstSeen": "first",
    "lastSeen": "last",
    "transfers": "transfers",
    "activeDays": "activeDays",
}
_SIDES = {"min": "after", "max": "before"}
# The place of the search among filters.
_SEARCH = -1
# What one message holds at most.
_MOST_ROWS = 1_000
_MODULES = ("dom.js", "numbers.js", "histogram.js", "source.js", "table.js", "page.js")
# No address that a page or a name in it could ask: its one script and style by their hashes, pictures inside.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def _condition(column: TableColumn, bounds: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the condition that asks for a filter of a column; None where there is no such one."""
    about, unit = column.about, column.about.get("unit")
    if column.kind == "address":
        address = bounds.get("text", "").lstrip("=").strip().lower()
        is_wallet = column.name == "address" and looks_like_address(address)
        return {"wallet": {"in": [address]}} if is_wallet else None
    if column.name in _FACTS and about.get("chain") and not about.get("address"):
        return {"activity": {_FACTS[column.name]: _within(column, bounds), "chain": about["chain"]}}
    if not about.get("address") or column.kind != "number" or unit == "share":
        return None
    # A wallet that holds none is a row with 0 here; without a lower bound the condition would leave it out.
    if unit is None:
        return holding("nft", about, count={"min": 0, **_within(column, bounds)})
    raw = {"unit": "raw"} if unit == "raw" and not column.has_unit else {}
    return holding("token", about, balance={"min": "0", **_within(column, bounds)}, **raw)


def _within(column: TableColumn, bounds: Mapping[str, str]) -> dict[str, Any]:
    """Return bounds as a condition has them: amounts and times are texts there, counts numbers."""
    names = _SIDES if column.kind == "time" else {}
    made = str if names or column.about.get("unit") else int
    return {
        names.get(side, side): made(column.bound(text, side))
        for side, text in bounds.items()
        if text
    }


# Rows that a snapshot holds.
ROWS = 25


class Explorer(Form):
    """A view of a whole table: sort, filter, see each column summed up, go on with the rows or with a segment."""

    title = "Table"

    def __init__(self, client: Any, frame: pd.DataFrame) -> None:
        super().__init__(client)
        self.columns = columns_of(frame, "explore")
        # As it is now: the places of rows are of no table that is sorted or cut later, in place.
        self.known, self._given = Provenance.of(frame), frame.copy(deep=False)
        self._places = pa.array(range(len(frame)), pa.int64())
        self.find((), {})
        part = part_of(frame)
        exact = ", ".join(
            visible(one.name, 60)
            for one in self.columns
            if f"{one.name}_raw" == one.about.get("name")
        )
        parts = (
            visible(self.known.segment_id or ""),
            part and f"{rows_in_words(len(frame))} {part}",
            exact and f"{exact}: exact, from ..._raw",
        )
        self.hint = " ".join(f"{part}." for part in parts if part)
        self.table = ViewPart(
            "table",
            self.do,
            columns=[column.described() for column in self.columns],
            total=len(frame),
        )
        self.variable, self.code = Variable("rows"), Markup()
        self.insertion = Button(
            "Insert cell",
            self.insert_segment,
            classes="nbext-insert",
            tip="Insert the segment's cell below",
        )
        actions = [
            self.variable,
            Button("Store as variable", self.store),
            Button("Share", self.share, tip="Write the rows that match as a page: NAME.html"),
        ]
        if self.known.operation != "segment" and isinstance(self.known.filters, Mapping):
            actions += [Button("As a segment", self.to_segment), *[self.insertion] * has_cells()]
        self.assemble(self.table, row(*actions), self.status, self.code, wide=True)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that match, in the order that is shown, with all columns of the table."""
        return self._given.take(self.rows.to_numpy())

    def do(self, asked: Asked) -> None:
        """Answer what the page asks: which rows match and in which order, some of them, a column's summary."""
        op = asked.get("op")
        if op == "ask":
            question = {key: asked[key] for key in ("order", "filters", "search")}
            self.find(**question)
            found = {"count": len(self.rows), "errors": self.errors}
            self.table.answer(asked, **found)
            # Its other views follow: they would show the rows of this question under the heads of their own.
            self.table.show(by=asked.get("from"), found={"asked": question, **found})
            # A cell that is shown follows: it would ask for the rows of an earlier question.
            if self.code.value:
                self.to_segment()
            else:
                self.renew()
        elif op == "rows":
            self.table.answer(asked, rows=self.shown_rows(int(asked["start"]), int(asked["end"])))
        elif op == "summary":
            self.table.answer(asked, summary=self.summary(int(asked["at"])))

    def summary(self, at: int) -> dict[str, Any]:
        """Sum up the rows that match in a column; its bars are of those, too, that its own filter alone leaves out."""
        column = self.columns[at]
        bars = column.bars(self._kept(column.key, but=at))
        return {**column.summed_up(self._kept(column.key)), "bars": bars}

    def _kept(self, values: Any, but: int | None = None) -> Any:
        """Return of values, one for each row, those of the rows that all filters take, or all but one."""
        masks = [mask for at, mask in self._masks.items() if at != but]
        return values.filter(reduce(pc.and_, masks)) if masks else values

    def shown_rows(self, start: int, end: int) -> list[tuple[str | None, ...]]:
        """Return some of the rows that match, each cell as its exact text."""
        places = self.rows.slice(start, min(end - start, _MOST_ROWS))
        cells = (map(one.text, one.key.take(places).to_pylist()) for one in self.columns)
        return list(zip(*cells, strict=True))

    def find(
        self,
        order: Sequence[Sequence[Any]],
        filters: Mapping[Any, Mapping[str, str]],
        search: str = "",
    ) -> None:
        """Find the rows that all filters take, in the order asked; ties, and missing values last, in the table's."""
        self.order, self.search = [(int(at), way) for at, way in order], str(search)
        # Of the filters those that can be read, and which rows each takes, by the places of the columns.
        self.asked: dict[int, dict[str, str]] = {}
        self._masks: dict[int, Any] = {}
        self.errors: dict[int, str] = {}
        for at, given in filters.items():
            place, bounds = int(at), {side: str(text) for side, text in given.items()}
            column = self.columns[place]
            try:
                self._masks[place] = column.matching(bounds, column.key)
                self.asked[place] = bounds
            except UsageError as error:
                self.errors[place] = str(error)
        if self.search:
            found = [
                pc.match_substring(one.key, self.search, ignore_case=True)
                for one in self.columns
                if one.kind in ("text", "address")
            ]
            self._masks[_SEARCH] = reduce(pc.or_kleene, found, pa.repeat(False, len(self._given)))
        self.rows = self._kept(self._places)
        if self.order:
            by = {str(place): way for place, way in self.order}
            table = pa.table({at: self.columns[int(at)].key.take(self.rows) for at in by})
            # Ties are left in the order of the table.
            self.rows = self.rows.take(pc.sort_indices(table, sort_keys=list(by.items())))

    def store(self) -> None:
        """Store the rows that match under the name in the field."""
        if (name := self.variable.name()) is not None:
            variables()[name] = self.frame
            self.say(f"{name} = {size_in_words(self.frame)}", "good")

    def share(self) -> None:
        """Write the rows that match as a page that answers offline, under the name in the field."""
        if (name := self.variable.checked()) is not None:
            frame = self.frame

            def write(path: str, overwrite: bool) -> str:
                page(frame, path, overwrite=overwrite)
                return f"{path}: {size_in_words(frame)}"

            self.save(f"{name}.html", write, "Share")

    def to_segment(self) -> tuple[str, str]:
        """Write the segment that the filters mean, and what is not part of it; return both."""
        cell, note = self.segment()
        self.code.value = code_html(cell)
        self.say(note)
        self.renew()
        return cell, note

    def insert_segment(self) -> None:
        """Insert the cell of the segment that the filters mean below the form's own."""
        self.insert(self.insertion, *self.to_segment())

    def segment(self) -> tuple[str, str]:
        """Return the cell of the segment that the filters mean, and what is not part of it."""
        made = [_condition(self.columns[place], value) for place, value in self.asked.items()]
        notes = [
            f"No condition asks for the filter of {self.columns[place].name}: it is not part of the segment."
            for place, condition in zip(self.asked, made, strict=True)
            if condition is None
        ]
        if self.search:
            notes.append("No condition asks for the search: it is not part of the segment.")
        if part_of(self._given):
            notes.append(
                f"The segment finds all wallets that match, not only those among these {len(self._given):,} rows."
            )
        asked, operator = self.known.filters or {}, str(self.known.operator or "AND")
        if found := list(filter(None, made)):
            base = Segment(asked, operator, client=self.client).member()
            scope = {key: asked[key] for key in SCOPE if key in asked}
            asked, operator = {"all": [base, *found], **scope}, "AND"
        return cell_text("", asked, operator, None), visible(" ".join(notes), None)

    def in_words(self) -> str:
        """Return how many rows match."""
        found, total = len(self.rows), len(self._given)
        return f"{found:,} of " * (found != total) + rows_in_words(total)

    def state(self) -> str:
        """Return how many rows match."""
        return self.in_words() + f"; the first {ROWS} are shown" * (len(self.rows) > ROWS)

    def _first(self) -> pd.DataFrame:
        few = self._given.take(self.rows.slice(0, ROWS).to_numpy())
        return few if label_names(few) else few.reset_index(drop=True)

    def printed(self) -> str:
        """Return the first of the rows that match."""
        return as_text(self._first())

    def still_html(self) -> str:
        """Return what is asked for, and the first of the rows that match."""
        names = [column.name for column in self.columns]
        asked = {
            "About": self.hint,
            "Filters": "; ".join(
                f"{names[place]}: {', '.join(map(' '.join, value.items()))}"
                for place, value in self.asked.items()
            ),
            "Search": self.search,
            "Sorted by": "; ".join(f"{names[place]}, {way}" for place, way in self.order),
        }
        facts = facts_html(fact for fact in asked.items() if fact[1])
        return f"{super().still_html()}{facts}{rows_html(self._first())}"


class LiveChart(Form):
    """A chart of an analysis; what is pressed in it is read and opens in an explorer below."""

    def __init__(self, chart: Chart) -> None:
        super().__init__(None)
        self.chart, self.title = chart, chart.spec["title"]
        self.below = Box()
        # What it is of stands below the title, where long lines go on in the next one.
        self.hint = " · ".join(chart.spec["params"][0]["value"])
        # What each mark says; nothing where there is none to press.
        self.marks = [
            f"{row['name']}, {row['shown']}" if row["shown"] else ""
            for row in chart.spec["data"]["values"]
        ]
        svg = chart.picture("svg").decode()
        drawn = ViewPart("chart", self.press, title=self.title, marks=self.marks, svg=svg)
        self.assemble(drawn, self.status, self.below, wide=True)

    def press(self, asked: Asked) -> None:
        """Open the wallets of the mark of a place; one that is pressed meanwhile takes its place."""
        at = int(asked["at"])
        words = self.marks[at]
        self.below.fill()
        self.say(f"Reading the wallets of {words} …", running=True)

        def opened() -> Explorer:
            segment = self.chart.of_cell(*self.chart.cells[at])
            return Explorer(segment.client, segment.open())

        def read() -> Steps:
            explorer: Explorer = yield opened
            explorer.show(title=words)
            self.below.fill(explorer)
            self.say(f"{words}: {explorer.in_words()}", "good")

        self.background.schedule(read)

    def text(self) -> str:
        """Return the chart's text."""
        return self.chart.text

    def _snapshot_bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.chart._repr_mimebundle_()


def page(
    table: pd.DataFrame, path: str | Path, *, title: str | None = None, overwrite: bool = False
) -> None:
    """Write a table as one HTML file that answers: opened from disk, offline, it sorts, filters and saves CSV.

    It holds every row, exact amounts, histograms, what was asked and when, and the chart of an analysis. It asks no
    address for anything, and names from a chain are text.

    Parameters
    ----------
    table
        Any DataFrame; one of nbext's says what its columns mean and what was asked.
    path
        A file that ends in .html.
    title
        Its heading; by default the name of the file.
    overwrite
        Replace a file that exists.

    Raises
    ------
    UsageError
        It is not a DataFrame.
    ValidationError, StorageError
        The file cannot be written.
    """
    target = target_of(path, overwrite=overwrite, endings=(".html",), option="path")
    columns = [one.described() | one.values() for one in columns_of(table, "page")]
    held = json.dumps({"columns": columns, "total": len(table)}, ensure_ascii=False).encode()
    # Digits of amounts and addresses hardly ever repeat: searching for that by itself makes them a tenth longer.
    deflate = zlib.compressobj(9, strategy=zlib.Z_FILTERED)
    # In base 85, which takes 1.25 letters for a byte; a script's text must have no comment of HTML in it.
    letters = base64.b85encode(deflate.compress(held) + deflate.flush())
    data = letters.replace(b"<", b",").decode()
    script = script_of(*_MODULES)
    policy = _POLICY.format(script=_digest(script), style=_digest(STYLE))
    words = html(title or target.path.stem)
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{words}</title><style>{STYLE}</style></head>'
        f'<body><main class="nbext-box nbext-form nbext-page"><h1>{words}</h1>{"".join(_about(table))}'
        f'<div id="nbext-table" role="status">Unpacking {html(size_in_words(table))} ...</div></main>'
        f'<script type="application/octet-stream" id="nbext-data" data-name="{html(target.path.stem, None)}.csv">'
        f"{data}</script>"
        f'<script type="module">{script}</script></body></html>\n'
    )
    with target.opened() as file:
        file.write(text.encode())


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _about(table: pd.DataFrame) -> Iterator[str]:
    """Yield what was asked and when, and the chart where the table has one."""
    known = Provenance.of(table)
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by nbext"
    yield facts_html([*facts_of(table), ("Written", written)])
    asked: Any = known.filters or list(known.segments)
    if asked:
        shown = {"operator": known.operator, "filters": asked} if known.filters else asked
        text = json.dumps(shown, indent=1, ensure_ascii=False)
        yield f"<details><summary>What was asked</summary>{code_html(text)}</details>"
    if isinstance(table, Result):
        try:
            chart = table.chart()
            # No SVG: the letters of another machine are wider than its picture.
            picture = chart.picture()
        except NbextError as error:
            yield f"<p>The chart is not part of this page: {html(error, None)}</p>"
        else:
            source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
            width = drawn_width(picture)
            yield f'<img alt="{html(chart.words, None)}" width="{width}" src="{source}">'


def explore(table: pd.DataFrame | Chart, *, client: Client | None = None) -> Explorer | LiveChart:
    """Return a view of a whole table: sort and filter its columns, turn its pages, see each column summed up.

    Amounts are exact, in their tokens' units. The kernel sorts and filters, and the page gets the rows that it shows:
    a million rows are as quick to turn as a thousand. The filters of a segment's table can be written as a segment.
    Of an analysis' chart, what ``.live()`` returns: a mark that is pressed opens its wallets.

    Parameters
    ----------
    table
        Any DataFrame; one of nbext's says what its columns mean. Or a chart.
    client
        Not asked anything; by default the notebook's.

    Raises
    ------
    UsageError
        It is not a DataFrame.
    ConfigError
        It is a chart, and vl-convert-python is not installed.
    """
    return LiveChart(table) if isinstance(table, Chart) else Explorer(client, table)
