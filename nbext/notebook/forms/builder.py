"""The segment builder: a query put together from the service's own schema, counted as it grows, run or written out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import ipywidgets as w
from IPython.core.getipython import get_ipython

from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook.cell.request import Query
from nbext.notebook.completion.schema import grammar_of
from nbext.notebook.forms import filter_tree
from nbext.notebook.forms.editors import Editor, GroupEditor, ScopeBar, Unfit
from nbext.notebook.forms.form import Background, Form, Snapshot
from nbext.notebook.forms.tables import Variable, add_to_history, frame_html, provenance
from nbext.notebook.forms.widgets import (
    beside,
    box,
    button,
    choice_field,
    code_html,
    markup,
    row,
    text_field,
    visibility,
)
from nbext.notebook.results.deliver import MAX_NOTE, checked_name

if TYPE_CHECKING:
    import pandas as pd

# The count is asked for when nothing has changed for this long: a count per key would queue up at the service.
PAUSE = 0.6
TOP = "/filters"
AS_A_CELL = "The same query as a cell (click to select)"
INSERTED = (
    "The cell appears below the next cell that you run. If none appears, click the text of the cell in this form "
    "and copy it."
)


class SegmentForm(Form):
    """Build a segment from conditions and groups; see its count; run it, or take the cell that does."""

    title = "Segment builder"
    hint = "Add conditions, and groups to combine them. The count updates as you type."

    def __init__(self, client: Any, query: Any = None) -> None:
        super().__init__(client)
        self.grammar = grammar_of(client.schema())
        # Apart from counts: a count that waits is replaced by the next one, a run must not be.
        self.runs = Background(self.failed)
        self.frame: pd.DataFrame | None = None
        self.matched: int | None = None
        self._counted: tuple[Any, str] | None = None
        self._running = False
        self._segment_id: str | None = None
        # Filling the form in changes each field; it is written out and counted once, at the end.
        self._built = False
        self._build()
        self._open(query)
        self._built = True
        self._changed()

    def _build(self) -> None:
        joins = [("all conditions (AND)", "AND"), ("any condition (OR)", "OR")]
        self.operator = choice_field("Wallets match", joins, "AND", width="190px").changed(lambda _: self._changed())
        self.scope = ScopeBar(self.grammar.scope, self._changed)
        self.more = button("More options", lambda _: self._unfold(), classes="nbext-quiet nbext-small")
        self.top = GroupEditor("all", self.grammar, self._changed, lambda _: None, top=True)
        self.count = markup(classes="nbext-count")
        self.json = markup(classes="nbext-json")
        self.variable = Variable("segment", width="160px")
        self.name = self.variable.field
        self.limit = text_field("Rows, at most", str(self.client.settings["limit"]), width="110px")
        for field in (self.name, self.limit):
            field.changed(lambda _: self._write())
        self.run = button("Run", self.once_typed(self.start), classes="nbext-main nbext-run")
        self.stop = button("Cancel", self.guarded(self.cancel), classes="nbext-quiet nbext-cancel")
        self.insert = button("Insert cell", self.guarded(self.insert_cell), classes="nbext-quiet nbext-insert")
        self.bar = w.FloatProgress(min=0, max=1, bar_style="info", layout=w.Layout(width="100%", height="8px"))
        self.result = markup()
        for hidden in (self.bar, self.stop):
            visibility(hidden, False)
        conditions = box(row(self.operator.widget, self.more), self.scope.widget, self.top.widget)
        written = box(self.count, markup(f'<div class="nbext-label">{AS_A_CELL}</div>'), self.json)
        actions = row(self.name.widget, self.limit.widget, self.run, self.stop, self.insert)
        below = box(actions, self.bar, self.status, self.result, classes="nbext-panel")
        self.assemble(beside(conditions, written), below)
        self.widget.add_class("nbext-wide")

    def _open(self, query: Any) -> None:
        if query is None:
            return
        filters, operator, limit = filter_tree.parsed(query)
        self.operator.entry.value = operator
        if limit is not None:
            self.limit.entry.value = str(limit)
        for key in [key for key in filters if key in self.scope.inputs]:
            # What no input takes becomes a card of its own, below.
            with contextlib.suppress(Unfit):
                self.scope.inputs[key].show(filters[key])
                del filters[key]
                self._unfold()
        self.top.add_all(filter_tree.split(filters))

    def _unfold(self) -> None:
        self.scope.unfold()
        self.scope.offer(json.dumps(self.filters(), default=str))
        visibility(self.more, False)

    def filters(self) -> dict[str, Any]:
        """Return the filters as they are now; every editor learns the pointer of its part of them."""
        return {**self.scope.value(), **filter_tree.joined(self.top.children, self.operator.value, TOP)}

    def missing(self) -> str:
        """Return which required fields are empty, as one sentence, or an empty text."""
        labels = self.top.missing() if self.top.children else ["a condition"]
        return f"Still to fill in: {', '.join(dict.fromkeys(labels))}." if labels else ""

    def cell(self) -> str:
        """Return the cell that runs this query."""
        name = self.name.value.strip()
        limit = self._limit_or_none()
        given = limit if limit != self.client.settings["limit"] else None
        # While a name or a limit is half typed, the cell shows what can be run already.
        return filter_tree.cell_text(name if name.isidentifier() else "", self.filters(), self.operator.value, given)

    def _limit_or_none(self) -> int | None:
        text = self.limit.value.strip().replace(",", "").replace("_", "")
        # Twelve digits decide whether it is too large; int() of a pasted novel would hold the kernel.
        whole = text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= self.grammar.most
        self.limit.error = "" if whole else f"A whole number from 1 to {self.grammar.most:,}"
        return int(text) if whole else None

    def _changed(self) -> None:
        """Write the query out, and count it once nothing changes for a moment."""
        if not self._built:
            return
        self.scope.offer(json.dumps(self.filters(), default=str))
        self._write()
        self._unmark()
        if missing := self.missing():
            self.background.drop()
            self._counted = None
            self._show_count(None, missing)
            return
        question = (self.filters(), self.operator.value)
        if question != self._counted:
            self._counted = question
            # The old count goes at once: beside the new conditions it would be wrong.
            self._show_count(None, "Counting …")
            self.background.schedule(lambda: self._count(question), after=PAUSE)

    def _write(self) -> None:
        if self._built:
            self.json.value = code_html(self.cell())

    def _count(self, question: tuple[Any, str]) -> None:
        try:
            found = self.client.execute_segment(*question, limit=0)
        except NbextError:
            # The query has changed meanwhile: its own count follows, and this error is about fields that are gone.
            if question != self._counted:
                return
            self._counted = None
            self._show_count(None, "Not counted.")
            raise
        if question == self._counted:
            self._show_count(provenance(found).get("matched"), "", provenance(found).get("warnings") or ())

    def _show_count(self, matched: int | None, text: str, notes: Iterable[str] = ()) -> None:
        self.matched = matched
        if matched is None:
            self.count.value = f'<div class="nbext-note" role="status">{html(text)}</div>'
        else:
            match = "wallets match" if matched != 1 else "wallet matches"
            self.count.value = f'<div role="status"><span class="nbext-big">{matched:,}</span> {match}</div>'
            self.count.value += "".join(f'<div class="nbext-note">{html(note, MAX_NOTE)}</div>' for note in notes)
        # The snapshot is saved with the notebook: "Counting …" in it would stay there for ever.
        if not text.endswith("…"):
            self.renew()

    def failed(self, error: Exception) -> None:
        """Show an error beside the fields that it names, else in the form."""
        if not isinstance(error, ValidationError):
            super().failed(error)
            return
        self._show_count(None, "Not counted: the marked fields show why.")
        # Pointers are those of the last writing, which is the query that the service answered.
        editors = [editor for editor in self.top.walk() if editor.pointer]
        for one in error.errors:
            self._mark(one["pointer"], one["detail"], editors)
        self.renew()

    def _mark(self, pointer: str, detail: str, editors: list[Editor]) -> None:
        # The innermost of the cards around the pointer; with the slash, /any/1 is not taken for a part of /any/10.
        nearest = max(
            (editor for editor in editors if f"{pointer}/".startswith(f"{editor.pointer}/")),
            key=lambda editor: len(editor.pointer),
            default=None,
        )
        scope_key = pointer.removeprefix(f"{TOP}/").split("/")[0]
        if nearest is not None:
            nearest.mark(pointer[len(nearest.pointer) :], detail)
        elif scope_key in self.scope.inputs:
            self._unfold()
            self.scope.inputs[scope_key].mark("", detail)
        else:
            self.say(f"{pointer}: {detail}", "bad")

    def _unmark(self) -> None:
        for editor in self.top.walk():
            editor.unmark()
        for one in self.scope.inputs.values():
            one.unmark()
        if not self._running:
            self.say("")

    def _complete(self) -> int | None:
        """Return the limit of a query that is complete; None where the limit is no number, which its field says."""
        if missing := self.missing():
            raise UsageError(missing)
        return self._limit_or_none()

    def insert_cell(self) -> None:
        """Hand the cell to the front end, which takes it with the answer of the next cell that is run."""
        shell = get_ipython()
        if shell is None:
            raise UsageError("This is not IPython: there is no notebook to insert a cell into.")
        limit = self._complete()
        if name := self.name.value.strip():
            checked_name(name)
        if limit is not None:
            shell.set_next_input(self.cell(), replace=False)
            self.say(INSERTED, "good")
            self.renew()

    def start(self) -> None:
        """Run the query, once; its table goes into the variable."""
        # A double click arrives twice, although the first click disables the button.
        if self._running:
            return
        limit, name = self._complete(), self.variable.name()
        if limit is None:
            return
        query = Query(self.filters(), self.operator.value, "json", limit)
        self._busy(True)
        self.runs.schedule(lambda: self._run(name, query))

    def _run(self, name: str, query: Query) -> None:
        try:
            frame = self.client.execute_segment(
                query.filters, query.operator, limit=query.limit, progress=self._progress
            )
            self.variable.assign(name, frame)
            add_to_history(query, frame)
            self._show_result(name, frame)
        except ValidationError:
            self.say("The service refused this query; the marks above show why.", "bad")
            raise
        finally:
            self._busy(False)
            self.renew()

    def _busy(self, running: bool) -> None:
        self._running = running
        self._segment_id = None
        self.run.disabled = running
        self.bar.value = 0.0
        visibility(self.bar, running)
        visibility(self.stop, running)
        if running:
            self.result.value = ""
            self.say("Running …")

    def _progress(self, report: Any) -> None:
        self._segment_id = report.segment_id or self._segment_id
        # Without a known total the bar only shows that time passes.
        self.bar.value = report.done / report.total if report.total else 1 - 1 / (1 + report.seconds / 4)
        self.say(f"{visible(report.status) or report.phase} … {report.seconds:.0f} s")

    def cancel(self) -> None:
        """Ask the service to stop the run."""
        if self._segment_id is None:
            self.say("Running … You can cancel it as soon as the service has given it an id.")
            return
        # Not in the thread of the run, which waits for the very answer that this is to end.
        wanted = self._segment_id
        self.background.schedule(lambda: self.client.cancel(wanted))

    def _show_result(self, name: str, frame: pd.DataFrame) -> None:
        self.frame = frame
        returned, matched = len(frame), provenance(frame).get("matched")
        of = f" of {matched:,}" if isinstance(matched, int) and matched != returned else ""
        wallets = "wallets" if returned != 1 else "wallet"
        self.say(f"{name} holds {returned:,}{of} {wallets}. nbext.show({name}) shows its card.", "good")
        self.result.value = frame_html(frame)

    def snapshot(self) -> Snapshot:
        """The query as a cell, its count, and the first rows of the last run."""
        counted = "" if self.matched is None else f"{self.matched:,} wallets match."
        text = counted or self.missing() or self.message
        rows = "" if self.frame is None else f"<p>{html(self.message)}</p>{frame_html(self.frame)}"
        cell, code = (self.cell(), code_html(self.cell())) if self.top.children else ("", "")
        return Snapshot(f"<p>{html(text, 500)}</p>{code}{rows}", f"{self.title}: {visible(text)}\n{cell}")
