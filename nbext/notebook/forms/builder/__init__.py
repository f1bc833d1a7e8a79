"""The segment builder: a tree of conditions in Python, which a page of ours draws as lines and changes by messages.

form        the form: how many wallets match each line, and remain after it; running; the cell
editing     the query that the page edits: what it shows, what it asks for; what fields offer to pick
tree        lines and groups, how they are edited, undo and redo
filters     a tree as a segment's filters and back, and the cell that runs them
fields      a condition's fields for the page, from the service's schema: their inputs, their texts, a line in words
"""
