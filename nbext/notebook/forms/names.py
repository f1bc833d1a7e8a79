"""The names of variables that forms put results into."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

from IPython.core.getipython import get_ipython

from nbext.errors import UsageError

_TAKEN_BY_IPYTHON = {"In", "Out", "exit", "quit", "get_ipython"}


def checked_name(text: str) -> str:
    """Return the name, or raise UsageError: not an identifier, a keyword, or a name of Python or IPython itself."""
    name = text.strip()
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"{name[:60]!r} is not a variable's name. Letters, digits and _ are allowed, no digit first.")
    if name.startswith("__") or hasattr(builtins, name) or name in _TAKEN_BY_IPYTHON:
        raise UsageError(f"{name!r} belongs to Python or IPython. Choose another name, such as {name.strip('_')}_df.")
    return name


def keep(name: str, value: Any) -> None:
    """Put the value into the notebook's variable of that name."""
    shell = get_ipython()
    if shell is None:
        raise UsageError("there is no notebook whose variable could be set: this is not IPython.")
    shell.user_ns[checked_name(name)] = value
