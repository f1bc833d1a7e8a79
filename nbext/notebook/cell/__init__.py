"""The text below a magic's line: JSON with Python in it.

request     the query that a cell asks, and an error's place in the cell
body        strict JSON with {{python}} in it, and what a Python value becomes
json_source tokens with positions, places of pointers, the cursor, carets
json_errors what is wrong with a text that is not JSON, and what to write instead
"""
