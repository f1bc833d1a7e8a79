"""A marimo notebook with the forms, for the browser test of them; marimo runs the file itself."""

import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import nbext

    client = nbext.connect()
    nbext.search_form("ape", client=client)
    return client, nbext


@app.cell
def _(client, nbext):
    nbext.segment_form({"token": {"token": "UNI"}}, client=client)


@app.cell
def _(client, nbext):
    table = client.execute_segment({"token": {"token": "UNI"}}, limit="all")
    nbext.explore(table, client=client)
    return (table,)


@app.cell
def _(client, nbext, table):
    nbext.show(table, client=client)
