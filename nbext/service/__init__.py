"""The eight operations over HTTP: keys, limits, saved segments. Knows FastAPI; knows no SQL."""
