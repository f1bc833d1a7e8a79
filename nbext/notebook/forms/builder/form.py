"""The segment builder: a query that a page edits by messages, counted as it grows, run or written out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from nbext.analysis.segments import Segment, count_common, scope_of
from nbext.core.provenance import Provenance
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook import session
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.forms.builder import fields, filters
from nbext.notebook.forms.builder.filters import OTHER, SCOPE, Edits, FilterGroup, FilterPart, Tree
from nbext.notebook.forms.form import (
    Background,
    Form,
    Steps,
    Variable,
    has_cells,
    notebook_client,
    variables,
)
from nbext.notebook.forms.markup import code_html, frame_html, funnel_html, lines_html, notes_html
from nbext.notebook.results.progress import how_far
from nbext.notebook.run.background import BackgroundSegment
from nbext.notebook.views.view import Asked, Button, InputField, Markup, ViewPart, row

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client
    from nbext.client.segment_run import Progress

# The count is asked for when nothing has changed for this long: a count per key would queue up at the service.
PAUSE = 0.6
# Wallets that are named beside the counts.
FEW = 3
OLD_ROWS = "These rows are of the query before it changed."
EXAMPLE = '%%segment_query segment\n{"token": {"token": "UNI"}}'
Goto = dict[str, Any] | None


class SegmentForm(Form):
    """Build a segment line by line; see its count; run it, or take the cell that does.

    A message of the page whose ``op`` is NAME goes to ``do_NAME``, which returns where the focus goes in the view that
    sent it, or nothing.
    """

    title = "Segment builder"
    hint = "One line for each condition. The counts follow what you change."

    def __init__(self, client: Any, query: Any = None) -> None:
        super().__init__(client)
        extents = client.about()["data"]["chains"] if client.is_ours else ()
        self.grammar = fields.grammar_of(client.schema(), [one["chain"] for one in extents])
        # Apart from counts, which neither a search nor a run must replace.
        self.searches, self.runs = (Background(self.failed, self.lock) for _ in range(2))
        # What the service says is wrong: of which part, its field and bound.
        self.errors: list[dict[str, Any]] = []
        tree, limit = (Tree(FilterGroup("all", [])), None) if query is None else self.read(query)
        self.edits = Edits(tree)
        # What the last edit removed: where, and in words.
        self.removed: dict[str, Any] | None = None
        self.frame: pd.DataFrame | None = None
        self.matched: int | None = None
        self._ran: tuple[Any, str] | None = None
        self._run: BackgroundSegment | None = None
        most = str(limit or client.settings["limit"])
        acts: dict[str, Any] = {"changed": self.publish, "entered": self.do_run}
        self.limit = InputField("Rows, at most", most, width="110px", **acts)
        self.name = Variable("segment", **acts)
        self.run = Button("Run", self.do_run, classes="nbext-main nbext-run")
        self.result = Markup()
        self.funnel, self.sample = Markup(), Markup(classes="nbext-note")
        # Not the schemas, whose texts may be long: they are for what comes back.
        spec = asdict(
            self.grammar,
            dict_factory=lambda pairs: {key: one for key, one in pairs if key != "accepts"},
        )
        self.lines = ViewPart("lines", self.do, spec=spec, tree={}, counted={}, opened=[])
        self.counting = ViewPart("status", self.wait, text="", running=False)
        self.json = InputField(
            "The conditions as JSON", shape="code", width="100%", changed=self._read_json
        )
        self.insertion = Button("Insert cell", self.do_insert, classes="nbext-insert")
        shown = (self.counting, self.funnel, self.sample, self.json)
        self.lines.members = (*shown, *[self.insertion] * has_cells())
        actions = row(self.name, self.limit, self.run, classes="nbext-panel")
        self.assemble(self.lines, actions, self.status, self.result, wide=True)
        self.changed()

    # What is read of the tree

    def read(self, query: Any) -> tuple[Tree, int | None]:
        """Return filters, a request body or a segment's table as a tree, and its limit."""
        given, operator, limit = filters.parsed(query)
        return filters.read(given, operator, self.grammar.scope.names), limit

    def filters(self) -> dict[str, Any]:
        """Return the filters as they are now."""
        return filters.written(self.edits.now)[0]

    @property
    def question(self) -> tuple[dict[str, Any], str]:
        """Filters and operator as they are now."""
        return self.filters(), "AND" if self.edits.now.root.key == "all" else "OR"

    def missing(self) -> str:
        """Return which required fields are empty, as one sentence, or an empty text."""
        labels = [label for _, label in fields.missing(self.edits.now, self.grammar)]
        return f"Still to fill in: {', '.join(dict.fromkeys(labels))}." if labels else ""

    def cell(self) -> str:
        """Return the cell that runs this query."""
        name = self.name.value.strip()
        limit = self._limited()
        given = limit if limit != self.client.settings["limit"] else None
        # While a name or a limit is half typed, the cell shows what can be run already.
        return filters.cell_text(name if name.isidentifier() else "", *self.question, given)

    def _limited(self, *, focus: bool = False) -> int | None:
        limit = whole_of(ungrouped(self.limit.value.strip()))
        fits = limit is not None and 1 <= limit <= self.grammar.most
        self.limit.error = "" if fits else f"A whole number from 1 to {self.grammar.most:,}"
        if focus and not fits:
            self.limit.focus()
        return limit if fits else None

    def publish(self) -> None:
        """Show the page what there is."""
        now = self.edits.now
        tree = {
            "root": self.node(now.root),
            "scope": self.node(now.scope),
            # To be copied, where there are magics.
            "cell": self.cell() if get_ipython() else "",
            "undo": self.edits.at > 0,
            "redo": self.edits.step is not self.edits.steps[-1],
            "removed": self.removed,
        }
        self.lines.show(tree=tree)

    def node(self, part: FilterPart) -> dict[str, Any]:
        """Return what the page shows of a part."""
        wrong = [one for one in self.errors if one["part"] == part.id]
        shown: dict[str, Any] = {"id": part.id, "not": part.negated, "errors": wrong}
        if isinstance(part, FilterGroup):
            members = [*map(self.node, part.members)]
            return {
                **shown,
                "join": part.key,
                "label": fields.JOIN_WORDS[part.key],
                "members": members,
            }
        spec = self.grammar.spec_of(part)
        inputs = fields.inputs_of(spec.fields, part.value) if spec else None
        return {
            **shown,
            "key": part.key,
            "label": spec.label if spec else visible(part.key, 60),
            "fields": inputs,
            # What no input can show is shown as it is written.
            "words": visible(filters.json_text(part.value), 80)
            if spec is None or inputs is None
            else fields.in_words(spec, part.value),
        }

    def mark(self, error: ValidationError) -> None:
        """Show each error beside the field that it is about; what is about none, in the form."""
        # Not beside those of before: a count and a run that are refused say the same.
        self.errors.clear()
        # Pointers are those of the last writing, which is the query that the service answered.
        places = filters.written(self.edits.now)[1]
        for one in error.errors:
            pointer, detail = one["pointer"], one["detail"]
            # The innermost of the parts around the pointer; with the slash, /any/1 is not taken for a part of /any/10.
            around = [place for place in places if f"{pointer}/".startswith(f"{place}/")]
            near = max(around, key=len, default="/filters")
            wanted = places.get(near, SCOPE)
            name, key = (*pointer.removeprefix(near).strip("/").split("/"), "")[:2]
            if wanted == SCOPE and name not in self.grammar.scope.names:
                self.say(f"{pointer}: {detail}", "bad")
                continue
            about = {"part": wanted, "field": name, "key": key}
            self.errors.append({**about, "detail": visible(detail, 500)})

    # Edits

    def do(self, asked: Asked) -> None:
        """Do what a message of the page asks for; say which part the view that sent it goes to."""
        with self.lock:
            goto = getattr(self, f"do_{asked['op']}")(asked) or {}
            # Typing the same field goes on with one step of undo.
            of = asked.get("id"), asked.get("field")
            self._settle(of if asked["op"] == "set" else None, goto.get("removed"))
            if goto:
                self.lines.tell({"to": asked.get("from"), "op": "goto", **goto})

    def _settle(self, of: object = None, removed: dict[str, Any] | None = None) -> None:
        self.edits.settle(of)
        # After an undo, too.
        if self.edits.step is not self._shown_step:
            self.removed = removed
            self.changed()

    def _part(self, asked: Asked) -> FilterPart:
        return self.edits.now.find(int(asked["id"]))

    def _around(self, asked: Asked) -> tuple[FilterPart, int, FilterPart]:
        return self.edits.now.around(int(asked["id"]))

    def add(self, key: str, value: Any = None, into: int | None = None) -> FilterPart:
        """Add a condition or a group at the end of a group."""
        part = FilterPart(key, {} if value is None else value)
        if key in (*OTHER, "not"):
            part = FilterGroup("any" if key == "any" else "all", [], negated=key == "not")
        with self.lock:
            self.edits.now.add(part, into)
            self._settle()
        return part

    def do_add(self, asked: Asked) -> Goto:
        """Add a condition with its value, a group, or a saved query."""
        key, value, into = str(asked["key"]), asked.get("value"), asked.get("into")
        if key != fields.SAVED:
            return {"goto": self.add(key, value, into).id}
        # As a group; to a form without conditions as it is.
        here, now, name = session.current_session(), self.edits.now, str(value)
        if here is None:
            raise UsageError("Saved queries need `%load_ext nbext`.")
        tree, _ = self.read(session.saved_query(here.data_dir, name))
        if tree.scope != now.scope and (now.root.members or now.scope.value):
            settings = tree.scope.value.items()
            own = ", ".join(visible(f"{key}: {value}", 60) for key, value in settings) or "none"
            raise UsageError(
                f"{name} was saved with other settings for all conditions ({own}): its wallets would not be "
                f"those that it found. `%nbext build {name}` opens it alone."
            )
        members = tree.root.members
        if not now.root.members:
            self.edits.now = tree
            return {"goto": members[0].id, "keep": True} if members else None
        part = members[0] if len(members) == 1 else tree.root
        now.add(part, into)
        return {"goto": part.id, "keep": True}

    def do_negate(self, asked: Asked) -> None:
        """Deny a part, or no longer."""
        part = self._part(asked)
        part.negated = not part.negated

    def do_join(self, asked: Asked) -> None:
        """Have a group join its parts the other way."""
        group = self._part(asked)
        group.key = OTHER[group.key]

    def do_move(self, asked: Asked) -> Goto:
        """Move a part up or down."""
        self.edits.now.move(int(asked["id"]), 1 if asked["by"] > 0 else -1)
        return {"goto": asked["id"], "keep": True}

    def do_duplicate(self, asked: Asked) -> Goto:
        """Add a copy of a part beside it."""
        group, place, part = self._around(asked)
        twin = part.copied()
        group.members.insert(place + 1, twin)
        return {"goto": twin.id}

    def do_wrap(self, asked: Asked) -> Goto:
        """Put a part into a group of its own, which joins as its surroundings do not."""
        group, place, part = self._around(asked)
        group.members[place] = FilterGroup(OTHER[group.key], [part])
        return {"goto": part.id, "keep": True}

    def do_unwrap(self, asked: Asked) -> Goto:
        """Put a group's parts in its place."""
        around, place, group = self._around(asked)
        if group.negated:
            raise UsageError(
                "NOT applies to the whole group. Switch it off before you take the group apart."
            )
        around.members[place : place + 1] = group.members
        return {"goto": group.members[0].id if group.members else "add"}

    def do_either(self, asked: Asked) -> Goto:
        """Add an empty condition like this one, in a group of both where their surroundings join otherwise."""
        group, place, part = self._around(asked)
        other = FilterPart(part.key, {})
        if group.key == "any":
            group.members.insert(place + 1, other)
        else:
            group.members[place] = FilterGroup("any", [part, other])
        return {"goto": other.id}

    def do_remove(self, asked: Asked) -> Goto:
        """Remove a part, and say where it was."""
        group, place, part = self._around(asked)
        shown = self.node(part)
        words = f"{shown['label']} {shown.get('words', '')}".strip()
        del group.members[place]
        return {"goto": "removed", "removed": {"parent": group.id, "place": place, "words": words}}

    def do_undo(self, _: Asked) -> Goto:
        """Go back one step; what was removed by it gets the focus."""
        removed, before = self.removed, {part.id for part in self.edits.now.walk()}
        self.edits.go(-1)
        back = [part.id for part in self.edits.now.walk() if part.id not in before]
        return {"goto": back[0], "keep": True} if removed and back else None

    def do_redo(self, _: Asked) -> None:
        """Take back one undo."""
        self.edits.go(1)

    def do_set(self, asked: Asked) -> None:
        """Give a field of a line what was typed or chosen."""
        part = self._part(asked)
        spec: Any = self.grammar.spec_of(part)
        one = next(one for one in spec.fields if one.name == asked["field"])
        held = {name: value for name, value in part.value.items() if name != one.name}
        value = fields.typed(one, asked["value"])
        part.value = held if value is fields.NOTHING else {**held, one.name: value}

    def do_list(self, asked: Asked) -> None:
        """Put a variable's wallets into a line, once the service has them."""
        at, value = int(asked["id"]), variables()[str(asked["value"])]

        def store() -> Steps:
            # Few are written out, many are stored with the service once.
            stored = yield lambda: self.client.execute_segment({"wallet": {"in": value}}, limit=0)
            found = (Provenance.of(stored).filters or {})["wallet"]
            part = self.edits.now.find(at)
            part.value = {k: v for k, v in part.value.items() if k not in ("in", "list")} | found
            self._settle()

        # Not in the place of a search, which the next one would take.
        Background(self.failed, self.lock).schedule(store)

    def _read_json(self) -> None:
        with self.lock:
            try:
                tree, limit = self.read(self.json.value)
            except NbextError as error:
                # While JSON is being typed it is mostly broken; the last whole value stays the query.
                self.json.error = f"Not used: {visible(error, 200)}"
                return
            self.json.error = ""
            self.limit.type(str(limit) if limit else self.limit.value)
            # The lines of one that is the same stay open.
            if tree != self.edits.now:
                self.edits.now = tree
            # Typing goes on with one step of undo.
            self._settle("JSON")

    def do_search(self, asked: Asked) -> None:
        """Look for what was typed; the answer goes to the view that asked, under the number of its question."""
        term, kinds = str(asked["term"]), asked["kinds"]
        chain = asked.get("chain") or self.edits.now.scope.value.get("chain")
        orders = fields.orders(json.dumps(self.filters(), default=str), self.grammar)

        def search() -> Steps:
            try:
                found = yield lambda: [
                    one
                    for kind in kinds
                    for one in fields.hits(self.client, kind, term, chain, orders)
                ]
                self.lines.answer(asked, found=found)
            except NbextError as error:
                self.lines.answer(asked, found=[], error=visible(error, 200))

        self.searches.schedule(search)

    def do_open(self, asked: Asked) -> None:
        """Have these lines open in all views."""
        self.lines.show(opened=asked["ids"], by=asked.get("from"))

    # Counting

    def changed(self) -> None:
        """Show what changed, and count it once nothing changes for a moment."""
        self.errors.clear()
        self._shown_step = self.edits.step
        given, operator = self.question
        body = given if operator == "AND" else {"operator": operator, "filters": given}
        self.json.show(value=filters.json_text(body), error="")
        if self._run is None:
            self.say("")
        self._show_rows()
        self.publish()
        if missing := self.missing():
            self.background.drop()
            self._show_count(missing)
        else:
            self._recount()

    def _recount(self, *, at_once: bool = False) -> None:
        question, tree = self.question, self.edits.step
        # The old count is marked at once: beside the new conditions it is wrong. The new one's seconds are its own.
        self.counting.show(running=False)
        self._show_count("Counting …", running=True)

        def count() -> Steps:
            try:
                matched, lines, funnel, sample = yield lambda: self._counts(tree, question)
            except NbextError as error:
                self._show_count("Not counted.", again=True)
                self.failed(error)
                return
            self.matched, self.funnel.value, self.sample.value = matched, funnel, sample
            self.counting.show(text=_match(matched), state="big", running=False)
            self.lines.show(counted={"matched": matched, "lines": lines, "stale": False})
            self.renew()

        self.background.schedule(count, after=0.0 if at_once else PAUSE)

    def _counts(
        self, tree: Tree, question: tuple[Any, str]
    ) -> tuple[int | None, dict[str, str], str, str]:
        """Return what is shown of a tree's counts: how many match, of each line by its id, the funnel, some wallets.

        A stranger's service is asked for the whole alone.
        """
        if not self.client.is_ours:
            known = Provenance.of(self.client.execute_segment(*question, limit=0))
            return known.matched, {}, notes_html(known.notes()), ""
        found = self.client.funnel(*question, sample=FEW)
        steps = found["steps"]
        # Each line by itself, as it is drawn: the service's steps are other parts where it takes groups apart.
        scope = FilterPart("", scope_of(question[0]))
        parts = [*tree.root.walk()][1:]
        alone = (Tree(FilterGroup("all", [replace(part, negated=False)]), scope) for part in parts)
        asked = [Segment(filters.written(each)[0], client=self.client) for each in alone]
        counts = count_common(asked, [[place] for place in range(len(asked))]).counts
        lines = {
            str(part.id): f"{'not ' * part.negated}{count:,}"
            for part, count in zip(parts, counts, strict=True)
        }
        wallets = " ".join(f"<code>{html(one, 42)}</code>" for one in found.get("sample") or ())
        funnel = funnel_html(steps) if len(steps) > 1 else ""
        notes = notes_html(Provenance(warnings=found["warnings"]).notes())
        return steps[-1]["remaining"], lines, funnel + notes, wallets and f"Such as {wallets}"

    def wait(self, asked: Asked) -> None:
        """Stop waiting for a count; or count what is there now, at once."""
        if asked["op"] == "cancel":
            # It may have ended as Cancel was pressed.
            if self.counting.shown["running"]:
                self.background.drop()
                self._show_count("Not counted.", again=True)
        elif not self.missing():
            self._recount(at_once=True)

    def _show_count(self, text: str, *, running: bool = False, again: bool = False) -> None:
        """Show no count, and why; while it is ``running`` the old one, marked. ``again``: it can be asked for."""
        self.matched = None
        old = self.lines.shown["counted"] if running else {}
        if (number := old.get("matched")) is not None:
            text = f"{number:,} before the change. {text}"
        self.counting.show(text=text, state="info", running=running, again=again)
        self.lines.show(counted={**old, "stale": True})
        # Of the conditions that are shown, and of no earlier ones.
        self.sample.value = ""
        # The snapshot is saved with the notebook: "Counting …" in it would stay there for ever.
        if not running:
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
        """Move the focus to the first line of the form with a field that is wrong, or empty and required."""
        wrong = {one["part"] for one in self.errors}
        wrong |= {part for part, _ in fields.missing(self.edits.now, self.grammar)}
        for part in self.edits.now.walk():
            if part.id in wrong:
                self.lines.show(opened=[part.id])
                self.lines.tell({"op": "goto", "goto": part.id, "wrong": True})
                return

    # The cell, and running it

    def _complete(self) -> None:
        """Raise `UsageError` where a field is still to be filled in, and go there."""
        if missing := self.missing():
            self._to_first_error()
            raise UsageError(missing)

    def do_insert(self) -> None:
        """Have the view that asks insert the cell below its own, or else the front end with its next answer."""
        self._complete()
        is_named = not self.name.value.strip() or self.name.checked()
        if not is_named or self._limited(focus=True) is None:
            return
        self.insert(self.insertion, self.cell())
        self.renew()

    def do_run(self, _: Asked | None = None) -> None:
        """Run the query, once; its table goes into the variable."""
        # A double click arrives twice.
        if self._run is not None:
            return
        self._complete()
        name = self.name.name()
        if name is None or (limit := self._limited(focus=True)) is None:
            return
        query = SegmentQuery(*self.question, "json", limit)
        self._run = run = BackgroundSegment(self.client, query, seen=self._progress)
        self.frame = None
        self._show_rows()
        self.say("Running …", running=True, share=None)
        self.runs.schedule(lambda: self._finish(run, name))

    def _progress(self, run: BackgroundSegment, progress: Progress) -> None:
        # One that was cancelled goes on until it has an id.
        if run is not self._run:
            return
        text, share = how_far(progress)
        # Without a share the bar only shows that something goes on.
        self.say(f"{text} …", running=True, share=share)

    def _finish(self, run: BackgroundSegment, name: str) -> Steps:
        query = run.query
        try:
            frame = yield run.result
        except Exception as error:
            self._run = None
            if not isinstance(error, ValidationError):
                raise
            self.say("The service refused this query; the marks above show why.", "bad")
            self.failed(error)
            self._to_first_error()
            return
        self._run = None
        variables()[name] = frame
        if here := session.current_session():
            here.history.add(query, frame)
        self.frame, self._ran = frame, (query.filters, query.operator)
        returned, matched = len(frame), Provenance.of(frame).matched
        of = f" of {matched:,}" if isinstance(matched, int) and matched != returned else ""
        held = f"{returned:,}{of} wallet{'s' * (returned != 1)}"
        self.say(f"{name} holds {held}. nbext.show({name}) shows its card.", "good")
        self._show_rows()
        self.renew()

    def _show_rows(self) -> None:
        """Show the first rows of the last run, and whether the query was changed since it began."""
        old = notes_html([OLD_ROWS] * (self.question != self._ran))
        self.result.value = "" if self.frame is None else old + frame_html(self.frame)

    def cancel(self) -> None:
        """Stop waiting for the run; the service is told as soon as it has named the segment."""
        run = self._run
        if run is None:
            return
        self.runs.drop()
        self._run = None
        self.say("Cancelled.")
        run.cancel()

    def state(self) -> str:
        """Return how many wallets match, or else what is missing or was said."""
        return _match(self.matched) or self.missing() or self.message

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


def _match(count: int | None) -> str:
    words = "wallet matches" if count == 1 else "wallets match"
    return "" if count is None else f"{count:,} {words}."


def segment_form(query: Any = None, *, client: Client | None = None) -> SegmentForm:
    """Return a form that builds a segment, counts it, runs it, and writes the cell that runs it.

    Parameters
    ----------
    query
        What to open: filters or a whole request body, as a dict or as JSON text, or a segment's table.
        `%nbext build` also takes a segment's id, ``history N`` and the name of a saved query.
    client
        The client to use; by default the notebook's.

    Raises
    ------
    ConfigError
        The service publishes no schema of its filters.
    """
    return SegmentForm(notebook_client(client), query)
