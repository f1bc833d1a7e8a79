"""Segments from request to result.

service      finds a segment or begins it, runs it, reads it, cancels it
analysis     from a body to its plan; counts, funnels, explanations, holdings; the profile of a segment that only counts
store        the registry: each segment's request, status, result file and maker, the queue, the Idempotency-Keys (SQL)
maintenance  the thread that deletes old results and takes over what another service left
lists        the folder of lists of wallets, which segments name by their hash
files        what became of a stored file, and whose folder it is in
results      the folder of result files, and their rows as JSON pages, CSV and Arrow
"""
