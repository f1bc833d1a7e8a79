"""Rows of text become the tables that segments query.

    wallets     addresses become ranks, each distinct one once
    rows        transfers: amounts, blocks and places as integers; bad rows with reasons, repeated rows removed
    snapshots   balances at one block, without transfers
    contracts   which contracts are ERC20 and which are NFTs, and what the data counts of each
    tables      history, balances and owners, by buckets of contracts; blocks, and who was active when
    holdings    what each wallet held and when, exactly, in arrays of 128-bit integers
"""
