"""Rows of text become rows of integers.

    wallets     addresses become ranks, each distinct one once
    rows        transfers: amounts, blocks and places as integers; bad rows with reasons, repeated rows removed
    snapshots   balances at one block, without transfers
"""
