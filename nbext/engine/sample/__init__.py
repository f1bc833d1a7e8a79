"""A synthetic sample, so that every magic answers at once, without an account and without chain data.

The contracts in `known` have their true addresses, symbols and decimals. Everything else is made up by
code from a fixed seed: the wallets' addresses, the transfers, the blocks and the spam contracts. Nothing
in it says anything about a real person, and no figure counted in it is a fact about a chain.

    known       the well-known contracts of known.json, which ingest recognises too
    prepared/   the sample's tables as Parquet; tests/sample_generator makes them
    unpack      the tables in the user's cache, as the generation that is served before anything was ingested
"""
