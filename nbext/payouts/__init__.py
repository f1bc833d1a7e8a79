"""Payouts: a total divided among the wallets of a segment, as files that distributors read and anybody can verify.

payout  `nbext.payout`: rows, and a total divided by weights, to a folder; ``nbext payout verify``, which asks it again
tree    the Merkle tree, and the two kinds of its leaves
folder  the files of a payout, and one wallet's proof
"""
