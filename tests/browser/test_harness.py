"""The harness itself: a notebook opens, runs, saves, and what a page asks for is seen."""

from __future__ import annotations


def test_a_cell_runs_in_jupyterlab_and_a_button_of_it_works(open_notebook):
    notebook = open_notebook(
        "import ipywidgets as w\n"
        "button, out = w.Button(description='Go'), w.HTML('waiting')\n"
        "button.add_class('probe')\n"
        "button.on_click(lambda _: setattr(out, 'value', 'done'))\n"
        "w.VBox([button, out])",
        "6 * 7",
    )
    notebook.run_all()
    notebook.page.locator(".probe").click()
    notebook.page.get_by_text("done", exact=True).wait_for()
    notebook.screenshot("harness")
    assert notebook.output(1) == "42"
    saved = notebook.save()
    assert [cell["execution_count"] for cell in saved["cells"]] == [1, 2]
