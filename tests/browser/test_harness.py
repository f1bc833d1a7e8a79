"""The harness itself: what must not happen is seen when it does."""

from __future__ import annotations

import pytest

LEAK = 'from IPython.display import HTML\nHTML(\'<img src="http://leak.invalid/a.png" onerror="{script}">\')'


def test_a_request_that_leaves_this_machine_and_a_script_that_runs_are_both_seen(open_notebook):
    notebook = open_notebook(LEAK.format(script="window.pwned = 1"), checked=False)
    notebook.run_all()
    notebook.page.wait_for_function("() => window.pwned === 1")
    with pytest.raises(AssertionError, match="requests left loopback"):
        notebook.check_nothing_left()
    notebook.requests.clear()
    with pytest.raises(AssertionError, match="a script out of the data ran"):
        notebook.check_nothing_left()
