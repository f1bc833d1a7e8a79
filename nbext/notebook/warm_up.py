"""What the first call would wait for, done in the background once ``%load_ext`` has returned.

One thread imports the libraries, starts the embedded service, has it prepare a segment, and learns the words that
completion offers. It prints nothing. What fails here fails again in the first call, which reports it.

Three hazards of such a thread are met here: a library that looks at who imports it (`_import_pandas`), a fork while a
module is being imported (`_settle`), and Python that ends meanwhile (`WarmUp._is_wanted`).
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING

from nbext.notebook.threads import in_background
from nbext.settings import Settings

if TYPE_CHECKING:
    from nbext.client import Client

# The longest that a first call, or a fork, waits: on a busy machine the libraries take ten seconds to import.
_PATIENCE = 30.0
# How long a call that came before its service takes from there to its answer, on a busy machine.
_CALL_SECONDS = 1.0
# What pandas itself chooses for a notebook.
_COLUMNS_IN_A_NOTEBOOK = 20
# Any condition does: what takes time is the language, the engine and their first statement.
_A_SEGMENT = {"wallet": {"contract": False}}
_under_way: set[Future[None]] = set()


class WarmUp:
    """The warm-up of one session; ``learn`` is given a client of the embedded service once that answers."""

    def __init__(self, shell: object, settings: Settings, learn: Callable[[Client], None]) -> None:
        self._shell, self._settings, self._learn = shell, settings, learn
        self._ready, self._cancelled, self._is_awaited = threading.Event(), False, False
        self._client: Client | None = None
        # No daemon: Python ends after its work.
        future = in_background(self._run, "nbext-warm-up", daemon=False)
        _under_way.add(future)
        future.add_done_callback(_under_way.discard)
        future.add_done_callback(lambda _: self._ready.set())

    def wait(self) -> None:
        """Return once the service has started, or cannot: importing the same modules beside it would gain nothing."""
        self._is_awaited = True
        self._ready.wait(_PATIENCE)

    def cancel(self) -> None:
        """Skip the steps that have not begun."""
        self._cancelled = True

    def _run(self) -> None:
        # A quarter of the time to import these libraries is spent looking for garbage in what they have just made.
        collecting = gc.isenabled()
        gc.disable()
        try:
            if self._is_wanted():
                _import_pandas(self._shell)
                import nbext.connect

                _ = nbext.connect
            if self._is_wanted():
                self._start()
            if self._is_wanted():
                self._ask()
        finally:
            if collecting:
                gc.enable()

    def _is_wanted(self) -> bool:
        # The main thread counts as ended as soon as Python begins to end, which then waits for the step under way.
        return not self._cancelled and threading.main_thread().is_alive()

    def _start(self) -> None:
        # A remote service is not ours to wake, and a cluster's engine is asked when somebody asks it.
        if self._settings["base_url"] or not self._settings["engine"].startswith("duckdb"):
            return
        from nbext.connect import connect

        self._client = connect(settings=self._settings)
        self._ready.set()

    def _ask(self) -> None:
        # Python runs one thread at a time: what is prepared beside the call that waits makes it wait longer.
        until = time.monotonic() + (_CALL_SECONDS if self._is_awaited else 0)
        while time.monotonic() < until and self._is_wanted():
            time.sleep(0.05)
        if self._client is not None and self._is_wanted():
            self._learn(self._client)
            self._client.explain(_A_SEGMENT, limit=1)


def _import_pandas(shell: object) -> None:
    """Import pandas so that it displays tables as it does where a cell imports it."""
    if "pandas" in sys.modules:
        return
    import pandas as pd

    # pandas looks for get_ipython among the builtins, where IPython has it only while a cell runs. Imported between two
    # cells it takes the kernel for a terminal, and cuts the columns of every table to that width.
    if hasattr(shell, "kernel") and pd.get_option("display.max_columns") == 0:
        pd.set_option("display.max_columns", _COLUMNS_IN_A_NOTEBOOK)


def _settle() -> None:
    """Wait for the imports under way: a forked child would wait for ever for a thread that it does not have."""
    wait_for(list(_under_way), _PATIENCE)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_settle, after_in_child=_under_way.clear)
