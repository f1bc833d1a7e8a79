"""Data: what ingest prepares, and the engines that answer questions about it. Knows no HTTP."""
