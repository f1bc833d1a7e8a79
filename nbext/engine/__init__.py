"""Data: what ingest prepares, and the engines that answer questions about it. Knows no HTTP.

    dataset       what an engine offers to the rooms before it: a catalog, block times, questions and answers
    open          a data folder opened on the engine that a URL names
    schema        the tables, one layout on every engine
    catalog       contracts by address, by symbol, and by search
    block_times   times into blocks, and back
    query/        statements that any engine runs: sets of wallets, exact amounts, history
    duckdb/       the embedded engine
    remote/       Spark, BigQuery and Trino
    ingest/       chain data in files becomes the tables
    storage/      generations of tables in the data folder, and who uses it
    sample/       the synthetic sample, for a folder without data
"""
