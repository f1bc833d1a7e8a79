"""Segments from request to result.

service      finds a segment or begins it, runs it, reads it, cancels it
analysis     counts, funnels and holdings: what is answered at once
profile      what a segment's wallets hold and do beside others: more of a segment that only counts
jobs         the threads that run segments
store        the registry: each segment's request, status and result file, the queue, and the Idempotency-Keys (SQL)
owners       which keys have which segments, and how much of the disk each key takes (SQL)
maintenance  the thread that deletes old results and takes over what another service left
lists        the folder of lists of wallets, which segments name by their hash
results      the folder of result files, and their rows as JSON pages, CSV and Arrow
"""
