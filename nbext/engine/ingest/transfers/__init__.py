"""Rows of text become rows of integers.

    wallets     addresses become ranks, each distinct one once
    rows        transfers: amounts, blocks and places as integers; bad rows with their reasons
    keys        rows that were ingested before are skipped
    snapshots   balances at one block, without transfers
"""
