"""A dataset on DuckDB.

dataset       a generation opened read-only; questions answered, explained, and spilled on it
bitmaps       sets of wallets combined in memory
series        sets of wallets at many blocks at once
addresses     the wallets' addresses in a file of fixed width
"""
