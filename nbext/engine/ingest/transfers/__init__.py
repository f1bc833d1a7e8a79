"""Rows of files become rows of the stage."""
