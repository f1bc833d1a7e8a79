"""What forms leave in the notebook: variables, and a line in its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from nbext.errors import ConfigError, UsageError
from nbext.notebook import session
from nbext.notebook.cell.request import Query
from nbext.notebook.forms.values import about
from nbext.notebook.results.store import checked_name

if TYPE_CHECKING:
    import pandas as pd


def keep(name: str, value: Any) -> None:
    """Put the value into the notebook's variable of that name.

    Raises
    ------
    UsageError
        The name cannot name a variable, or there is no notebook.
    """
    shell = get_ipython()
    if shell is None:
        raise UsageError("there is no notebook whose variable could be set: this is not IPython.")
    shell.user_ns[checked_name(name)] = value


def note(query: Query, frame: pd.DataFrame) -> None:
    """Note a query that ran in the history of the notebook, where nbext is loaded in it."""
    try:
        here = session.current()
    except ConfigError:
        return
    here.history.add(query, about(frame))
