"""What every form has: a title, a status line, errors shown inside, a static snapshot, requests off the main thread."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from IPython import display as ipython
from IPython.core.getipython import get_ipython

from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError, ValidationError
from nbext.notebook.forms.markup import lines_html, lines_text
from nbext.notebook.views.view import MARKUP, Asked, Box, Task, View, ViewPart, attempt

# IPython annotates these two in part only.
_display: Any = ipython.display
_update_display: Any = ipython.update_display

VIEW = "application/vnd.jupyter.widget-view+json"
INSERTED = (
    "The cell appears below the next cell that you run. If none appears, click the text of the cell in this form "
    "and copy it."
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

    def __init__(self, client: Any) -> None:
        super().__init__(kind="form")
        self.client = client
        self.on_error = self.failed
        self.background = Background(self.failed)
        self._shown = False
        self.message = ""
        self.status = ViewPart("status", text="", state="info", running=False)

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

    def say(self, text: str, kind: str = "info", *, running: bool = False) -> None:
        """Show lines of status: ``info``, ``good`` or ``bad``; screen readers announce them.

        Of what is ``running`` the page shows for how long already.
        """
        self.message = text
        self.status.show(text=lines_text(text), state=kind, running=running)

    def failed(self, error: Exception) -> None:
        """Show an error inside the form: the one place where all that its callbacks and requests raise ends up."""
        self.say(message_of(error), "bad")
        self.renew()

    def insert(self, part: ViewPart, cell: str, asked: Asked, note: str = "") -> bool:
        """Have the view of a part that asks insert a cell below its own; where it cannot, the next answer does."""
        if not asked.get("here"):
            shell: Any = get_ipython()
            shell.set_next_input(cell, replace=False)
            self.say(f"{INSERTED} {note}", "good")
            return False
        part.tell({"to": asked["from"], "op": "insert", "cell": cell})
        self.say(f"The cell is below this one. {note}", "good")
        return True

    def drop_request(self) -> None:
        """Forget the request that waits; the next one does not wait for one under way, whose answer nobody wants."""
        self.background.drop()
        if not self.background.join(0):
            self.background.failed = lambda _: None
            self.background = Background(self.failed)

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
            "text/html": "<small>(run the cell for the live view)</small>",
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
    """Runs one task at a time in a thread of its own, which ends when none waits.

    A task that waits (for the one before it, or for its delay) is replaced by the next one: typing fast, or a slow
    service, never queues requests. What a task raises goes to ``failed``.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.failed = failed
        self._changed = threading.Condition()
        self._waiting: tuple[float, Task] | None = None
        self._running = False
        self._thread: threading.Thread | None = None

    def schedule(self, task: Task, *, after: float = 0.0) -> None:
        """Run the task, in ``after`` seconds at the earliest, instead of any that still waits."""
        with self._changed:
            self._waiting = (time.monotonic() + after, task)
            if self._thread is None:
                # A daemon: an open form must not hold up the end of the kernel.
                self._thread = threading.Thread(target=self._work, daemon=True, name="nbext-form")
                self._thread.start()
            self._changed.notify_all()

    def hurry(self) -> None:
        """Let the task that waits for its delay, if any, run now."""
        with self._changed:
            if self._waiting is not None:
                self._waiting = (0.0, self._waiting[1])
                self._changed.notify_all()

    def drop(self) -> None:
        """Forget the task that waits, if any."""
        with self._changed:
            self._waiting = None
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Wait until nothing waits or runs; return whether that happened in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._waiting is None and not self._running, timeout
            )

    def _work(self) -> None:
        while True:
            with self._changed:
                self._running = False
                self._changed.notify_all()
                # A loop, as a wait may end early, and as a newer task may come with a later time.
                while self._waiting and (left := self._waiting[0] - time.monotonic()) > 0:
                    self._changed.wait(left)
                if self._waiting is None:
                    # Under the lock: a task that is asked for from here on starts a thread.
                    self._thread = None
                    return
                (_, task), self._waiting, self._running = self._waiting, None, True
            attempt(task, self._report)

    def _report(self, error: Exception) -> None:
        self.failed(error)


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
