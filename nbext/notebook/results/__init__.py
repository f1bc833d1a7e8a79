"""The end of every magic: deliver, store, show progress."""
