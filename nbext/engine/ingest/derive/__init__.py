"""The tables that segments query, derived from the transfers.

    tables      history, balances and owners, by buckets of contracts; blocks, and who was active when
    holdings    what each wallet held and when, exactly, in arrays of 128-bit integers
    contracts   which contracts are ERC20 and which are NFTs, and what the data counts of each
"""
