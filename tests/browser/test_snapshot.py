"""A form's snapshot is hidden by the live form, once that is drawn; where it cannot be drawn, the snapshot stays."""

from __future__ import annotations

import re

from tests.browser.lab import expect

FORM = "import nbext\nnbext.segment_form({'token': {'token': 'UNI'}})"
BREAK = """from nbext.notebook.views import view
view.SCRIPT = "export function mount() { throw new Error('broken on purpose'); }"
"""


def stays(notebook):
    """The snapshot is there, with its cell; nothing of the live form is."""
    snapshot = notebook.page.locator(".nbext-snapshot")
    snapshot.get_by_text("%%segment_query segment").wait_for()
    return notebook.page.locator(".nbext-form").count() == 0 and snapshot.is_visible()


def test_a_snapshot_stays_where_the_code_of_widgets_does_not_load(open_notebook, context):
    context.route(re.compile("extensions/anywidget/"), lambda route: route.abort())
    notebook = open_notebook(FORM)
    notebook.run_cell(0)
    assert stays(notebook)
    notebook.screenshot("snapshot-blocked")


def test_a_snapshot_stays_where_the_view_throws(open_notebook):
    notebook = open_notebook(BREAK + FORM)
    notebook.run_cell(0)
    notebook.page.wait_for_function("() => window.nbextViews?.size === 1")
    assert stays(notebook)
    notebook.screenshot("snapshot-thrown")


def test_a_snapshot_hides_while_its_form_is_there_and_stays_when_it_is_opened_without_a_kernel(
    open_notebook, server
):
    notebook = open_notebook(FORM, name="snapshot-live")
    notebook.run_cell(0)
    notebook.page.locator(".nbext-form .nbext-big").wait_for()
    expect(notebook.page.locator(".nbext-snapshot")).to_be_hidden()
    saved = notebook.save()
    server.end_sessions()
    saved["metadata"].pop("kernelspec")
    server.write_saved("snapshot-reopened", saved)
    again = open_notebook(name="snapshot-reopened", kernel=False)
    assert stays(again)
    again.screenshot("snapshot-reopened")
