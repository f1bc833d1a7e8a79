"""Completion inside our cells.

matcher     what is offered at the cursor, for IPython's completer
vocabulary  the words to offer, and where they are from
schema      the reader of the service's JSON Schema, for completion and forms
"""
