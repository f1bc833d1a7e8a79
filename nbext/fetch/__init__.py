"""``nbext fetch``: from a node's logs to data that is served. It joins the room that reads nodes with ingest.

run       what to fetch, of which nodes; what is missing is read and ingested step by step, and the chain followed
balances  whether holders have what the contract says, and why not
command   the command's words, and those of the magic
"""
