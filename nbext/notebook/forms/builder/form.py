"""The segment builder: a query put together line by line, counted as it grows, run or written out."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

import ipywidgets as w
import traitlets
from anywidget import AnyWidget
from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.forms.builder import counts, fields, filters
from nbext.notebook.forms.builder.actions import WHOLE, Editing
from nbext.notebook.forms.builder.tree import Edits, Group, Part, Tree
from nbext.notebook.forms.form import Background, Snapshot, attempt
from nbext.notebook.forms.widgets import (
    Variable,
    add_to_history,
    button,
    code_html,
    frame_html,
    markup,
    row,
    text_field,
    visibility,
)
from nbext.notebook.results.deliver import MAX_NOTE
from nbext.notebook.schema import ORDER, segment_schema

if TYPE_CHECKING:
    import pandas as pd

# The count is asked for when nothing has changed for this long: a count per key would queue up at the service.
PAUSE = 0.6
INSERTED = (
    "The cell appears below the next cell that you run. If none appears, click the text of the cell in this form "
    "and copy it."
)


class Lines(AnyWidget):
    """The page's part of the builder: it draws these traits, and what is done in it comes as messages."""

    _esm = resources.files(__package__).joinpath("lines.js").read_text("utf-8")
    _css = resources.files(__package__).joinpath("lines.css").read_text("utf-8")
    spec = traitlets.Dict().tag(sync=True)
    tree = traitlets.Dict().tag(sync=True)
    counted = traitlets.Dict().tag(sync=True)
    opened: traitlets.List[int] = traitlets.List().tag(sync=True)


class SegmentForm(Editing):
    """Build a segment line by line; see its count; run it, or take the cell that does."""

    title = "Segment builder"
    hint = "One line for each condition. The counts follow what you change."

    def __init__(self, client: Any, query: Any = None) -> None:
        super().__init__(client)
        self.grammar = segment_schema(client.schema())
        # Apart from counts: a count that waits is replaced by the next one, a run must not be. Nor do the hits for
        # what is typed wait for either.
        self.runs, self.searches = Background(self.failed), Background(self.failed)
        self.frame: pd.DataFrame | None = None
        self.matched: int | None = None
        self._counted: tuple[Any, str] | None = None
        self._ran: tuple[Any, str] | None = None
        self._run: _Run | None = None
        # A pick that the service stores first ends in another thread than what is typed meanwhile.
        self.editing = threading.RLock()
        self.errors: dict[int, list[dict[str, str]]] = {}
        self.removed: dict[str, Any] | None = None
        limit = None
        tree = Tree(Group("all"))
        if query is not None:
            given, operator, limit = filters.parsed(query)
            tree = filters.read(given, operator, {spec.name for spec in self.grammar.scope})
        self.edits = Edits(tree)
        self._build(limit)
        self.changed()

    def _build(self, limit: int | None) -> None:
        # Voila has no cells.
        cells = "VOILA_REQUEST_URL" not in os.environ
        self.lines = Lines(spec={**fields.described(self.grammar, self._chains()), "cells": cells})
        self.lines.on_msg(lambda _, content, __: attempt(lambda: self._do(content), self.failed))
        self.variable = Variable("segment", width="160px")
        self.name = self.variable.field
        self.limit = text_field(
            "Rows, at most", str(limit or self.client.settings["limit"]), width="110px"
        )
        for field in (self.name, self.limit):
            field.changed(lambda _: self.publish()).entered(self.once_typed(self.start))
        self.run = button("Run", self.once_typed(self.start), classes="nbext-main nbext-run")
        self.stop = button("Cancel", self.guarded(self.cancel), classes="nbext-quiet nbext-cancel")
        self.again = button("Retry", self.guarded(self.retry), classes="nbext-quiet nbext-retry")
        self.bar = w.FloatProgress(
            min=0, max=1, bar_style="info", layout=w.Layout(width="100%", height="8px")
        )
        self.inserted, self.result = markup(), markup()
        for hidden in (self.bar, self.stop, self.again):
            visibility(hidden, False)
        actions = row(
            self.name.widget,
            self.limit.widget,
            self.run,
            self.stop,
            self.again,
            classes="nbext-panel",
        )
        self.assemble(self.lines, actions, self.bar, self.status, self.inserted, self.result)
        self.widget.add_class("nbext-wide")

    def _chains(self) -> list[str]:
        data = (self.client.about() if self.client.is_ours else {}).get("data")
        chains = data.get("chains") if isinstance(data, Mapping) else None
        return [str(one.get("chain")) for one in chains or () if isinstance(one, Mapping)]

    # What is read of the tree

    @property
    def operator(self) -> str:
        """AND or OR, between the lines."""
        return next(
            word for word, join in filters.JOINS.items() if join == self.edits.now.root.join
        )

    def filters(self) -> dict[str, Any]:
        """Return the filters as they are now."""
        return filters.written(self.edits.now)[0]

    def missing(self) -> str:
        """Return which required fields are empty, as one sentence, or an empty text."""
        labels = [label for _, _, label in fields.missing(self.edits.now, self.grammar)]
        return f"Still to fill in: {', '.join(dict.fromkeys(labels))}." if labels else ""

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
        text = self.limit.value.strip().replace(",", "").replace("_", "")
        # Twelve digits decide whether it is too large; int() of a pasted novel would hold the kernel.
        whole = text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= self.grammar.most
        self.limit.error = "" if whole else f"A whole number from 1 to {self.grammar.most:,}"
        return int(text) if whole else None

    def publish(self) -> None:
        """Show the page what there is."""
        if self.inserted.value:
            self.inserted.value = code_html(self.cell())
        now = self.edits.now
        given = self.filters()
        body = given if self.operator == "AND" else {"operator": self.operator, "filters": given}
        scope = fields.inputs_of(self.grammar.scope, now.scope)
        if scope is None:
            fit = {
                k: v
                for k, v in now.scope.items()
                if fields.inputs_of(self.grammar.scope, {k: v}) is not None
            }
            scope = fields.inputs_of(self.grammar.scope, fit)
        orders = fields.orders(json.dumps(given, default=str), self.grammar, now.scope.get(ORDER))
        self.lines.tree = {
            "root": self.view(now.root),
            "scope": scope,
            "orders": orders,
            "json": filters.json_text(body),
            "cell": self.cell(),
            "undo": bool(self.edits.past),
            "redo": bool(self.edits.future),
            "removed": self.removed,
            "scopeErrors": self.errors.get(0, []),
            "jsonError": "".join(one["detail"] for one in self.errors.get(WHOLE, ())),
        }

    def view(self, part: Part) -> dict[str, Any]:
        shown = {"id": part.id, "not": part.negated, "errors": self.errors.get(part.id, [])}
        if isinstance(part, Group):
            return {
                **shown,
                "join": part.join,
                "members": [self.view(member) for member in part.members],
            }
        spec = self.grammar.conditions.get(part.key)
        inputs = fields.inputs_of(spec.fields, part.value) if spec else None
        words = fields.in_words(spec, part.value) if spec and inputs is not None else ""
        shown |= {
            "key": part.key,
            "label": spec.label if spec else visible(part.key, 60),
            "fields": inputs,
        }
        written = filters.json_text(part.value)
        return {
            **shown,
            "words": words,
            "json": written if inputs is None else "",
            "short": visible(written, 80),
        }

    # Counting

    def changed(self) -> None:
        """Show what changed, and count it once nothing changes for a moment."""
        self.errors.clear()
        question = (self.filters(), self.operator)
        changed = question != self._counted
        if self._run is None:
            self.say("")
            visibility(self.again, False)
        if (
            self.frame is not None
            and not self.result.value.startswith("<p")
            and question != self._ran
        ):
            note = "These rows are of the query before it changed."
            self.result.value = (
                f'<p class="nbext-note nbext-stale">{note}</p>{frame_html(self.frame)}'
            )
        self.publish()
        if missing := self.missing():
            self._drop_count()
            self._counted = None
            self._show_count(missing)
        elif changed:
            self._recount(question)

    def _recount(self, question: tuple[Any, str]) -> None:
        self._counted, tree = question, self.edits.now
        # The old count is marked at once: beside the new conditions it is wrong.
        self._show_count("Counting …", keep=True, act="stop")
        self._drop_count()
        self.background.schedule(lambda: self._count(tree, question), after=PAUSE)

    def _drop_count(self) -> None:
        self.background.drop()
        if not self.background.join(0):
            # The next count does not wait for the one under way, whose answer is dropped when it comes.
            self.background = Background(self.failed)

    def _count(self, tree: Tree, question: tuple[Any, str]) -> None:
        try:
            found = counts.of(self.client, tree, question, self._in_words)
        except NbextError:
            # The query has changed meanwhile: its own count follows, and this error is about fields that are gone.
            if question is not self._counted:
                return
            self.stop_counting()
            raise
        with self.editing:
            if question is self._counted:
                self.matched = found["matched"]
                self.lines.counted = {
                    **found,
                    "stale": False,
                    "text": "",
                    "notes": _notes(found["notes"]),
                }
                self.renew()

    def stop_counting(self) -> None:
        """Stop waiting for a count; it can be asked for again."""
        self._drop_count()
        self._counted = None
        self._show_count("Not counted.", act="count")

    def count_again(self) -> None:
        """Count what is there now, at once."""
        if not self.missing():
            self._recount((self.filters(), self.operator))
            self.background.hurry()

    def _in_words(self, part: Part) -> str:
        """Return a part as the funnel names it."""
        shown = self.view(part)
        if "members" in shown:
            joint = " and " if shown["join"] == "all" else " or "
            inner = joint.join(self._in_words(member) for member in part.members)  # type: ignore[union-attr]
            return f"{'NOT ' * part.negated}({inner})"
        words = (
            shown["words"]
            or f"{shown['label']} {shown['short'] if shown['fields'] is None else ''}"
        )
        return f"{'NOT ' * part.negated}{words}"

    def _show_count(self, text: str, *, keep: bool = False, act: str = "") -> None:
        """Show no count, and why; ``keep`` the old one, marked. ``act`` is what the button beside it does."""
        self.matched = None
        old = self.lines.counted if keep else {}
        # A time of its own: the page shows how long each count takes.
        self.lines.counted = {
            **old,
            "stale": True,
            "text": text,
            "act": act,
            "asked": time.monotonic(),
        }
        # The snapshot is saved with the notebook: "Counting …" in it would stay there for ever.
        if not keep:
            self.renew()

    # Errors

    def failed(self, error: Exception) -> None:
        """Show an error beside the fields that it names, else in the form."""
        if not isinstance(error, ValidationError):
            super().failed(error)
            return
        self._show_count("Not counted: the marked fields show why.")
        # Pointers are those of the last writing, which is the query that the service answered.
        places = filters.written(self.edits.now)[1]
        for one in error.errors:
            self._mark(one["pointer"], one["detail"], places)
        self.publish()
        self.renew()

    def _mark(self, pointer: str, detail: str, places: Mapping[str, int]) -> None:
        # The innermost of the parts around the pointer; with the slash, /any/1 is not taken for a part of /any/10.
        near = max(
            (place for place in places if f"{pointer}/".startswith(f"{place}/")),
            key=len,
            default=None,
        )
        wanted = places[near] if near is not None else 0
        rest = pointer[len(near) :] if near is not None else pointer.removeprefix("/filters")
        name, key = (*rest.strip("/").split("/"), "")[:2]
        if not wanted and name not in {spec.name for spec in self.grammar.scope}:
            self.say(f"{pointer}: {detail}", "bad")
            return
        self.errors.setdefault(wanted, []).append(
            {"field": name, "key": key, "detail": visible(detail, 500)}
        )

    def _to_first_error(self) -> None:
        """Move the focus to the first field that is wrong, or empty and required."""
        parts = self.edits.now.root.walk()
        wrong = [(part.id, one["field"]) for part in parts for one in self.errors.get(part.id, ())]
        wrong += [(part, name) for part, name, _ in fields.missing(self.edits.now, self.grammar)]
        for part, name in wrong[:1]:
            self.lines.opened = [part]
            self.lines.send({"goto": part, "field": name})

    # The cell, and running it

    def _complete(self) -> int | None:
        """Return the limit of a query that is complete; None where the limit is no number, which its field says."""
        if missing := self.missing():
            self._to_first_error()
            raise UsageError(missing)
        limit = self._limit_or_none()
        if limit is None:
            self.limit.entry.focus()
        return limit

    def insert_cell(self, view: str | None = None) -> None:
        """Have a view of the page insert the cell below its own; without one, the front end with its next answer."""
        shell = get_ipython()
        if shell is None:
            raise UsageError("This is not IPython: there is no notebook to insert a cell into.")
        if self._complete() is None or (
            self.name.value.strip() and self.variable.checked() is None
        ):
            return
        if view is not None:
            self.lines.send({"view": view, "insert": self.cell()})
            self.say("The cell is below this one.", "good")
            return
        shell.set_next_input(self.cell(), replace=False)
        self.say(INSERTED, "good")
        self.inserted.value = code_html(self.cell())
        self.renew()

    def start(self) -> None:
        """Run the query, once; its table goes into the variable."""
        # A double click arrives twice, although the first click disables the button.
        if self._run is not None:
            return
        limit = self._complete()
        if limit is None or (name := self.variable.name()) is None:
            return
        run = _Run(name, SegmentQuery(self.filters(), self.operator, "json", limit))
        self._busy(run)
        self.runs.schedule(lambda: self._execute(run))
        threading.Thread(target=self._tick, args=(run,), daemon=True, name="nbext-elapsed").start()

    def _execute(self, run: _Run) -> None:
        query = run.query
        try:
            frame = self.client.execute_segment(
                query.filters,
                query.operator,
                limit=query.limit,
                progress=lambda report: self._progress(run, report),
            )
            if run.cancelled:
                return
            self.variable.assign(run.name, frame)
            add_to_history(query, frame)
            self._show_result(run, frame)
        except ValidationError as error:
            if not run.cancelled:
                self.say("The service refused this query; the marks above show why.", "bad")
                self.failed(error)
                self._to_first_error()
        except Exception:
            if not run.cancelled:
                visibility(self.again, True)
                raise
        finally:
            if self._run is run:
                self._busy(None)
            self.renew()

    def _busy(self, run: _Run | None) -> None:
        self._run = run
        # First the button that comes: what is switched off hands the focus on to it.
        if run is not None:
            visibility(self.stop, True)
        self.run.disabled = run is not None
        self.bar.value = 0.0
        visibility(self.bar, run is not None)
        visibility(self.stop, run is not None)
        if run is not None:
            visibility(self.again, False)
            self.result.value, self.frame = "", None
            self.say("Running …")

    def _tick(self, run: _Run) -> None:
        # The service reports when it is asked, which may be seconds apart or, while it hangs, never.
        while self._run is run and not run.cancelled:
            seconds = time.monotonic() - run.began
            self.say(f"{run.said} … {seconds:.0f} s")
            time.sleep(1)

    def _progress(self, run: _Run, report: Any) -> None:
        run.segment_id = report.segment_id or run.segment_id
        if run.cancelled:
            self._end(run)
            return
        # Without a known total the bar only shows that time passes.
        self.bar.value = (
            report.done / report.total if report.total else 1 - 1 / (1 + report.seconds / 4)
        )
        run.said = visible(report.status) or report.phase

    def cancel(self) -> None:
        """Stop waiting for the run; the service is told as soon as it has named the segment."""
        run = self._run
        if run is None:
            return
        run.cancelled = True
        # Another thread for the next run: this one may wait for a service that hangs.
        self.runs = Background(self.failed)
        self._busy(None)
        self.say("Cancelled.")
        visibility(self.again, True)
        self._end(run)

    def _end(self, run: _Run) -> None:
        # Not in the thread of the run, which waits for the very answer that this is to end; and once.
        wanted, run.segment_id = run.segment_id, None
        if wanted and not run.told:
            run.told = True
            self.searches.schedule(lambda: self.client.cancel(wanted))

    def retry(self) -> None:
        """Run again what failed or was cancelled."""
        visibility(self.again, False)
        self.start()

    def _show_result(self, run: _Run, frame: pd.DataFrame) -> None:
        self.frame, self._ran = frame, (run.query.filters, run.query.operator)
        returned, matched = len(frame), Provenance.of(frame).matched
        of = f" of {matched:,}" if isinstance(matched, int) and matched != returned else ""
        wallets = "wallets" if returned != 1 else "wallet"
        self.say(
            f"{run.name} holds {returned:,}{of} {wallets}. nbext.show({run.name}) shows its card.",
            "good",
        )
        self.result.value = frame_html(frame)

    def snapshot(self) -> Snapshot:
        """The query as a cell, its count, and the first rows of the last run."""
        counted = "" if self.matched is None else f"{self.matched:,} wallets match."
        text = counted or self.missing() or self.message
        rows = "" if self.frame is None else f"<p>{html(self.message)}</p>{frame_html(self.frame)}"
        cell, code = (
            (self.cell(), code_html(self.cell())) if self.edits.now.root.members else ("", "")
        )
        return Snapshot(
            f"<p>{html(text, 500)}</p>{code}{rows}", f"{self.title}: {visible(text)}\n{cell}"
        )


class _Run:
    """One run: what is asked, since when, and whether somebody still wants it."""

    def __init__(self, name: str, query: SegmentQuery) -> None:
        self.name, self.query, self.began = name, query, time.monotonic()
        self.segment_id: str | None = None
        self.cancelled = self.told = False
        self.said = "Running"


def _notes(notes: Iterable[object]) -> list[str]:
    return [visible(note, MAX_NOTE) for note in notes]
