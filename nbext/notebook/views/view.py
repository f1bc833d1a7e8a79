"""The one widget of all views, whose saved state is a digest and a name; and what forms are made of."""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import traitlets
from anywidget import AnyWidget

from nbext.core.untrusted_text import visible


def view_file(name: str) -> str:
    """Return the text of one of the page's files."""
    return Path(__file__).with_name(name).read_text("utf-8")


def script_of(*names: str) -> str:
    """Return modules as one, which loads none; they are named in the order of their imports."""
    return re.sub(r"(?m)^import .*\n", "", "\n".join(map(view_file, names)))


# The last one has what the loader calls.
SCRIPT = script_of(
    "dom.js",
    "link.js",
    "numbers.js",
    "form.js",
    "picker.js",
    "line.js",
    "lines.js",
    "histogram.js",
    "table.js",
    "chart.js",
    "app.js",
)
# Of this the snapshot in a notebook holds a copy: on one line and without its comment.
MARKUP = " ".join(view_file("markup.css").partition("*/")[2].split())
STYLE = MARKUP + view_file("style.css")
_DIGEST = hashlib.sha256((SCRIPT + STYLE).encode()).hexdigest()[:12]
_ids = itertools.count(1)
# A service's error may be long.
MAX_MESSAGE = 500
Task = Callable[[], object]
Asked = Mapping[str, Any]


class View(AnyWidget):
    """Draws a part, with all those in it, wherever it is shown.

    A saved notebook has the state of every widget: this one's names the code, and nothing that it shows or that
    anybody typed.
    """

    _esm = view_file("loader.js")
    digest = traitlets.Unicode(_DIGEST).tag(sync=True)
    snapshot = traitlets.Unicode().tag(sync=True)

    def __init__(self, root: ViewPart) -> None:
        super().__init__(snapshot=f"nbext-snapshot-{secrets.token_hex(6)}")
        self.root = root
        self.on_msg(self._heard)

    def _heard(self, _: Any, asked: Asked, __: Any) -> None:
        op, to = asked.get("op"), asked.get("from")
        if op == "code":
            self.send({"op": "code", "script": SCRIPT, "css": STYLE})
            return
        # First of all: where this does not come within a second, the page says that a cell is running.
        self.send({"op": "heard", "number": asked.get("number"), "to": to})
        if op == "begin":
            self.send({"op": "draw", "to": to, "root": self.root.drawn(self)})
            return
        for part in self.root.walk():
            if part.id == asked.get("part"):
                attempt(partial(part.obey, asked), part.on_error)


class ViewPart:
    """One thing that a page draws: ``shown`` is what of it, ``do`` takes what is done in it, a message each."""

    def __init__(
        self, kind: str, do: Callable[[Asked], object] | None = None, **shown: Any
    ) -> None:
        self._kind, self.shown, self.id = kind, shown, next(_ids)
        self._do = do
        self._view: View | None = None
        self.members: Sequence[ViewPart] = ()
        self.on_error: Callable[[Exception], None] | None = None

    @property
    def value(self) -> Any:
        """What it shows, or what is typed or chosen in it."""
        return self.shown["value"]

    @value.setter
    def value(self, value: Any) -> None:
        self.show(value=value)

    def walk(self) -> Iterator[ViewPart]:
        """Yield the part and all those in it."""
        yield self
        for member in self.members:
            yield from member.walk()

    def drawn(self, view: View) -> dict[str, Any]:
        """Return all that a page needs to draw it; what changes from now on goes to this widget."""
        self._view = view
        members = [member.drawn(view) for member in self.members]
        return {"id": self.id, "kind": self._kind, "members": members, **self.shown}

    def show(self, *, by: object = None, **changes: Any) -> None:
        """Show something else; not in the view ``by``, which shows it already."""
        held = self.shown
        fresh = {k: v for k, v in changes.items() if k not in held or held[k] != v}
        if fresh:
            self.shown |= fresh
            self.tell({"op": "show", "by": by, "changes": fresh})

    def still_html(self) -> str:
        """Return as HTML what of it a notebook shows where no kernel runs."""
        return ""

    def fill(self, *members: ViewPart) -> None:
        """Have other parts inside of it."""
        self.members = members
        if self._view is not None:
            inside = [member.drawn(self._view) for member in members]
            self.tell({"op": "show", "changes": {"members": inside}})

    def tell(self, message: Asked) -> None:
        """Send the views a message of this part; one with ``to`` is for that view alone."""
        if self._view is not None:
            self._view.send({"part": self.id, **message})

    def answer(self, asked: Asked, **answer: Any) -> None:
        """Answer the question that a view asked."""
        about = {"op": "answer", "to": asked.get("from"), "number": asked.get("number")}
        self.tell({**answer, **about})

    def obey(self, asked: Asked) -> None:
        """Do what a view asks for."""
        if self._do is not None:
            self._do(asked)


class Box(ViewPart):
    """Parts one below the other, or side by side where it is a row."""

    def __init__(self, *members: ViewPart, kind: str = "group", classes: str = "") -> None:
        super().__init__(kind, classes=classes)
        self.members = members

    def still_html(self) -> str:
        """Return what the parts show, one below the other."""
        return "".join(member.still_html() for member in self.members)


def row(*members: ViewPart, classes: str = "") -> Box:
    """Return the parts side by side; they wrap where there is no room."""
    return Box(*members, classes=f"nbext-row {classes}".strip())


class Markup(ViewPart):
    """HTML: our own words, and a stranger's only after `html`. Of its buttons ``do`` gets the ``data-at``."""

    def __init__(
        self, value: str = "", classes: str = "", do: Callable[[Asked], object] | None = None
    ) -> None:
        super().__init__("html", do, value=value, classes=classes)

    def still_html(self) -> str:
        """Return what it shows, without its buttons."""
        return re.sub("</?button[^>]*>", "", self.value)


class Button(ViewPart):
    """A button; of two clicks in a row ``act`` gets both."""

    def __init__(
        self, label: str, act: Callable[[], object], *, classes: str = "", tip: str = ""
    ) -> None:
        super().__init__("button", label=label, classes=classes, tip=tip, disabled=False)
        self._act = act
        # Of the last click: which view it was in, and whether that can insert cells.
        self.asked: Asked = {}

    def press(self) -> None:
        """Do what it is for."""
        if not self.shown["disabled"]:
            attempt(self._act, self.on_error)

    def obey(self, asked: Asked) -> None:
        """Take a click."""
        self.asked = asked
        self.press()


class InputField(ViewPart):
    """A text, a choice or a check box with its label, and below it help or what is wrong with it.

    ``label`` and ``help`` are our own words; ``choices`` are pairs of a value and what is shown. ``changed`` is called
    after every new value, and ``entered`` when Enter is pressed. More may be given:
    ``help``, ``examples`` that an empty input shows, whether it is ``required``, and the ``shape`` code, of many lines.
    """

    def __init__(
        self,
        label: str,
        value: Any = "",
        *,
        choices: Iterable[tuple[str, str]] = (),
        width: str = "190px",
        changed: Task = lambda: None,
        entered: Task = lambda: None,
        **more: Any,
    ) -> None:
        given = {"label": label, "value": value, "choices": list(choices), "width": width}
        super().__init__("field", error="", **given, **more)
        self._changed, self._entered = changed, entered

    @property
    def error(self) -> str:
        """What is wrong with it, or an empty text."""
        return str(self.shown["error"])

    @error.setter
    def error(self, text: str) -> None:
        self.show(error=visible(text, MAX_MESSAGE))

    def type(self, value: Any, by: object = None) -> None:
        """Take what was typed or chosen."""
        if value != self.value:
            # Code is laid out anew for the view that typed it, too: there it must not stand for what was typed since.
            self.show(value=value, by=None if self.shown.get("shape") == "code" else by)
            attempt(self._changed, self.on_error)

    def enter(self) -> None:
        """Take Enter."""
        attempt(self._entered, self.on_error)

    def focus(self) -> None:
        """Move the focus to it, in the views where its form has it."""
        self.tell({"op": "focus"})

    def obey(self, asked: Asked) -> None:
        """Take what a view says was typed, and Enter."""
        if asked.get("op") == "enter":
            self.enter()
        elif type(asked.get("value")) is type(self.value):
            self.type(asked["value"], asked.get("from"))


def attempt(task: Task, failed: Callable[[Exception], None] | None) -> None:
    """Run a task; hand what it raises to ``failed``."""
    # The edge of a form. What a widget's callback raises is shown nowhere by some front ends, and would end a
    # background thread with its next requests unheard.
    try:
        task()
    except Exception as error:
        if failed is None:
            raise
        failed(error)
