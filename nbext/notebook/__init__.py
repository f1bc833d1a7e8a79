"""What a user sees in a notebook: magics, completion, display and forms. Knows IPython and anywidget, and no HTTP.

extension   %load_ext and %unload_ext: what is put into a shell, the magics' names and %config Nbext included
session     what the magics and forms of one shell share: settings, client, history, what is prepared for the first call
line        the magic's first line: words, options, help; what a command is
completion  what is offered at the cursor
schema      the words to offer: the service's JSON Schema, read for completion and forms, its chains and symbols
keys        the API key, from the environment, the keyring or a prompt

cell/       the text below a magic's line: JSON with Python in it
run/        what each magic does
results/    where a result goes, how tables are displayed, the progress bar
forms/      search, sign-up, builder, explorer and card
views/      what the page draws of these: one widget, and its ES modules

A cell's way: `extension` parses the line (`line`), `run/query` reads the cell (cell/request, cell/body) and makes one
call of the session's client, and `results/deliver` stores, writes or returns the table.
"""
