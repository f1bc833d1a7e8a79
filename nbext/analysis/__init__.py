"""Segments side by side: each function asks for many counts at once and returns a table whose cells are segments.

overlap     what each two of many segments have in common
funnel      the conditions of one segment, one after the other
concentration  how a token is spread over its holders
changes     which wallets joined a segment, left it or stayed
profile     what a segment's wallets hold more than others do
retention   how many of each month's new wallets match later
trend       how many matched a segment through time
wallet      what one or a few wallets hold
segments    a segment as it is given and combined with others, and how many are counted in one request
results     the table of an analysis: its cells' segments, its chart
charts      the one style of all charts
"""

from nbext.analysis.changes import changes
from nbext.analysis.concentration import concentration
from nbext.analysis.funnel import funnel
from nbext.analysis.overlap import overlap
from nbext.analysis.profile import profile
from nbext.analysis.retention import retention
from nbext.analysis.trend import trend
from nbext.analysis.wallet import wallet

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
