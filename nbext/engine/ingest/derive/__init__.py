"""Rows of text become the tables that segments query.

facts       what token files, contract files and token lists say of contracts
exports     exports for people, in the form of all others: contracts, whole amounts, one token id in a row
rows        transfers: addresses become ranks, amounts, blocks and places integers; bad rows apart, with reasons
duplicates  which rows repeat a transfer, and which contradict one
snapshots   balances at one block, without transfers
contracts   which contracts are ERC20 and which are NFTs, and what the data counts of each
tables      changes of NFTs, history and balances, by buckets of contracts; blocks, and who was active when
append      new rows added to what is stored: what they change, and when everything must be derived again instead
holdings    what each wallet held and when, exactly: sums in arrays
"""
