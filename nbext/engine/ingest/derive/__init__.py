"""The tables that segments are asked of, derived from the transfers."""
