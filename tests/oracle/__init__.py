"""One oracle through the front door: files go in by `nbext ingest`, questions by the client of the running service.

`machine` is a state machine of hypothesis: its rules ingest transfers in every format (`files`), tell some again,
replace from a block on, begin a contract with a holder snapshot, tell times and contracts, remove a file, compact; in
half of the walks beside a base that is large enough. Between these steps `asking` draws questions with every field, of
saved segments and lists too, and `meaning` says which wallets and rows must come, in every order: plain Python over the
transfers in `world`, written from the language's reference page alone. `analyses` compares overlap, trend and others
with it, and every export has the same rows.

A condition: its meaning in `meaning`, a `draw_NAME` in `asking`. A format: an entry of ``FORMATS``, or a rule. A number
at which integers change their width: ``EDGES``. `test_front_door` fails where a field, a pair of them, a standard,
a format or an analysis was never drawn in its long run, and `.ci/long` has Spark answer a few walks. ``TESTS_SEED``
repeats a run, ``ORACLE_EXAMPLES=300`` is long.
"""
