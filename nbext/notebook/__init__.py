"""What a user sees in a notebook: magics, completion, display and forms. Knows IPython and ipywidgets, and no HTTP.

extension   %load_ext and %unload_ext: what is put into a shell, the five magics and %config Nbext included
warm_up     what the first call would wait for, in the background after %load_ext
session     what the magics and forms of one shell share: settings, client, vocabulary, queries that ran or were saved
threads     what runs beside a cell
keys        the API key, from the environment, the keyring or a prompt

line/       the magic's first line: words, options, help, and what a command is
cell/       the text below it: JSON with Python in it
run/        what each magic does
results/    where a result goes, how tables are displayed, the progress bar
completion/ the words that fit at the cursor
forms/      search, sign-up, builder and card, as widgets

A cell's way: `extension` parses the line (line/options), `run/query` reads the cell (cell/request, cell/body), makes
one call of the session's client, and `results/deliver` stores, writes or returns the table.
"""
