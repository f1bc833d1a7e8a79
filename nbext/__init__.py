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
    whales = client.execute_segment({"nft": {"nft": "BAYC"}}, limit="all")

Without a ``base_url`` nbext starts its own service on this machine, over a synthetic sample or the data that
``nbext ingest`` read. ``%nbext set base_url https://...`` and ``%nbext login`` choose another service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbext.analysis.compare import concentration, funnel, overlap
    from nbext.analysis.holdings import profile, wallet
    from nbext.analysis.over_time import changes, retention, trend
    from nbext.client import Client
    from nbext.client.addresses import addresses
    from nbext.core.provenance import AnswerWarning
    from nbext.embedded import connect
    from nbext.notebook.forms.builder.form import segment_form
    from nbext.notebook.forms.card import show
    from nbext.notebook.forms.explorer.form import explore, page
    from nbext.notebook.forms.search import search_form
    from nbext.notebook.forms.signup import signup_form
    from nbext.payouts.folder import proof
    from nbext.payouts.payout import payout

__version__ = "0.1.0"
__all__ = [
    "AnswerWarning",
    "Client",
    "addresses",
    "changes",
    "concentration",
    "connect",
    "explore",
    "funnel",
    "overlap",
    "page",
    "payout",
    "profile",
    "proof",
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
    "AnswerWarning": "nbext.core.provenance",
    "Client": "nbext.client",
    "addresses": "nbext.client.addresses",
    "connect": "nbext.embedded",
    "payout": "nbext.payouts.payout",
    "proof": "nbext.payouts.folder",
    **dict.fromkeys(("concentration", "funnel", "overlap"), "nbext.analysis.compare"),
    **dict.fromkeys(("profile", "wallet"), "nbext.analysis.holdings"),
    **dict.fromkeys(("changes", "retention", "trend"), "nbext.analysis.over_time"),
    **dict.fromkeys(("explore", "page"), "nbext.notebook.forms.explorer.form"),
    "search_form": "nbext.notebook.forms.search",
    "segment_form": "nbext.notebook.forms.builder.form",
    "show": "nbext.notebook.forms.card",
    "signup_form": "nbext.notebook.forms.signup",
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
