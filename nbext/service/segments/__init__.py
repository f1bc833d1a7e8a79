"""Segments from request to result.

    service  finds a segment or begins it, runs it, reads it, cancels it; deletes expired results, sets damaged ones
             aside, takes over what another service left
    jobs     the threads that run segments, and the queue before them
    store    the registry: each segment's request, status and result file, and the Idempotency-Keys (SQL)
    results  the folder of result files, and their rows as JSON pages, CSV and Arrow
"""
