"""The conditions of the segment language."""
