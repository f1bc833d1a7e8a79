"""The segment builder: a tree of conditions in Python, which a page of ours draws as lines and changes by messages.

form        the form: what the page edits and is shown; the counts of each line and what remains; running; the cell
filters     a segment's filters as a tree: edited, undone, read of JSON and written; the cell that runs them
fields      what a builder offers, from the service's schema: a condition's fields, their texts, a line in words; and
            what is picked: contracts that the service finds, the notebook's segments, lists and saved queries
"""
