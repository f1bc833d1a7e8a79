"""The explorer: a whole table, sorted, filtered and summed up here; the browser gets a page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nbext.analysis.segments import SCOPE
from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html, visible
from nbext.errors import UsageError
from nbext.notebook.forms.builder import filters
from nbext.notebook.forms.builder.tree import Group, Line, Tree
from nbext.notebook.forms.explorer.columns import TableColumn, columns_of, day_or_instant
from nbext.notebook.forms.form import Form, Snapshot
from nbext.notebook.forms.markup import code_html, facts_html, is_repeated, table_html
from nbext.notebook.views.view import ViewPart

if TYPE_CHECKING:
    import pandas as pd

# Columns of a wallet's activity, and the field of the condition that asks for them.
_FACTS = {
    "firstSeen": "first",
    "lastSeen": "last",
    "transfers": "transfers",
    "activeDays": "activeDays",
}
_SIDES = {"min": "after", "max": "before"}
Asked = Sequence[tuple[TableColumn, Mapping[str, str]]]


def as_tree(known: Provenance, asked: Asked) -> tuple[Tree, list[str]]:
    """Return the segment that a table is of, narrowed by filters; and the columns whose filter is no condition.

    Raises
    ------
    UsageError
        The table is not a segment's.
    """
    given, operator = known.filters, str(known.operator or "AND").upper()
    if not isinstance(given, Mapping) or operator not in filters.JOINS:
        raise UsageError(
            "This table does not say which segment it is of: only a segment's filters become conditions."
        )
    tree = filters.read(given, operator, SCOPE)
    lines = [_line(column, bounds, given) for column, bounds in asked]
    root = tree.root
    # Whatever matched so far, and the new conditions too.
    before = root.members if root.join == "all" or len(root.members) < 2 else (root,)
    narrowed = Group("all", (*before, *filter(None, lines)))
    left_out = [column.name for (column, _), line in zip(asked, lines, strict=True) if line is None]
    return Tree(narrowed, tree.scope), left_out


def _line(column: TableColumn, bounds: Mapping[str, str], given: Mapping[str, Any]) -> Line | None:
    about = column.about
    chain = {"chain": about["chain"]} if about.get("chain") else {}
    if column.kind == "address":
        address = bounds["text"].strip().lower()
        is_wallet = column.name == "address" and looks_like_address(address)
        return Line("wallet", {"in": [address]}) if is_wallet else None
    if column.name in _FACTS and chain and not about.get("address"):
        return Line("activity", {_FACTS[column.name]: _within(column, bounds, int), **chain})
    if not about.get("address") or column.kind != "number" or about.get("unit") == "share":
        return None
    # A wallet that holds none is a row with 0 here; without a lower bound the condition would leave it out.
    if about.get("unit") is None:
        count = {"min": 0, **_within(column, bounds, int)}
        return Line("nft", {"nft": about["address"], **chain, "count": count})
    unit = {} if is_repeated(about) else {"unit": "raw"}
    balance = {"min": "0", **_within(column, bounds, str)}
    return Line("token", {"token": about["address"], **chain, "balance": balance, **unit})


def _within(
    column: TableColumn, bounds: Mapping[str, str], kind: type[int] | type[str]
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for side, text in bounds.items():
        if text and column.kind == "time":
            instant = day_or_instant(text, side, column.name)
            made[_SIDES[side]] = f"{instant:%Y-%m-%dT%H:%M:%SZ}"
        elif text:
            made[side] = kind(column.amount(text, side))
    return made


SIZES = (25, 50, 100)


class Explorer(Form):
    """A view of a whole table: sort, filter, turn pages, see each column summed up, go on with a segment."""

    title = "Table"

    def __init__(self, client: Any, frame: pd.DataFrame) -> None:
        if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
            raise UsageError(f"explore needs a DataFrame, not {visible(type(frame).__name__)}.")
        super().__init__(client)
        self.known = Provenance.of(frame)
        self.columns, self.left_out = columns_of(frame)
        self.total, self.rows = len(frame), pa.array(range(len(frame)), pa.int64())
        self.sort: tuple[int, str] | None = None
        self.asked: dict[int, dict[str, str]] = {}
        self.size, self.start = SIZES[0], 0
        self.errors: dict[int, str] = {}
        self.segment: dict[str, str] = {}
        parts = [f"{visible(self.known.segment_id)}."] if self.known.segment_id else []
        if self.known.truncated:
            matched = self.known.matched
            of = f" of {matched:,}" if isinstance(matched, int) else ""
            parts.append(f"The limit cut the rows: {self.total:,}{of} are here.")
        if self.left_out:
            names = ", ".join(visible(name, 60) for name in self.left_out)
            each = "the column" if len(self.left_out) == 1 else "the columns"
            parts.append(f"{names}: exact, in the token's unit, from {each} ..._raw.")
        self.hint = " ".join(parts)
        described = [column.described() for column in self.columns]
        self.grid = ViewPart("grid", self.do, columns=described, view={}, summaries={})
        self.assemble(self.grid, self.status, wide=True)
        self.publish()
        self._sum_up()

    def do(self, asked: Mapping[str, Any]) -> None:
        """Do what a message of the page asks for: sort, filter, page, segment."""
        acts = {
            "sort": self._sort,
            "filter": self._filter,
            "page": self._page,
            "segment": self._segment,
        }
        if (act := acts.get(str(asked.get("op")))) is not None:
            act(asked)
            self.publish()

    def _sort(self, asked: Mapping[str, Any]) -> None:
        place = int(asked["at"])
        # The first press shows what is looked for most: the largest, or the first by name. The third ends it.
        start, other = ("ascending", "descending")[
            :: -1 if self.columns[place].kind == "number" else 1
        ]
        now = self.sort[1] if self.sort and self.sort[0] == place else None
        after = {None: start, start: other, other: None}[now]
        self.sort, self.start = (place, after) if after else None, 0
        self._find()

    def _filter(self, asked: Mapping[str, Any]) -> None:
        place = int(asked["at"])
        given = asked["value"].items()
        value = {key: str(text).strip() for key, text in given if key in ("text", "min", "max")}
        before = self.asked.get(place)
        self.asked.pop(place, None)
        if any(value.values()):
            self.asked[place] = value
        if before != self.asked.get(place):
            self.start, self.segment = 0, {}
            self._find()
            self._sum_up()

    def _page(self, asked: Mapping[str, Any]) -> None:
        size = int(asked.get("size", self.size))
        self.size = size if size in SIZES else self.size
        last = max(0, (len(self.rows) - 1) // self.size)
        self.start = self.size * min(max(int(asked["page"]), 0), last)

    def _segment(self, _: Mapping[str, Any]) -> None:
        """Write the segment that the filters mean; what is no condition is named."""
        named = [(self.columns[place], value) for place, value in self._used()]
        try:
            tree, left_out = as_tree(self.known, named)
        except UsageError as error:
            self.segment = {"note": str(error), "cell": ""}
            return
        notes = [
            f"No condition asks for the filter of {name}: it is not part of the segment."
            for name in left_out
        ]
        if self.known.truncated:
            notes.append(
                f"The segment finds all wallets that match, not only those among these {self.total:,} rows."
            )
        cell = filters.cell_text("", filters.written(tree)[0], "AND", None)
        self.segment = {"note": visible(" ".join(notes), None), "cell": cell}

    def _used(self) -> list[tuple[int, dict[str, str]]]:
        """Return the filters that can be read, by the places of their columns."""
        return [(place, value) for place, value in self.asked.items() if place not in self.errors]

    def _find(self) -> None:
        """Find the rows that all filters take, in the order asked; ties, and missing values last, in the table's."""
        masks, self.errors = [], {}
        for place, value in self.asked.items():
            try:
                masks.append(pc.fill_null(self.columns[place].matching(value), False))
            except UsageError as error:
                self.errors[place] = str(error)
        rows = pa.array(range(self.total), pa.int64())
        self.rows = rows.filter(reduce(pc.and_, masks)) if masks else rows
        if self.sort is not None:
            place, order = self.sort
            table = pa.table({"key": self.columns[place].key.take(self.rows), "row": self.rows})
            found = pc.sort_indices(table, sort_keys=[("key", order), ("row", "ascending")])
            self.rows = self.rows.take(found)

    def _sum_up(self) -> None:
        """Sum the columns up over the rows that match, beside the page: of a million rows it takes seconds."""
        rows, question = self.rows, dict(self.asked)
        self.grid.show(summaries={**self.grid.shown["summaries"], "stale": True})

        def run() -> None:
            made: dict[str, Any] = {"stale": False}
            for place, column in enumerate(self.columns):
                # Of filters that have changed meanwhile: their own summaries follow.
                if question != self.asked:
                    return
                made[str(place)] = column.summed_up(
                    column.key.take(rows) if question else column.key
                )
            self.grid.show(summaries=made)
            self.renew()

        self.background.schedule(run)

    def publish(self) -> None:
        """Show the page of rows that is asked for."""
        places = self.rows.slice(self.start, self.size)
        cells = (map(column.text, column.key.take(places).to_pylist()) for column in self.columns)
        view = {
            "rows": list(zip((place + 1 for place in places.to_pylist()), *cells, strict=True)),
            "total": self.total,
            "matched": len(self.rows),
            "start": self.start,
            "size": self.size,
            "sort": list(self.sort or ()),
            "filters": {str(place): value for place, value in self.asked.items()},
            "errors": {str(place): text for place, text in self.errors.items()},
            "segment": self.segment,
        }
        self.grid.show(view=view)
        self.renew()

    def in_words(self) -> str:
        """Return which rows are shown."""
        if not len(self.rows):
            return f"No row of {self.total:,} matches."
        end = min(self.start + self.size, len(self.rows))
        of = "" if len(self.rows) == self.total else f" that match, of {self.total:,}"
        return f"Rows {self.start + 1:,} to {end:,} of {len(self.rows):,}{of}"

    def asked_in_words(self) -> list[tuple[str, str]]:
        """Return the filters, and the order of the rows, each with its column."""
        sides = {"text": "contains", "min": "at least", "max": "at most"}
        said = []
        for place, value in self._used():
            bounds = (f"{sides[side]} {text}" for side, text in value.items() if text)
            said.append((self.columns[place].name, " and ".join(bounds)))
        if self.sort is not None:
            said.append(("Sorted by", f"{self.columns[self.sort[0]].name}, {self.sort[1]}"))
        return said

    def snapshot(self) -> Snapshot:
        """The rows that are shown, of which they are, and the sums of the columns."""
        heads = [
            f"{one['name']} ({one['unit']})" if one["unit"] else one["name"]
            for one in self.grid.shown["columns"]
        ]
        numbers = [place for place, column in enumerate(self.columns) if column.kind == "number"]
        rows = [
            ["" if cell is None else cell for cell in row[1:]]
            for row in self.grid.shown["view"]["rows"]
        ]
        summaries = self.grid.shown["summaries"]
        known = {} if summaries.get("stale") else summaries
        sums = [
            (f"Sum of {heads[place]}", known[str(place)]["sum"])
            for place in numbers
            if "sum" in known.get(str(place), {})
        ]
        cell = code_html(self.segment["cell"]) if self.segment.get("cell") else ""
        hint = f'<div class="nbext-note">{html(self.hint, None)}</div>'
        words = f"{hint}<p>{html(self.in_words())}</p>"
        facts = facts_html([*self.asked_in_words(), *sums])
        table = table_html(heads, rows, numbers, None)
        return Snapshot(f"{words}{facts}{table}{cell}", f"{self.title}: {self.in_words()}")
