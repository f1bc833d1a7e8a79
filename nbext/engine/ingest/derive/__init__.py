"""The tables that segments query, derived from the transfers.

    tables      history, balances and owners, by buckets of contracts
    holdings    what each wallet held and when, exactly, in arrays of 128-bit integers
    activity    blocks and their times; who was active, when, and how often
    contracts   which contracts are ERC20 and which are NFTs, and what the data counts of each
"""
