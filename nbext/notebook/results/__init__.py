"""What happens with a result.

deliver     stored in a variable, written to a file, converted, or returned to be displayed
progress    what runs beside a cell: a task in a thread, the bar of a call that takes longer than half a second
numbers     values as tables show them, and sizes in words
tables      how tables are displayed, and which names in them are suspicious
"""
