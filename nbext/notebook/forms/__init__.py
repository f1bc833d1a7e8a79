"""Forms: search, sign-up, a segment builder, and a segment's card. ipywidgets only, no JavaScript of ours.

form         what every form has: title, status, errors, a static twin, requests off the main thread
widgets      fields, buttons and tables that forms are made of
style        the CSS of all forms
search       find collections and tokens
signup       sign up for the newsletter
builder      build a segment, count it, run it
editors      a field's input, a condition's card, a group's card
filter_tree  a segment's filters as a tree of cards, and back
card         a segment's table at a glance
charts       bins for amounts, and pictures of them
tables       a segment's table as HTML, and its way into the notebook's variables

The cell that a builder inserts goes the way of IPython's ``set_next_input``: front ends take it with the answer
of the next cell that runs. JupyterLab does (a test sees it); front ends where it was not tried may not, and Voila
has no cells. Everywhere the cell stands in the form as text that a click selects, to be copied, and in a front
end without widgets in the form's static twin (a test sees that too).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client
    from nbext.notebook.forms.builder import SegmentForm
    from nbext.notebook.forms.card import Card
    from nbext.notebook.forms.search import SearchForm
    from nbext.notebook.forms.signup import SignUpForm

__all__ = ["search_form", "segment_form", "show", "signup_form"]


def search_form(
    term: str = "", *, chain: str | None = None, images: bool | None = None, client: Client | None = None
) -> SearchForm:
    """Return a form that searches collections and tokens, shows their metadata and puts it into a variable.

    Parameters
    ----------
    term
        What to search for at once.
    chain
        The chain to begin with; ethereum where none is given.
    images
        Load the picture of what is picked, from https addresses only: it is on somebody's server, who then sees
        this machine's address. Without a word, the setting ``images``.
    client
        The client to ask; without one, the notebook's.
    """
    from nbext.notebook.forms.search import SearchForm

    asked = _client(client)
    allowed = asked.settings["images"] if images is None else images
    return SearchForm(asked, term=term, chain=chain or asked.settings["chain"], images=allowed)


def signup_form(*, client: Client | None = None) -> SignUpForm:
    """Return a form that registers an e-mail address for the newsletter.

    The address is in no output, and leaves the form's state once it was sent.
    """
    from nbext.notebook.forms.signup import SignUpForm

    return SignUpForm(_client(client))


def segment_form(query: Any = None, *, client: Client | None = None) -> SegmentForm:
    """Return a form that builds a segment, counts it, runs it, and writes the cell that does.

    Parameters
    ----------
    query
        What to open: filters, a whole request body, either as JSON text, or a segment's table.
    client
        The client to ask; without one, the notebook's.

    Raises
    ------
    ConfigError
        The service publishes no schema of its filters.
    """
    from nbext.notebook.forms.builder import SegmentForm

    return SegmentForm(_client(client), query)


def show(segment: pd.DataFrame, *, client: Client | None = None) -> Card:
    """Return a segment's card: counts, conditions in words, first rows, exports, and what each condition matches.

    Parameters
    ----------
    segment
        The table of a segment that was run; it knows its own segment by ``attrs``.
    client
        The client to ask; without one, the notebook's.

    Raises
    ------
    UsageError
        The table does not say which segment it is.
    """
    from nbext.notebook.forms.card import Card

    return Card(_client(client), segment)


def _client(given: Client | None) -> Client:
    """Return the client to ask: the given one, the notebook's, or a new one where nbext is loaded in none."""
    from nbext.connect import connect
    from nbext.errors import ConfigError
    from nbext.notebook import session

    if given is not None:
        return given
    try:
        here = session.current()
    except ConfigError:
        return connect()
    return here.connected()
