"""nbext: wallet segments and chain metadata in a notebook.

The house has five rooms, in the order in which a query walks through them:

    notebook/   magics, completion, display, forms          knows IPython and ipywidgets; knows no URL
    client/     one method per operation -> DataFrame        knows HTTP and pandas; knows no notebook
      ~ HTTP ~  the eight operations
    service/    eight routes, keys, limits, saved segments   knows FastAPI; knows no SQL
    segment/    the filter language: fields, parse, compile  knows Ibis expressions; knows no engine
    engine/     ingest, tables, run: DuckDB, Spark, ...      knows data; knows no HTTP

All rooms see ``errors`` (one tree), ``settings`` (each value and its source) and ``wire`` (the shapes of
the eight operations). Three doors join rooms: ``connect`` (a client for whichever service is set),
``embedded`` (starts our own service on loopback) and ``cli`` (the ``nbext`` command).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.client import Client
    from nbext.connect import connect
    from nbext.notebook.forms import search_form, segment_form, show, signup_form
    from nbext.notebook.results.units import to_units

__version__ = "0.1.0"
__all__ = ["Client", "connect", "search_form", "segment_form", "show", "signup_form", "to_units"]

# Public names are imported when first used: `import nbext` and `%load_ext nbext` stay light.
_HOMES = {
    "Client": "nbext.client",
    "connect": "nbext.connect",
    "search_form": "nbext.notebook.forms",
    "segment_form": "nbext.notebook.forms",
    "show": "nbext.notebook.forms",
    "signup_form": "nbext.notebook.forms",
    "to_units": "nbext.notebook.results.units",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nbext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics: ``%load_ext nbext``."""
    from nbext.notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics away again: ``%unload_ext nbext``."""
    from nbext.notebook import extension

    extension.unload(shell)
