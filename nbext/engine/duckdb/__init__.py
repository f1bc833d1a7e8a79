"""A dataset on DuckDB.

dataset       a generation and the questions that it answers, counts, adds up and explains
bitmaps       sets of wallets combined in memory, now or at many blocks at once
files         the generation attached and locked down, the addresses' file, the folder to spill into
explain       how sets are combined, and DuckDB's plans, as text
"""
