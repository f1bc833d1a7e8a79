"""Completion inside our cells.

matcher     what is offered at the cursor, for IPython's completer
schema      the words to offer: the service's JSON Schema, read for completion and forms, its chains and symbols
"""
