"""Forms: search, sign-up, a segment builder, a table's explorer, a segment's card; `views` draws them.

form         what every form has: title, status, errors, a static snapshot, requests off the main thread; a variable
markup       tables, facts and code as HTML, for snapshots and cards
search       find collections and tokens
signup       sign up for the newsletter
builder/     build a segment line by line, count it, run it
card         at a glance: a segment's table, a token or a collection, a session's queries; each can be edited
distribution  how many wallets hold how much: counted over all of them by the service, or from rows; and as bars
explorer/    a whole table: sorted, filtered, summed up, a page at a time; a chart whose marks open in it

The builder's page inserts a cell at once where the front end lets a widget reach the notebook: JupyterLab and
Notebook 7 do (tested). Elsewhere it goes by IPython's ``set_next_input``, with the answer of the next cell that runs,
and the form shows the cell as text that one click selects. Voila has no cells, and there is no such button. In front
ends without widgets the form's static snapshot shows the cell (tested too).
"""
