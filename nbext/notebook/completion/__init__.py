"""Completion inside our cells."""
