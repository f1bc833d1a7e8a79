"""A dataset on DuckDB.

dataset       a generation, and how the statements of its questions run and end
files         the generation attached and locked down, the addresses' file, the folder to spill into
"""
