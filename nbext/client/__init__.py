"""One method per operation, each of which returns a DataFrame. Knows pandas, but no notebook.

client       the class `Client`: its methods, and what each takes, returns and raises
service      one service: whether it is ours, which decoder reads its answers; the edge where errors lose the key
segment_run  a segment: execute, wait, fetch its rows; export them
lookups      metadata of many contracts at once, in order; search
validate     arguments, checked before any request
decode       what an answer says; the decoder of our own service's answers
frames       which dtype a column gets
addresses    addresses as people have them, from columns, texts and files; their checksums; `nbext.addresses`
filters      filters as exact JSON; lists of wallets in them, of which our own service stores a long one once
writer       rows into a CSV, JSON, Parquet or Arrow file that is whole or absent, with no formula for a spreadsheet
remote/      the decoder of a stranger's answers, which guesses; not loaded for a service that is ours
"""

from __future__ import annotations

from nbext.client.client import Client
from nbext.client.segment_run import Progress

__all__ = ["Client", "Progress"]
