"""How tables are displayed.

tables            literally: nothing in a cell hides, runs or turns into maths
suspicious_names  names that pretend to be others, and those that a session has seen
"""
