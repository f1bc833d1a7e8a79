"""Chain data: ingest prepares tables of it, and engines run segments on them. Knows no HTTP.

dataset      what every engine offers: contracts, times, segments, plans
open         a data folder on the engine that a URL names, again when an ingest has switched it
catalog      contracts by address, by symbol, and by search; times to blocks, and blocks to times
exact_columns   amounts of three limbs as one number, the type that holds their sum, their order, their quotients
holdings     what wallets hold: contract by contract, together, beside what others do
schema       the prepared tables, the same on every engine
storage      generations in a data folder: how one is built, published, read and removed
layers       a generation's base and delta, read as one
ingest/      files of chain data become one generation of tables
query/       what engines share: statements, sets, answers
duckdb/      statements on DuckDB, addresses, spilling
spark/       statements on Spark
sample/      the synthetic data that answers when there is no other
"""
