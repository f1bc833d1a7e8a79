"""A dataset on DuckDB.

    dataset       a generation opened read-only, and questions answered on it
    bitmaps       sets of wallets combined in memory
    addresses     the wallets' addresses in a file of fixed width
    explain_plan  how a question is answered, and DuckDB's plans
    spill         where questions that outgrow the memory spill
"""
