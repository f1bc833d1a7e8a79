"""A magic's first line: words, options, Python values."""
