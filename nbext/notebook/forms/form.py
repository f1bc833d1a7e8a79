"""What every form has: a title, a status line, errors shown inside, a static snapshot, requests off the main thread."""

from __future__ import annotations

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets as w
from anywidget import AnyWidget
from IPython import display as ipython

from nbext.core.untrusted_text import html, visible
from nbext.errors import NbextError
from nbext.notebook.forms.widgets import lines_html, markup
from nbext.notebook.results.progress import in_background

# IPython annotates these two in part only.
_display: Any = ipython.display
_update_display: Any = ipython.update_display


def text_beside(module: str, name: str) -> str:
    """Return the text of a file in the folder of a module, such as the script or the style of its page."""
    return Path(module).with_name(name).read_text("utf-8")


VIEW = "application/vnd.jupyter.widget-view+json"
CSS = text_beside(__file__, "style.css")
# On one line and without its comment: each snapshot in a notebook holds it.
TWIN = " ".join(text_beside(__file__, "twin.css").partition("*/")[2].split())
# Front ends hold the last keys back while an earlier one is under way, but not a click or Enter: what reads typed
# text waits this long for it.
SETTLE = 0.4
# A thread without work ends after this many seconds; the next request starts another. A form that stands open all
# day would otherwise hold its threads all day.
IDLE = 30.0
Task = Callable[[], None]


class Access(AnyWidget):
    """What a form's widgets leave out for screen readers, and where the focus goes when a button is switched off."""

    _esm = text_beside(__file__, "access.js")


@dataclass(frozen=True)
class Snapshot:
    """A form's state as HTML and as plain text: what a notebook shows where no kernel runs."""

    html: str
    text: str


class Form(ABC):
    """A box of widgets, and beside it a snapshot of its state as HTML and text.

    The snapshot is an output of its own, so that renewing it does not rebuild the live form while somebody types.
    CSS in the live form hides it; in a notebook that is reopened without a kernel there is no live form to hide it.
    """

    title = ""
    hint = ""

    def __init__(self, client: Any) -> None:
        self.client = client
        # Two threads: what waits for the last keys must not replace, or wait for, a request under way.
        self.background = Background(self.failed)
        self.typed = Background(self.failed)
        self._display_id = f"nbext-snapshot-{secrets.token_hex(6)}"
        self._shown = False
        self.message = ""
        self.status = markup(classes="nbext-status")
        self.widget: w.VBox = w.VBox(_dom_classes=("nbext-form",))

    def assemble(self, *children: w.Widget) -> None:
        """Put the form together: its looks, its title, then the given widgets."""
        own = self._display_id
        # The rule that hides the snapshot is part of the live form, so it goes when the form goes.
        hiding = f".{own} {{ display: none }} .jp-OutputArea-child:has(.{own}) {{ display: none }}"
        head = markup(
            f'<style>{CSS}{hiding}</style><div class="nbext-title" role="heading" aria-level="2">'
            f'{html(self.title)}</div><div class="nbext-note nbext-hint">{html(self.hint, None)}</div>'
        )
        self.widget.children = (head, Access(_dom_classes=("nbext-hidden",)), *children)

    def say(self, text: str, kind: str = "info") -> None:
        """Show a line of status: ``info``, ``good`` or ``bad``. Screen readers announce it."""
        self.message = text
        role = "alert" if kind == "bad" else "status"
        self.status.value = (
            f'<div class="nbext-{kind}" role="{role}">{lines_html(text)}</div>' if text else ""
        )

    def failed(self, error: Exception) -> None:
        """Show an error inside the form: the one place where all that its callbacks and requests raise ends up."""
        self.say(message_of(error), "bad")
        self.renew()

    def guarded(self, act: Task) -> Callable[..., None]:
        """Return a widget's callback that shows in the form whatever ``act`` raises."""
        return lambda *_: attempt(act, self.failed)

    def once_typed(self, act: Task) -> Callable[..., None]:
        """Return a widget's callback that runs ``act`` once the keys typed before it have arrived, too."""
        return lambda *_: self.typed.schedule(act, after=SETTLE)

    def obey(self, page: AnyWidget, do: Callable[[Mapping[str, Any]], None]) -> None:
        """Do what the messages of a page ask for."""
        page.on_msg(lambda _, asked, __: attempt(lambda: do(asked), self.failed))

    def drop_request(self) -> None:
        """Forget the request that waits; the next one does not wait for one under way, whose answer nobody wants."""
        self.background.drop()
        if not self.background.join(0):
            self.background = Background(self.failed)

    def each_second(self, tell: Callable[[float], bool]) -> None:
        """Call ``tell`` each second with how many have passed, in a thread of its own, until it returns False."""
        began = time.monotonic()

        def run() -> None:
            while tell(time.monotonic() - began):
                time.sleep(1)

        in_background(run, "nbext-elapsed")

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the form's state, without any key or e-mail address."""

    def renew(self) -> None:
        """Update the static snapshot to the form's present state."""
        if self._shown:
            _update_display(self._snapshot_bundle(), raw=True, display_id=self._display_id)

    def _snapshot_bundle(self) -> dict[str, str]:
        made = self.snapshot()
        # With its styles inside: it is what converted notebooks have, and other front ends.
        body = (
            f'<div class="nbext-snapshot {self._display_id} mathjax_ignore tex2jax_ignore"><style>{TWIN}</style>'
            f'<div class="nbext-title">{html(self.title)}</div>{made.html}</div>'
        )
        return {"text/html": body, "text/plain": made.text}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {
            VIEW: view,
            "text/html": f"<b>{html(self.title)}</b> <small>(run the cell for the live form)</small>",
            "text/plain": f"{visible(self.title)} (run the cell for the live form)",
        }

    def _ipython_display_(self) -> None:
        _display(self._repr_mimebundle_(), raw=True)
        _display(self._snapshot_bundle(), raw=True, display_id=self._display_id)
        self._shown = True


class Background:
    """Runs one task at a time in a thread of its own.

    A task that waits (for the one before it, or for its delay) is replaced by the next one: typing fast, or a slow
    service, never queues requests. What a task raises goes to ``failed``.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
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
                while self._waiting is None or self._waiting[0] > time.monotonic():
                    left = self._waiting[0] - time.monotonic() if self._waiting else IDLE
                    if not self._changed.wait(left) and self._waiting is None:
                        # Under the lock: a task that is asked for from here on starts a thread.
                        self._thread = None
                        return
                (_, task), self._waiting, self._running = self._waiting, None, True
            attempt(task, self._failed)


def attempt(task: Task, failed: Callable[[Exception], None]) -> None:
    """Run a task; hand what it raises to ``failed``."""
    # The edge of a form. What a widget's callback raises is shown nowhere by some front ends, and would end a
    # background thread with its next requests unheard.
    try:
        task()
    except Exception as error:  # noqa: BLE001  the edge of a widget: what it catches is shown in the form
        failed(error)


def message_of(error: Exception) -> str:
    """Return an error as a person reads it: ours by its message, others with their type before it."""
    return str(error) if isinstance(error, NbextError) else f"{type(error).__name__}: {error}"
