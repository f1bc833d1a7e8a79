"""The segment language: its fields, and the way from JSON to an Ibis expression. Knows no engine."""
