"""The segment builder: a query put together line by line, counted as it grows, run or written out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nbext.analysis.segments import SCOPE
from nbext.core.provenance import Provenance
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import html, visible
from nbext.core.wire import MAX_COMPARED
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.forms.builder import fields, filters
from nbext.notebook.forms.builder.editing import Editing
from nbext.notebook.forms.builder.tree import FilterPart, Tree
from nbext.notebook.forms.form import Background, Steps
from nbext.notebook.forms.markup import code_html, frame_html, funnel_html, lines_html
from nbext.notebook.forms.variable import Variable, add_to_history, variables
from nbext.notebook.run.background import BackgroundSegment
from nbext.notebook.views.view import Asked, Button, Markup, ViewPart, row

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client.segment_run import Progress

# The count is asked for when nothing has changed for this long: a count per key would queue up at the service.
PAUSE = 0.6
# Wallets that are named beside the counts.
FEW = 3
EXAMPLE = '%%segment_query segment\n{"token": {"token": "UNI"}}'


class SegmentForm(Editing):
    """Build a segment line by line; see its count; run it, or take the cell that does."""

    title = "Segment builder"
    hint = "One line for each condition. The counts follow what you change."

    def __init__(self, client: Any, query: Any = None) -> None:
        super().__init__(client, query)
        # Apart from counts, which must not replace a run.
        self.runs = Background(self.failed, self.lock)
        self.frame: pd.DataFrame | None = None
        self.matched: int | None = None
        self._counted: tuple[Any, str] | None = None
        self._ran: tuple[Any, str] | None = None
        self._run: BackgroundSegment | None = None
        self.name = Variable("segment", width="160px")
        for field in (self.name, self.limit):
            field.changed(self.publish).entered(self.do_run)
        self.run = Button("Run", self.do_run, classes="nbext-main nbext-run")
        self.stop = Button("Cancel", self.cancel, classes="nbext-cancel")
        self.bar = ViewPart("bar", label="Progress", value=0.0)
        self.inserted, self.result = Markup(), Markup()
        self.stale = Markup("These rows are of the query before it changed.", "nbext-note")
        self.funnel, self.sample = Markup(), Markup(classes="nbext-note")
        self.lines.members = (self.funnel, self.sample)
        self.bar.hide(True)
        self.stop.hide(True)
        actions = row(self.name, self.limit, self.run, self.stop, classes="nbext-panel")
        below = (self.bar, self.status, self.inserted, self.stale, self.result)
        self.assemble(self.lines, actions, *below, wide=True)
        self.changed()

    def cell(self) -> str:
        """Return the cell that runs this query."""
        name = self.name.value.strip()
        limit = self._limit_or_none()
        given = limit if limit != self.client.settings["limit"] else None
        # While a name or a limit is half typed, the cell shows what can be run already.
        return filters.cell_text(
            name if name.isidentifier() else "", self.filters(), self.operator, given
        )

    def _limit_or_none(self) -> int | None:
        limit = whole_of(ungrouped(self.limit.value.strip()))
        fits = limit is not None and 1 <= limit <= self.grammar.most
        self.limit.error = "" if fits else f"A whole number from 1 to {self.grammar.most:,}"
        return limit if fits else None

    def publish(self) -> None:
        """Show the page what there is, and the inserted cell too."""
        if self.inserted.value:
            self.inserted.value = code_html(self.cell())
        super().publish()

    # Counting

    def changed(self) -> None:
        """Show what changed, and count it once nothing changes for a moment."""
        self.errors.clear()
        question = (self.filters(), self.operator)
        changed = question != self._counted
        if self._run is None:
            self.say("")
        self.stale.hide(self.frame is None or question == self._ran)
        self.publish()
        if missing := self.missing():
            self.background.drop()
            self._counted = None
            self._show_count(missing)
        elif changed:
            self._recount(question)

    def _recount(self, question: tuple[Any, str]) -> None:
        self._counted, tree = question, self.edits.now
        # The old count is marked at once: beside the new conditions it is wrong.
        self._show_count("Counting …", keep=True, act="stop")

        def count() -> Steps:
            try:
                found = yield lambda: self._counts(tree, question)
            except NbextError as error:
                self.do_stop()
                self.failed(error)
                return
            self.matched = found["matched"]
            self.funnel.value, self.sample.value = found["funnel"], found["sample"]
            told = {"matched": self.matched, "lines": found["lines"]}
            self.lines.show(counted={**told, "stale": False, "text": ""})
            self.renew()

        self.background.schedule(count, after=PAUSE)

    def _counts(self, tree: Tree, question: tuple[Any, str]) -> dict[str, Any]:
        """Return what is shown of a tree's counts: matched, lines by their ids, the funnel, some wallets.

        A stranger's service is asked for the whole alone.
        """
        if not self.client.is_ours:
            known = Provenance.of(self.client.execute_segment(*question, limit=0))
            return {"matched": known.matched, "lines": {}, "funnel": _notes(known), "sample": ""}
        found = self.client.funnel(*question, sample=FEW)
        steps, parts, lines = found["steps"], list(_steps(tree)), {}
        # Where the service joins the conditions in a way that is not foreseen here, none of its steps is a line.
        if len(parts) == len(steps) and tree.root.key == "all":
            for part, step, before in zip(parts, steps, [None, *steps], strict=False):
                taken = before["remaining"] - step["remaining"] if part.negated and before else None
                lines[str(part.id)] = (
                    f"{step['alone']:,}" if taken is None else f"\N{MINUS SIGN}{taken:,}"
                )
        # The other parts each by itself.
        scope = {key: tree.scope[key] for key in SCOPE[:3] if key in tree.scope}
        _, *inside = tree.root.walk()
        others = [part for part in inside if str(part.id) not in lines][:MAX_COMPARED]
        if others:
            asked = [(filters.alone(part, scope), "AND") for part in others]
            counts = self.client.counts(asked, [[place] for place in range(len(others))])["counts"]
            for part, count in zip(others, counts, strict=False):
                lines[str(part.id)] = f"{'not ' * part.negated}{count:,}"
        wallets = " ".join(f"<code>{html(one, 42)}</code>" for one in found.get("sample") or ())
        funnel = funnel_html(steps) if len(steps) > 1 else ""
        return {
            "matched": steps[-1]["remaining"],
            "lines": lines,
            "funnel": funnel + _notes(Provenance(warnings=found["warnings"])),
            "sample": wallets and f"Such as {wallets}",
        }

    def do_stop(self, _: Asked | None = None) -> None:
        """Stop waiting for a count; it can be asked for again."""
        self.background.drop()
        self._counted = None
        self._show_count("Not counted.", act="count")

    def do_count(self, _: Asked) -> None:
        """Count what is there now, at once."""
        if not self.missing():
            self._recount((self.filters(), self.operator))
            self.background.hurry()

    def _show_count(self, text: str, *, keep: bool = False, act: str = "") -> None:
        """Show no count, and why; ``keep`` the old one, marked. ``act`` is what the button beside it does."""
        self.matched = None
        old = self.lines.shown["counted"] if keep else {}
        # Of the conditions that are shown, and of no earlier ones.
        self.sample.value = ""
        # A time of its own: the page shows how long each count takes.
        about = {"stale": True, "text": text, "act": act, "asked": time.monotonic()}
        self.lines.show(counted={**old, **about})
        # The snapshot is saved with the notebook: "Counting …" in it would stay there for ever.
        if not keep:
            self.funnel.value = ""
            self.renew()

    # Errors

    def failed(self, error: Exception) -> None:
        """Show an error beside the fields that it names, else in the form."""
        if not isinstance(error, ValidationError):
            super().failed(error)
            return
        self._show_count("Not counted: the marked fields show why.")
        self.mark(error)
        self.publish()
        self.renew()

    def _to_first_error(self) -> None:
        """Move the focus to the first field that is wrong, or empty and required."""
        parts = self.edits.now.root.walk()
        wrong = [(part.id, one["field"]) for part in parts for one in self.errors.get(part.id, ())]
        wrong += [(part, name) for part, name, _ in fields.missing(self.edits.now, self.grammar)]
        for part, name in wrong[:1]:
            self.lines.show(opened=[part])
            self.lines.tell({"op": "goto", "goto": part, "field": name})

    # The cell, and running it

    def _complete(self) -> int | None:
        """Return the limit of a query that is complete; None where the limit is no number, which its field says."""
        if missing := self.missing():
            self._to_first_error()
            raise UsageError(missing)
        limit = self._limit_or_none()
        if limit is None:
            self.limit.focus()
        return limit

    def do_insert(self, asked: Asked) -> None:
        """Have the view that asks insert the cell below its own, or else the front end with its next answer."""
        if self._complete() is None or (self.name.value.strip() and self.name.checked() is None):
            return
        if not self.insert(self.lines, self.cell(), asked):
            self.inserted.value = code_html(self.cell())
            self.renew()

    def do_run(self, _: Asked | None = None) -> None:
        """Run the query, once; its table goes into the variable."""
        # A double click arrives twice, although the first click disables the button.
        if self._run is not None:
            return
        limit = self._complete()
        if limit is None or (name := self.name.name()) is None:
            return
        query = SegmentQuery(self.filters(), self.operator, "json", limit)
        run = BackgroundSegment(self.client, query, seen=self._progress)
        self._busy(run)
        self.runs.schedule(lambda: self._finish(run, name))

    def _progress(self, run: BackgroundSegment, progress: Progress) -> None:
        # One that was cancelled goes on until it has an id.
        if run is not self._run:
            return
        # Without a known total the bar only shows that time passes.
        done, total = progress.done, progress.total
        self.bar.value = done / total if total else 1 - 1 / (1 + progress.seconds / 4)
        said = visible(progress.status) or progress.phase
        self.say(f"{said} …", running=True)

    def _finish(self, run: BackgroundSegment, name: str) -> Steps:
        query = run.query
        try:
            frame = yield run.result
        except Exception as error:
            self._busy(None)
            if not isinstance(error, ValidationError):
                raise
            self.say("The service refused this query; the marks above show why.", "bad")
            self.failed(error)
            self._to_first_error()
            return
        self._busy(None)
        variables()[name] = frame
        add_to_history(query, frame)
        self.frame, self._ran = frame, (query.filters, query.operator)
        returned, matched = len(frame), Provenance.of(frame).matched
        of = f" of {matched:,}" if isinstance(matched, int) and matched != returned else ""
        held = f"{returned:,}{of} wallet{'s' * (returned != 1)}"
        self.say(f"{name} holds {held}. nbext.show({name}) shows its card.", "good")
        self.result.value = frame_html(frame)
        self.renew()

    def _busy(self, run: BackgroundSegment | None) -> None:
        self._run = run
        # First the button that comes: what is switched off hands the focus on to it.
        self.stop.hide(False)
        self.run.show(disabled=run is not None)
        self.bar.value = 0.0
        self.bar.hide(run is None)
        self.stop.hide(run is None)
        if run is not None:
            self.result.value, self.frame = "", None
            self.stale.hide(True)
            self.say("Running …", running=True)

    def cancel(self) -> None:
        """Stop waiting for the run; the service is told as soon as it has named the segment."""
        run = self._run
        if run is None:
            return
        self.runs.drop()
        self._busy(None)
        self.say("Cancelled.")
        # Not in the thread of the run, which waits for the very answer that this is to end.
        Background(self.failed).schedule(run.cancel)

    def state(self) -> str:
        """Return how many wallets match, or else what is missing or was said."""
        counted = "" if self.matched is None else f"{self.matched:,} wallets match."
        return counted or self.missing() or self.message

    def still_html(self) -> str:
        """Return these words, the query as a cell, and the first rows of the last run."""
        rows = (
            "" if self.frame is None else f"<p>{html(self.message)}</p>{self.result.still_html()}"
        )
        code = code_html(self.cell()) if self.edits.now.root.members else ""
        return f"<p>{lines_html(self.state())}</p>{code}{rows}"

    def magic(self) -> str:
        """Return the cell that runs the query; of one without conditions, an example."""
        return self.cell() if self.edits.now.root.members else EXAMPLE


def _notes(known: Provenance) -> str:
    return "".join(f'<div class="nbext-note">{lines_html(note)}</div>' for note in known.notes())


def _steps(tree: Tree) -> Iterator[FilterPart]:
    """Yield the parts that must all hold, in the order of the filters; the service takes groups of these apart."""
    by_id = {part.id: part for part in tree.root.walk()}
    inside: set[int] = set()
    # What is denied has two pointers, its own and that of its NOT.
    for part in map(by_id.__getitem__, dict.fromkeys(filters.written(tree)[1].values())):
        if part.is_group:
            if not part.negated and (part.key == "all" or len(part.members) < 2):
                continue
            inside |= {one.id for one in part.members for one in one.walk()}
        if part.id not in inside:
            yield part
