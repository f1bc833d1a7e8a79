"""Rows of text become rows of integers.

    wallets     addresses become ranks, each distinct one once
    rows        transfers: limbs of amounts, blocks, and the bad rows set apart
    keys        rows already taken in are left out
    snapshots   balances at one block, without transfers
"""
