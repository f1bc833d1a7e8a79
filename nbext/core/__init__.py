"""What every room may use: the contract of the eight operations, and the tools that exist once.

The contract, the same for both sides of HTTP:

wire            paths, request and answer shapes, columns of the tables
rules           limits, token standards, what a result may be returned as; how a value is held to its shape
chains          chain names, ids, and the aliases people write
addresses       EVM addresses and their EIP-55 checksum
provenance      where a table comes from: the keys of ``attrs["nbext"]``

The tools:

strict_json     reads JSON strictly, writes it exactly
untrusted_text  makes a stranger's text visible, as text or HTML
atomic_files    writes files that are whole or absent
locks           locks between processes
times           ISO-8601 of instants, and of columns of an Arrow table
uint256         exact integers of up to 78 digits, amounts in a token's unit, and numbers as people read them
"""
