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

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from nbext.analysis.charts import Chart
    from nbext.client import Client
    from nbext.notebook.forms.builder.form import SegmentForm
    from nbext.notebook.forms.card import Card
    from nbext.notebook.forms.explorer.form import Explorer, LiveChart
    from nbext.notebook.forms.search import SearchForm
    from nbext.notebook.forms.signup import SignUpForm

__all__ = ["explore", "page", "search_form", "segment_form", "show", "signup_form"]


def search_form(
    term: str = "",
    *,
    chain: str | None = None,
    kind: str = "all",
    images: bool | None = None,
    client: Client | None = None,
) -> SearchForm:
    """Return a form that searches tokens and collections, shows their metadata and assigns it to a variable.

    Parameters
    ----------
    term
        What to search for at once.
    chain
        The chain to begin with; by default that of the settings.
    kind
        What to look for to begin with: ``all``, ``nft`` (any collection), ``erc721``, ``erc1155`` or ``token``.
    images
        Load the picture of what is picked, from https addresses only: its server then sees this machine's address.
        By default the setting ``images``.
    client
        The client to use; by default the notebook's.
    """
    # Each form is imported when it is asked for: `import nbext` must load neither anywidget nor pandas.
    from nbext.notebook.forms.search import SearchForm

    client = _client(client)
    return SearchForm(client, term, chain or client.settings["chain"], kind, images)


def signup_form(*, client: Client | None = None) -> SignUpForm:
    """Return a form that registers an e-mail address for the newsletter.

    No output contains the address, and sending it clears it from the form.
    """
    from nbext.notebook.forms.signup import SignUpForm

    return SignUpForm(_client(client))


def segment_form(query: Any = None, *, client: Client | None = None) -> SegmentForm:
    """Return a form that builds a segment, counts it, runs it, and writes the cell that runs it.

    Parameters
    ----------
    query
        What to open: filters or a whole request body, as a dict or as JSON text, or a segment's table.
        `%nbext build` also takes a segment's id, ``history N`` and the name of a saved query.
    client
        The client to use; by default the notebook's.

    Raises
    ------
    ConfigError
        The service publishes no schema of its filters.
    """
    from nbext.notebook.forms.builder.form import SegmentForm

    return SegmentForm(_client(client), query)


def explore(table: pd.DataFrame | Chart, *, client: Client | None = None) -> Explorer | LiveChart:
    """Return a view of a whole table: sort and filter its columns, turn its pages, see each column summed up.

    Amounts are exact, in their tokens' units. The kernel sorts and filters, and the page gets the rows that it shows:
    a million rows are as quick to turn as a thousand. The filters of a segment's table can be written as a segment.
    Of an analysis' chart, what ``.live()`` returns: a mark that is pressed opens its wallets.

    Parameters
    ----------
    table
        Any DataFrame; one of nbext's says what its columns mean. Or a chart.
    client
        Not asked anything; by default the notebook's.

    Raises
    ------
    UsageError
        It is not a DataFrame.
    ConfigError
        It is a chart, and vl-convert-python is not installed.
    """
    from nbext.analysis.charts import Chart
    from nbext.notebook.forms.explorer.form import Explorer, LiveChart

    return LiveChart(table) if isinstance(table, Chart) else Explorer(client, table)


def page(
    table: pd.DataFrame, path: str | Path, *, title: str | None = None, overwrite: bool = False
) -> None:
    """Write a table as one HTML file that answers: opened from disk, offline, it sorts, filters and saves CSV.

    It holds every row, exact amounts, histograms, what was asked and when, and the chart of an analysis. It asks no
    address for anything, and names from a chain are text.

    Parameters
    ----------
    table
        Any DataFrame; one of nbext's says what its columns mean and what was asked.
    path
        A file that ends in .html.
    title
        Its heading; by default the name of the file.
    overwrite
        Replace a file that exists.

    Raises
    ------
    UsageError
        It is not a DataFrame.
    ValidationError, StorageError
        The file cannot be written.
    """
    from nbext.notebook.forms.explorer.form import write_page

    write_page(table, str(path), title=title, overwrite=overwrite)


def show(segment: pd.DataFrame, *, client: Client | None = None) -> Card:
    """Return a segment's card: counts, conditions in words, first rows, exports, and what each condition matches.

    Parameters
    ----------
    segment
        The table of a segment that was run; its ``attrs`` name the segment.
    client
        The client to use; by default the notebook's.

    Raises
    ------
    UsageError
        The table does not say which segment it is.
    """
    from nbext.notebook.forms.card import Card

    return Card(_client(client), segment)


def _client(given: Client | None) -> Client:
    """Return the given client, the notebook's, or a new one where nbext is loaded in no notebook."""
    from nbext.embedded import connect
    from nbext.notebook import session

    if given is not None:
        return given
    here = session.current_session()
    return here.connected() if here else connect()
