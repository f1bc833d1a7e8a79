"""Payouts: a total divided among the wallets of a segment, as files that distributors read and anybody can verify.

payout   `nbext.payout`: from rows to a folder; ``nbext payout verify``, which asks the request again
amounts  a total divided by weights into whole units, within a cap and a floor
tree     the Merkle tree, and the two kinds of its leaves
folder   the files of a payout, and one wallet's proof
"""
