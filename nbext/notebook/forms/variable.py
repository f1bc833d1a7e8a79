"""The notebook's variable for a result, and its other variables."""

from __future__ import annotations

from typing import Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError
from nbext.notebook.results.deliver import checked_name
from nbext.notebook.views.view import InputField


class Variable(InputField):
    """The field that names the notebook's variable for a result. What else it holds is replaced when asked twice."""

    def __init__(self, name: str) -> None:
        super().__init__("Variable", name)
        self.changed(lambda: self._say(""))
        self.show(hidden=get_ipython() is None)
        # Of the last warning: the name, and what it held.
        self._warned: tuple[str, Any] = ("", None)

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
            kind = type(held).__name__
            self._say(
                f"{name} holds a value already (type {visible(kind)}). Press again to replace it."
            )
            return None
        self._say("")
        return name

    def _say(self, error: str) -> None:
        self.error = error
        if error:
            self.focus()


def variables() -> dict[str, Any]:
    """Return the notebook's variables; none where there is no IPython."""
    names: dict[str, Any] = getattr(get_ipython(), "user_ns", {})
    return names
