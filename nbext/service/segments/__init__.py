"""Segments from request to result: run, stored, read, exported, looked after."""
