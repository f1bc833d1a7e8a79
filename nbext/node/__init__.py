"""A node's logs become files that ingest takes; this room knows neither the engine nor a notebook.

    rpc        JSON-RPC over HTTP: several URLs in turn, batches, pauses, and no URL in any message
    received   the answers of ranges that are not whole yet, for a process that follows a killed one
    limits     what nodes and providers say in refusal, and how many blocks to ask for next
    contracts  Transfer logs as rows, and what a contract says of itself
    ranges     one range of blocks: its logs and headers, checked against each other
    coverage   which blocks of which contracts are stored: parts, files, and the chain's hashes
    reader     the ranges that are missing, read by a few threads in the order of blocks

`nbext.fetch` joins it with ingest.
"""
