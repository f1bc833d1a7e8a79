"""One call of the client from a cell: a bar while it runs, and Ctrl-C that ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nbext.errors import QueryCancelled
from nbext.notebook.results.progress import Bar, View

Result = TypeVar("Result")


def call(run: Callable[[Bar], Result], *, label: str, view: View) -> Result:
    """Run one call.

    Raises
    ------
    QueryCancelled
        It was interrupted. The client has closed the connection and told our own service to stop.
    """
    try:
        with Bar(label, view) as bar:
            return run(bar)
    except KeyboardInterrupt:
        pass
    # Raised outside the except block: nothing of the call's frames hangs on our error.
    raise QueryCancelled(f"{label}: interrupted.")
