"""The bar of a call that takes longer than half a second."""

from __future__ import annotations

from tests.browser.lab import expect

SLOW = """\
import time
from nbext.notebook.session import current_session
with current_session().bar("slow"):
    time.sleep(6)"""


def test_a_bar_is_drawn_in_its_place_and_leaves_nothing(open_notebook):
    notebook = open_notebook("%load_ext nbext", SLOW)
    # Not waited for: the bar is gone when the cell has run.
    notebook.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    bar = notebook.page.locator("progress")
    expect(bar).to_be_visible(timeout=60_000)
    expect(bar).to_have_count(0, timeout=60_000)
