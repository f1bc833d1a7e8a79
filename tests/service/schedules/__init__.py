"""Schedules: two keys do something with one segment at once, in one service or in two on the same folder.

pausing      stops the first of two services where it is about to use the registry for the n-th time
operations   what a private, an open and an administrator's key do: execute, claim, read, export, cancel, delete,
             rotate, store a list of wallets

For each pair of operations: the first one is stopped at each of its looks into the registry, the second one runs to its
end, and the first goes on. What both were answered, and what every key then sees, equals one of the two serial orders.
Nobody learns of another's private segment. The gate draws pairs for a minute from a printed seed, ``.ci/long`` takes
all. A new operation is a function in `operations.OPERATIONS`.
"""
