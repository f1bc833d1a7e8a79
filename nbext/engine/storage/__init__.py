"""Generations of tables in a data folder."""
