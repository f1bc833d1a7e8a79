"""What every request passes, from the outside in.

    observe     an id, a line in the log, a count, and the last catch of errors; the log and the metrics themselves
    security    Host, Origin, key and rate; fixed headers on every answer
"""
