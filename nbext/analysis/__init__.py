"""Segments side by side: each function asks for many counts at once and returns a table whose cells are segments.

compare     what segments have in common, what each condition takes, how a token is spread over its holders
over_time   how many matched a segment through time, who joined and left, which cohorts stayed
holdings    what one or a few wallets hold, and what those of a segment hold more than others do
segments    a segment as it is given, combined with others and counted; the table of an analysis
charts      the one style of all charts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbext.analysis.compare import concentration, funnel, overlap
    from nbext.analysis.holdings import profile, wallet
    from nbext.analysis.over_time import changes, retention, trend

__all__ = [
    "changes",
    "concentration",
    "funnel",
    "overlap",
    "profile",
    "retention",
    "trend",
    "wallet",
]

# The module of each, imported when it is first used: `import nbext` stays light.
_MODULES = {
    "changes": "over_time",
    "concentration": "compare",
    "funnel": "compare",
    "overlap": "compare",
    "profile": "holdings",
    "retention": "over_time",
    "trend": "over_time",
    "wallet": "holdings",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"nbext.analysis.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'nbext.analysis' has no attribute {name!r}")
