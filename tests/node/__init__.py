"""Reading from a node: a real EVM behind HTTP (`chain`), and a server with providers' limits and lies (`faults`)."""
