"""Rows of text become the tables that segments query.

wallets     addresses become ranks, each distinct one once
exports     exports for people, in the form of all others: contracts, whole amounts, one token id in a row
rows        transfers: amounts, blocks and places as integers; bad rows with reasons, repeated rows removed
snapshots   balances at one block, without transfers
contracts   which contracts are ERC20 and which are NFTs, and what the data counts of each
tables      history, balances and owners, by buckets of contracts; blocks, and who was active when
append      new rows added to what is stored: what they change, and when everything must be derived again instead
holdings    what each wallet held and when, exactly, in arrays of 128-bit integers
history     the same in expressions, for engines that have windows and no arrays
"""
