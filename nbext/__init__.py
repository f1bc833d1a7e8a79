"""Ask in a notebook which wallets hold, held or moved what, and go on in pandas.

In a notebook::

    %load_ext nbext
    %token ethereum USDC
    %nft search "bored ape"

    %%segment_query whales --limit 1000
    {"token": {"token": "UNI", "balance": {"min": "1000"}}, "not": {"nft": {"nft": "BAYC"}}}

``%nbext help`` lists the magics, ``%%segment_query?`` shows the options of one with examples.

In Python::

    import nbext

    client = nbext.connect()
    whales = client.execute_segment({"nft": {"nft": "BAYC"}}, limit=1000)

Without a ``base_url`` nbext starts its own service on this machine, over a synthetic sample or the data that
``nbext ingest`` read. ``%nbext set base_url https://...`` and ``%nbext login`` choose another service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.analysis.changes import changes
    from nbext.analysis.concentration import concentration
    from nbext.analysis.funnel import funnel
    from nbext.analysis.overlap import overlap
    from nbext.analysis.profile import profile
    from nbext.analysis.retention import retention
    from nbext.analysis.trend import trend
    from nbext.analysis.wallet import wallet
    from nbext.client import Client
    from nbext.connect import connect
    from nbext.notebook.forms import explore, search_form, segment_form, show, signup_form

__version__ = "0.1.0"
__all__ = [
    "Client",
    "changes",
    "concentration",
    "connect",
    "explore",
    "funnel",
    "overlap",
    "profile",
    "retention",
    "search_form",
    "segment_form",
    "show",
    "signup_form",
    "trend",
    "wallet",
]

# Public names are imported when first used: `import nbext` and `%load_ext nbext` stay light.
_HOMES = {
    "Client": "nbext.client",
    "changes": "nbext.analysis",
    "concentration": "nbext.analysis",
    "connect": "nbext.connect",
    "explore": "nbext.notebook.forms",
    "funnel": "nbext.analysis",
    "overlap": "nbext.analysis",
    "profile": "nbext.analysis",
    "retention": "nbext.analysis",
    "search_form": "nbext.notebook.forms",
    "segment_form": "nbext.notebook.forms",
    "show": "nbext.notebook.forms",
    "signup_form": "nbext.notebook.forms",
    "trend": "nbext.analysis",
    "wallet": "nbext.analysis",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nbext' has no attribute {name!r}")


def __dir__() -> list[str]:
    # Without globals(): completion of `nbext.` offers what users call, not what this module imports.
    return [
        *__all__,
        "__doc__",
        "__version__",
        "load_ipython_extension",
        "unload_ipython_extension",
    ]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics: ``%load_ext nbext``."""
    from nbext.notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics: ``%unload_ext nbext``."""
    from nbext.notebook import extension

    extension.unload(shell)
