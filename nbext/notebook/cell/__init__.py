"""The text below a magic's line: JSON with Python in it."""
