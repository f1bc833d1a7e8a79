"""Answers of a service that is not ours: what they say, whatever their shape."""
