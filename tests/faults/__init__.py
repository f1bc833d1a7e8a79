"""A failure at every place: whole stories, told again with one call to the system failing, once.

failing      counts the calls: opening, stating, reading, writing, naming and flushing files below the story's folder,
             DuckDB's and Arrow's files, SQLite's statements, a client's sockets, the clock
stories      what somebody does from beginning to end: ingest, append, query, export, list, back up, fetch, follow, log
             in, fill in a form; ``fresh`` makes the world as it was before ``tell``
walk         for a call of a story: it fails with EIO, EMFILE, EACCES, ENOSPC or a reset (the clock is a day late)
machine      a service that is asked, broken once or for a while, restarted and moved in time, in any order

Held of each: an error of ours that blames nobody (no "not found", "damaged", "internal"), or the answer that there
is without the failure; told again it is that answer, and nothing half written is left. The gate walks each story for
ten seconds from a printed seed; ``.ci/long`` walks all calls. A new story is a context in `stories.STORIES`.
"""
