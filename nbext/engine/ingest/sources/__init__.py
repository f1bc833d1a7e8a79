"""Files to take in, and what each of them is."""
