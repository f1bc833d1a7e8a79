"""What both sides of HTTP agree on: the eight operations, their shapes, and the names in their paths.

operations  paths, request and answer shapes, columns of the tables
addresses   EVM addresses and their EIP-55 checksum
chains      chain names, ids, and the aliases people write
"""
