"""What every form has: title, status, errors, a static snapshot, requests off the main thread; and a variable."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from IPython import display as ipython
from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html, visible
from nbext.embedded import connect
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook import session
from nbext.notebook.forms.markup import lines_html, lines_text
from nbext.notebook.results.deliver import checked_name
from nbext.notebook.views.view import MARKUP, Asked, Box, Button, InputField, Task, View, ViewPart

if TYPE_CHECKING:
    from nbext.client import Client

# IPython annotates these two in part only.
_display: Any = ipython.display
_update_display: Any = ipython.update_display

# What a task asks for at each of its yields.
Steps = Generator[Task, Any, None]
VIEW = "application/vnd.jupyter.widget-view+json"
INSERTED = (
    "The cell appears below the next cell that you run. If none appears, copy it from this form."
)
# So long a terminal waits for a search or a count: it shows no answer that comes later.
PATIENCE = 30.0


class Form(Box):
    """A part with a title and a status line, and beside it a snapshot of its state as HTML (`still_html`) and `text`.

    The snapshot is an output of its own, so that renewing it does not rebuild the live form while somebody types. The
    live form hides it once it is drawn: where it cannot be, and in a notebook that is reopened without a kernel, it
    stays. No snapshot has a key or an e-mail address.
    """

    title = ""
    hint = ""
    # What there is to say of it before anything is said, and what else a terminal prints.
    unsaid = ""
    facts: Sequence[tuple[str, object]] = ()
    _exists = ""

    def __init__(self, client: Any) -> None:
        super().__init__(kind="form")
        self.client = client
        self.on_error = self.failed
        # Held by what changes the form in another thread than the page's messages, and by those that change a lot.
        self.lock = threading.RLock()
        self.background = Background(self.failed, self.lock)
        self._shown = False
        self.message = ""
        self.status = ViewPart("status", self._stop, text="", running=False)

    @cached_property
    def widget(self) -> View:
        """The widget that draws it; where it is inside of another form, that one's draws it."""
        return View(self)

    def assemble(self, *members: ViewPart, wide: bool = False) -> None:
        """Put the form together: its looks, its title, then the given parts."""
        self.members = members
        for part in self.walk():
            part.on_error = part.on_error or self.failed
        classes = f"nbext-box nbext-form{' nbext-wide' * wide}"
        self.show(title=visible(self.title), hint=visible(self.hint, None), classes=classes)

    def say(self, text: str, kind: str = "info", *, running: bool = False, **more: object) -> None:
        """Show lines of status: ``info``, ``good`` or ``bad``; screen readers announce them.

        Of what is ``running`` the page shows for how long already, what takes two seconds can be cancelled, and where a
        ``share`` is given there is a bar.
        """
        self.message = text
        self.status.show(text=lines_text(text), state=kind, running=running, **more)

    def _stop(self, _: Asked) -> None:
        # It may have ended as Cancel was pressed.
        if self.status.shown["running"]:
            self.cancel()

    def cancel(self) -> None:
        """Stop waiting for what runs."""
        self.background.drop()
        self.say("Cancelled.")

    def failed(self, error: Exception) -> None:
        """Show an error inside the form: the one place where all that its callbacks and requests raise ends up."""
        self.say(message_of(error), "bad")
        self.renew()

    def insert(self, button: Button, cell: str, note: str = "") -> None:
        """Have the view whose button was pressed insert a cell below its own; else the next answer does."""
        if not button.asked.get("here"):
            shell: Any = get_ipython()
            shell.set_next_input(cell, replace=False)
            self.say(f"{INSERTED} {note}", "good")
            return
        button.tell({"to": button.asked["from"], "op": "insert", "cell": cell})
        self.say(f"The cell is below this one. {note}", "good")

    def save(self, path: str, write: Callable[[str, bool], str], button: str = "Save") -> None:
        """Write a file, off the main thread, and say what ``write`` returns.

        One that exists is replaced where that was said to be so just before.
        """
        replace, self._exists = path == self._exists, ""
        self.say(f"Saving {path} …")

        def save() -> Steps:
            try:
                said = yield partial(write, path, replace)
            except ValidationError as error:
                if [one["code"] for one in error.errors] != ["exists"]:
                    raise
                self._exists = path
                raise UsageError(
                    f"{path} exists. Press {button} again to replace it, or give another name."
                ) from None
            self.say(said, "good")

        self.background.schedule(save)

    def state(self) -> str:
        """Return the form's state in words."""
        return self.message or self.unsaid or self.hint

    def still_html(self) -> str:
        """Return these words and what its parts show, as HTML."""
        return f"<p>{lines_html(self.state())}</p>{super().still_html()}"

    def printed(self) -> str:
        """Return what a terminal prints below these words."""
        return "\n".join(f"{name}: {visible(value, 2000)}" for name, value in self.facts)

    def magic(self) -> str:
        """Return what to type to have the same without the form, or nothing."""
        return ""

    def text(self) -> str:
        """Return the form's state as text, and what to type to have the same without the form."""
        instead = self.magic() and f"Without the form, type:\n{self.magic()}"
        words = f"{self.title}: {lines_text(self.state())}"
        return "\n".join(filter(None, [words, self.printed(), instead]))

    def renew(self) -> None:
        """Update the static snapshot to the form's present state."""
        if self._shown:
            self._display_snapshot(_update_display)

    def _display_snapshot(self, display: Any) -> None:
        data, metadata = self._snapshot_bundle()
        display(data, metadata=metadata, raw=True, display_id=self.widget.snapshot)

    def _snapshot_bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        own = f"nbext-snapshot {self.widget.snapshot}"
        # With its styles inside: it is what converted notebooks have, and other front ends.
        body = (
            f'<div class="nbext-box {own} mathjax_ignore tex2jax_ignore"><style>{MARKUP}</style>'
            f'<div class="nbext-title">{html(self.title)}</div>{self.still_html()}</div>'
        )
        return {"text/html": body, "text/plain": self.text()}, {}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {
            VIEW: view,
            # On a page of nbconvert's no cell can be run.
            "text/html": "<style>body.jp-Notebook .nbext-unrun { display: none }</style>"
            '<small class="nbext-unrun">(run the cell for the live view)</small>',
            "text/plain": f"{visible(self.title)} (run the cell for the live view)",
        }

    def _ipython_display_(self) -> None:
        # Not imported for this: where the shell is a terminal's, it is loaded.
        terminal = sys.modules.get("IPython.terminal.interactiveshell")
        if terminal and isinstance(get_ipython(), terminal.TerminalInteractiveShell):
            self.background.join(PATIENCE)
            print(self.text())
            return
        _display(self._repr_mimebundle_(), raw=True)
        self._display_snapshot(_display)
        self._shown = True

    def _display_(self) -> View:
        """Return what marimo draws."""
        return self.widget


class Background:
    """Runs the latest task of a form, in a thread of its own; an earlier one is forgotten.

    A task may be a generator. What it yields runs beside the form, and gives the yield its value or its error; all else
    of it runs in turn with what changes the form, and only as long as no later task has taken its place. So what it
    holds open at a yield may never be closed in time: none has a ``finally``.
    What a task raises goes to ``failed``.
    """

    def __init__(self, failed: Callable[[Exception], None], lock: Any = None) -> None:
        self.failed = failed
        self._lock = lock or threading.RLock()
        self._latest: threading.Timer | None = None

    def schedule(self, task: Task, *, after: float = 0.0) -> None:
        """Run the task, in ``after`` seconds, instead of the one before it."""
        with self._lock:
            self.drop()
            mine = threading.Timer(after, lambda: self._run(_steps(task), mine))
            # A daemon: an open form must not hold up the end of the kernel.
            mine.daemon, mine.name = True, "nbext-form"
            mine.start()
            # Only now, as `join` waits for none that has not begun; it runs on once this lock is free.
            self._latest = mine

    def drop(self) -> None:
        """Forget the task that waits or runs, if any: nobody wants its answer."""
        with self._lock:
            if self._latest is not None:
                self._latest.cancel()
            self._latest = None

    def join(self, timeout: float) -> bool:
        """Wait until the latest task has ended; return whether that happened in time."""
        thread = self._latest
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self, steps: Steps, mine: threading.Timer) -> None:
        go_on: Task = partial(next, steps)
        while True:
            with self._lock:
                if self._latest is not mine:
                    return
                try:
                    work: Any = go_on()
                except StopIteration:
                    return
                except Exception as error:  # noqa: BLE001  the edge of a thread: the form shows it
                    self.failed(error)
                    return
            try:
                go_on = partial(steps.send, work())
            except Exception as error:  # noqa: BLE001  whatever it is, the task gets it
                go_on = partial(steps.throw, error)


def _steps(task: Task) -> Steps:
    made = task()
    if isinstance(made, Generator):
        yield from made


class Variable(InputField):
    """The field that names the notebook's variable for a result. What else it holds is replaced when asked twice."""

    def __init__(self, name: str, **more: Any) -> None:
        super().__init__("Variable", name, **more)
        self.show(hidden=get_ipython() is None)
        # Of the last warning: the name, and what it held.
        self._warned: tuple[str, Any] = ("", None)

    def type(self, value: Any, by: object = None) -> None:
        """Take another name."""
        self.error = ""
        super().type(value, by)

    def checked(self) -> str | None:
        """Return the name, as Python reads it; None where a variable may not have it, and then the field says why."""
        try:
            return checked_name(self.value.strip(), variables())
        except UsageError as error:
            self._say(str(error))
            return None

    def name(self) -> str | None:
        """Return the name to write to; None where the field says why not.

        That of another value than a table of nbext is refused when it is first asked for. In marimo, whose cells alone
        set variables, the form has the result.
        """
        if get_ipython() is None:
            return "form.frame"
        name, known = self.checked(), variables()
        if name is None:
            return None
        warned, before = self._warned
        held = known.get(name)
        said = warned == name and before is held
        if name in known and not said and not Provenance.of(held):
            self._warned = (name, held)
            kind = visible(type(held).__name__)
            self._say(f"{name} holds a value already (type {kind}). Press again to replace it.")
            return None
        self._say("")
        return name

    def _say(self, error: str) -> None:
        self.error = error
        if error:
            self.focus()


def notebook_client(given: Client | None) -> Client:
    """Return the given client, the notebook's, or a new one where nbext is loaded in no notebook."""
    if given is not None:
        return given
    here = session.current_session()
    return here.connected() if here else connect()


def variables() -> dict[str, Any]:
    """Return the notebook's variables; none where there is no IPython."""
    names: dict[str, Any] = getattr(get_ipython(), "user_ns", {})
    return names


def has_cells() -> bool:
    """Return whether a cell of ours can be inserted: Voila has no cells, and those of marimo have no magics."""
    return get_ipython() is not None and "VOILA_REQUEST_URL" not in os.environ


def what_is_wrong(check: Callable[[str], object], text: str) -> str:
    """Return why a check refuses the text of a field, or an empty text."""
    try:
        check(text)
    except ValidationError as error:
        return error.errors[0]["detail"]
    return ""


def message_of(error: Exception) -> str:
    """Return an error as a person reads it: ours by its message, others with their type before it."""
    return str(error) if isinstance(error, NbextError) else f"{type(error).__name__}: {error}"
