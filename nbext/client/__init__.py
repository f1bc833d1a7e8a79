"""One method per operation, each of which returns a DataFrame. Knows HTTP and pandas; knows no notebook.

client            the class, put together of
  caller            one service: what all calls share
  segment_methods   run, read, export, explain, cancel
  metadata_methods  tokens, collections, search
segments          a segment: execute, wait, fetch
exports           a segment's rows, as a stream to a table or a file
lookups           many look-ups at once, in order
inputs            what an argument may be; filters: as exact JSON
reading           what an answer says, whatever its shape
frames            which dtype a column gets
transport         one request within its deadline: session, retries, redirects
"""

from __future__ import annotations

from nbext.client.client import Client
from nbext.client.progress import Progress

__all__ = ["Client", "Progress"]
