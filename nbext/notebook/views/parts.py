"""What forms are made of: text, fields, buttons, and groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nbext.core.untrusted_text import visible
from nbext.notebook.views.view import Asked, ViewPart

# A service's error may be long.
MAX_MESSAGE = 500


class Box(ViewPart):
    """Parts one below the other, or side by side where it is a row."""

    def __init__(self, *members: ViewPart, kind: str = "group", classes: str = "") -> None:
        super().__init__(kind, classes=classes)
        self.members = members


def row(*members: ViewPart, classes: str = "") -> Box:
    """Return the parts side by side; they wrap where there is no room."""
    return Box(*members, classes=f"nbext-row {classes}".strip())


class Markup(ViewPart):
    """HTML: our own words, and a stranger's only after `html`."""

    def __init__(self, value: str = "", classes: str = "") -> None:
        super().__init__("html", value=value, classes=classes)

    @property
    def value(self) -> str:
        """What it shows."""
        return str(self.shown["value"])

    @value.setter
    def value(self, value: str) -> None:
        self.show(value=value)


class Button(ViewPart):
    """A button; of two clicks in a row ``act`` gets both."""

    def __init__(
        self, label: str, act: Callable[[], object], *, classes: str = "", tip: str = ""
    ) -> None:
        super().__init__("button", label=label, classes=classes, tip=tip, disabled=False)
        self._act = act

    def press(self) -> None:
        """Do what it is for."""
        if not self.shown["disabled"]:
            self.attempt(self._act)

    def obey(self, asked: Asked) -> None:
        """Take a click."""
        self.press()


class InputField(ViewPart):
    """A text, a choice or a check box with its label, and below it help or what is wrong with it.

    ``label`` and ``help`` are our own words; ``choices`` are pairs of what is shown and the value. More may be given:
    ``help``, ``placeholder``, and whether it is ``required``.
    """

    def __init__(
        self,
        label: str,
        value: Any = "",
        *,
        choices: Iterable[tuple[str, str]] = (),
        width: str = "180px",
        **more: Any,
    ) -> None:
        given = {"label": label, "value": value, "choices": list(choices), "width": width}
        super().__init__("field", error="", **given, **more)
        self._seen: list[Callable[[], object]] = []
        self._enter: Callable[[], object] | None = None

    @property
    def value(self) -> Any:
        """What is typed or chosen."""
        return self.shown["value"]

    @property
    def error(self) -> str:
        """What is wrong with it, or an empty text."""
        return str(self.shown["error"])

    @error.setter
    def error(self, text: str) -> None:
        self.show(error=visible(text, MAX_MESSAGE))

    def changed(self, seen: Callable[[], object]) -> InputField:
        """Call ``seen``, too, after every new value; return the field."""
        self._seen.append(seen)
        return self

    def entered(self, pressed: Callable[[], object]) -> InputField:
        """Call ``pressed`` when Enter is pressed in it; return the field."""
        self._enter = pressed
        return self

    def type(self, value: Any, by: object = None) -> None:
        """Take what was typed or chosen."""
        if value != self.value:
            self.show(value=value, by=by)
            for seen in self._seen:
                self.attempt(seen)

    def enter(self) -> None:
        """Take Enter."""
        if self._enter is not None:
            self.attempt(self._enter)

    def focus(self) -> None:
        """Move the focus to it, in the views where its form has it."""
        self.tell({"op": "focus"})

    def obey(self, asked: Asked) -> None:
        """Take what a view says was typed, and Enter."""
        if asked.get("op") == "enter":
            self.enter()
        elif type(asked.get("value")) is type(self.value):
            self.type(asked["value"], asked.get("from"))
