"""The segment builder: a query put together from the service's own schema, counted as it grows, run or written out."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import ipywidgets as w
from IPython.core.getipython import get_ipython

from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook.cell.request import Query
from nbext.notebook.completion.schema import grammar_of
from nbext.notebook.forms import filter_tree
from nbext.notebook.forms.editors import GroupEditor, ScopeBar, Unfit
from nbext.notebook.forms.form import Background, Form, Twin
from nbext.notebook.forms.tables import about, frame_html, keep, note
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
from nbext.notebook.results.deliver import checked_name

if TYPE_CHECKING:
    import pandas as pd

# The count is asked for when nothing was changed for this long.
PAUSE = 0.6
TOP = "/filters"
AS_A_CELL = "The same as a cell: a click selects it, to be copied"
INSERTED = (
    "The cell is on its way: it appears below the next cell that you run. Where none does, "
    "click the text of the cell in this form and copy it."
)


class SegmentForm(Form):
    """Build a segment from conditions and groups; see its count; run it, or take the cell that does."""

    title = "Segment builder"
    hint = "Add conditions; groups join them. The count follows what you type."

    def __init__(self, client: Any, given: Any = None) -> None:
        super().__init__(client)
        self.grammar = grammar_of(client.schema())
        self.runs = Background(self.failed)
        self.frame: pd.DataFrame | None = None
        self.matched: int | None = None
        self._counted: tuple[Any, str] | None = None
        self._running = False
        self._segment_id: str | None = None
        self._built = False
        self._build()
        self._open(given)
        self._built = True
        self._changed()

    def _build(self) -> None:
        joins = [("all of them (AND)", "AND"), ("any of them (OR)", "OR")]
        self.operator = choice_field("Wallets match", joins, "AND", width="190px").changed(lambda _: self._changed())
        self.scope = ScopeBar(self.grammar.scope, self._changed)
        self.scope.show(False)
        self.more = button("More options", lambda _: self._unfold(), classes="nbext-quiet nbext-small")
        self.top = GroupEditor("all", self.grammar, self._changed, lambda _: None, top=True)
        self.count = markup(classes="nbext-count")
        self.json = markup(classes="nbext-json")
        self.name = text_field("Variable", "segment", width="160px")
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
        self.assemble(
            beside(conditions, written),
            box(actions, self.bar, self.status, self.result, classes="nbext-panel"),
        )
        self.widget.add_class("nbext-wide")

    def _open(self, given: Any) -> None:
        if given is None:
            return
        filters, operator, limit = filter_tree.parsed(given)
        self.operator.entry.value = operator
        if limit is not None:
            self.limit.entry.value = str(limit)
        for key in [key for key in filters if key in self.scope.inputs]:
            # What no input takes becomes a card of its own, below.
            with contextlib.suppress(Unfit):
                self.scope.inputs[key].show(filters[key])
                del filters[key]
                self.scope.show(True)
        for key, value in filter_tree.split(filters):
            self.top.add(key, value)

    def _unfold(self) -> None:
        self.scope.show(True)
        visibility(self.more, False)

    def filters(self) -> dict[str, Any]:
        """Return the filters as they are now; every editor learns where its part of them stands."""
        return {**self.scope.value(), **filter_tree.joined(self.top.children, self.operator.value, TOP)}

    def missing(self) -> list[str]:
        """Return what must still be filled in, in words."""
        if not self.top.children:
            return ["a condition"]
        return [label for child in self.top.children for label in child.missing()]

    def cell(self) -> str:
        """Return the cell that runs this query."""
        name = self.name.value.strip()
        limit = self._limit_or_none()
        given = limit if limit != self.client.settings["limit"] else None
        return filter_tree.cell_text(name if name.isidentifier() else "", self.filters(), self.operator.value, given)

    def _limit_or_none(self) -> int | None:
        text = self.limit.value.strip().replace(",", "").replace("_", "")
        whole = text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= self.grammar.most
        self.limit.error = "" if whole else f"a whole number from 1 to {self.grammar.most:,}"
        return int(text) if whole else None

    def _changed(self) -> None:
        """Write the query out, and count it once nothing changes for a moment."""
        if not self._built:
            return
        self._write()
        self._unmark()
        missing = self.missing()
        if missing:
            self.background.drop()
            self._counted = None
            self._show_count(None, f"Still to fill in: {', '.join(dict.fromkeys(missing))}.")
            return
        question = (self.filters(), self.operator.value)
        if question != self._counted:
            self._counted = question
            self._show_count(None, "Counting …")
            self.background.ask(lambda: self._ask_count(question), after=PAUSE)

    def _write(self) -> None:
        if self._built:
            self.json.value = code_html(self.cell())

    def _ask_count(self, question: tuple[Any, str]) -> None:
        try:
            found = self.client.execute_segment(*question, limit=0)
        except NbextError as error:
            if question == self._counted:
                self._counted = None
                self.refuse(error)
            return
        if question == self._counted:
            self._show_count(about(found).get("matched"), "")

    def _show_count(self, matched: int | None, words: str) -> None:
        self.matched = matched
        if matched is None:
            self.count.value = f'<div class="nbext-note" role="status">{html(words)}</div>'
        else:
            match = "wallets match" if matched != 1 else "wallet matches"
            self.count.value = f'<div role="status"><span class="nbext-big">{matched:,}</span> {match}</div>'
        if not words.endswith("…"):
            self.renew()

    def refuse(self, error: NbextError) -> None:
        """Show an error beside the fields that it names, else in the form."""
        marked = isinstance(error, ValidationError)
        self._show_count(None, "Not counted: the marked fields say why." if marked else "Not counted.")
        if not isinstance(error, ValidationError):
            self.failed(error)
            return
        editors = [editor for editor in self.top.walk() if editor.pointer]
        for one in error.errors:
            self._mark(one["pointer"], one["detail"], editors)
        self.renew()

    def _mark(self, pointer: str, detail: str, editors: list[Any]) -> None:
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

    def insert_cell(self) -> None:
        """Hand the cell to the front end, which takes it with the answer of the next cell that is run."""
        shell = get_ipython()
        if shell is None:
            raise UsageError("there is no notebook to insert a cell into: this is not IPython.")
        self._require_complete()
        if name := self.name.value.strip():
            checked_name(name)
        if self._limit_or_none() is None:
            return
        shell.set_next_input(self.cell(), replace=False)
        self.say(INSERTED, "good")
        self.renew()

    def _require_complete(self) -> None:
        if missing := self.missing():
            raise UsageError(f"still to fill in: {', '.join(dict.fromkeys(missing))}.")

    def start(self) -> None:
        """Run the query, once; its table goes into the variable."""
        if self._running:
            return
        self._require_complete()
        name, limit = checked_name(self.name.value.strip()), self._limit_or_none()
        if limit is None:
            return
        filters, operator = self.filters(), self.operator.value
        self._busy(True)
        self.runs.ask(lambda: self._run(name, filters, operator, limit))

    def _run(self, name: str, filters: dict[str, Any], operator: str, limit: int) -> None:
        try:
            frame = self.client.execute_segment(filters, operator, limit=limit, progress=self._progress)
            keep(name, frame)
            note(Query(filters, operator, "json", limit), frame)
        except ValidationError as error:
            self.refuse(error)
            self.say("The service does not take this query; the marks above say why.", "bad")
        else:
            self._show_result(name, frame)
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
        # Where no total is known the bar only shows that time goes by.
        self.bar.value = report.done / report.total if report.total else 1 - 1 / (1 + report.seconds / 4)
        self.say(f"{visible(report.status) or report.phase} … {report.seconds:.0f} s")

    def cancel(self) -> None:
        """Ask the service to stop the run."""
        if self._segment_id is None:
            self.say("Running … It can be cancelled once the service has named it.")
            return
        wanted = self._segment_id
        self.background.ask(lambda: self.client.cancel(wanted))

    def _show_result(self, name: str, frame: pd.DataFrame) -> None:
        self.frame = frame
        known = about(frame)
        returned, matched = len(frame), known.get("matched")
        of = f" of {matched:,}" if isinstance(matched, int) and matched != returned else ""
        wallets = "wallets" if returned != 1 else "wallet"
        self.say(f"{name} holds {returned:,}{of} {wallets}. nbext.show({name}) shows its card.", "good")
        self.result.value = frame_html(frame)

    def twin(self) -> Twin:
        """The query as a cell, its count, and the first rows of the last run."""
        missing = self.missing()
        count = "" if self.matched is None else f"{self.matched:,} wallets match."
        words = count or (f"Still to fill in: {', '.join(dict.fromkeys(missing))}." if missing else self.said)
        rows = "" if self.frame is None else f"<p>{html(self.said)}</p>{frame_html(self.frame)}"
        cell = "" if not self.top.children else self.cell()
        code = code_html(cell) if cell else ""
        return Twin(f"<p>{html(words, 500)}</p>{code}{rows}", f"{self.title}: {visible(words)}\n{cell}")
