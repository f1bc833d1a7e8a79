"""A large query in the builder: every line arrives in the page, and widgets exist only for the line that is edited."""

from __future__ import annotations

import time

import pytest

from tests.browser.lab import expect

OPEN = """import ipywidgets, nbext
before = len(ipywidgets.widgets.widget._instances)
names = [f"T{{number}}" for number in range({count})]
form = nbext.segment_form({{"any": [{{"token": {{"token": name}}}} for name in names]}})
display(form)
print(len(ipywidgets.widgets.widget._instances) - before, "widgets")
"""


# 200 is the most that the grammar allows. When a condition was a card of widgets, 40 took 7,165 of them and 9.5 s.
@pytest.mark.parametrize("count", [40, 200])
def test_every_line_of_a_large_query_arrives_in_the_page_and_costs_no_widget(open_notebook, count):
    notebook = open_notebook(OPEN.format(count=count))
    lines = notebook.page.locator(".nbl-top .nbl-summary")
    began = time.monotonic()
    notebook.run_cell(0)
    lines.nth(count - 1).wait_for(state="attached")
    print(f"{count} conditions in {time.monotonic() - began:.2f} s")
    notebook.screenshot(f"builder-{count}")
    assert [one.split("Token")[-1] for one in lines.all_inner_texts()] == [
        f"T{number}" for number in range(count)
    ]
    assert int(notebook.output(0).rsplit(" widgets", 1)[0].split()[-1]) < 60
    # Twice: the first line that is opened and left is one line again.
    for place in (0, 1):
        lines.nth(place).click()
        notebook.page.get_by_label("Token *").last.wait_for()
    expect(notebook.page.get_by_label("Token *")).to_have_count(1)
    expect(notebook.page.get_by_label("Token *")).to_have_value("T1")
