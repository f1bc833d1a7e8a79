"""A large query in the builder: every card arrives in the page, although the kernel waits for nothing."""

from __future__ import annotations

import pytest

OPEN = """import nbext
from ipywidgets import Dropdown, Text, Textarea
names = [f"T{{number}}" for number in range({count})]
form = nbext.segment_form({{"any": [{{"token": {{"token": name}}}} for name in names]}})
display(form)
def fields(widget):
    return isinstance(widget, (Text, Textarea, Dropdown)) + sum(map(fields, getattr(widget, "children", ())))
print(fields(form.widget), "fields in the builder")
"""


# 200 is the most that the grammar allows. What a socket cannot hold it drops, and the fields with it: when every
# widget had a layout and a style of its own, 7 of the 607 fields of 100 conditions arrived.
@pytest.mark.parametrize("count", [40, 200])
def test_every_field_of_a_large_query_arrives_in_the_page(open_notebook, count):
    notebook = open_notebook(OPEN.format(count=count))
    notebook.run_cell(0)
    there = notebook.page.locator(".nbext-form").locator("input, select, textarea")
    there.nth(count * 4).wait_for(state="attached")
    notebook.screenshot(f"builder-{count}")
    printed = notebook.output(0).split(" fields in the builder")[0].rsplit(maxsplit=1)[-1]
    assert there.count() == int(printed) > count * 4
