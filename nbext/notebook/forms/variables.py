"""The notebook's variables that forms put results into."""

from __future__ import annotations

from typing import Any

from IPython.core.getipython import get_ipython

from nbext.errors import UsageError
from nbext.notebook.store import checked_name


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
