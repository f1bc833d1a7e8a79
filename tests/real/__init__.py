"""Real days: transfers as chains have them, taken in day by day at the defaults, with nothing patched.

transfers    300,000 rows whose history begins in the middle: ERC20s and NFTs of which a few are popular; two thirds of
             the collections were minted before, and are sold by owners whom nobody saw receive; metadata of the most
             popular alone, so that other standards are inferred; each day new contracts; days that end inside a block

Held: no day of a month is a reason to build everything again, and every question is
answered as by one ingest of all files. The gate takes in three days, ``.ci/long`` thirty. A new habit of chains is a
line in `transfers.Chain.row`, a new question one in ``QUESTIONS``.
"""
