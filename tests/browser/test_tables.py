"""Tables of results as JupyterLab lays them out."""

from __future__ import annotations

# Where each number has its point, or would have it.
POINTS = """table => [...table.querySelectorAll("td.n")].map(cell => {
    const text = cell.firstChild, at = text.data.indexOf("."), range = document.createRange();
    range.setStart(text, 0);
    range.setEnd(text, at < 0 ? text.length : at);
    return [text.data, Math.round(range.getBoundingClientRect().right)];
})"""


def test_the_points_of_a_column_are_below_one_another(open_notebook):
    notebook = open_notebook("%load_ext nbext", '%%segment_query\n{"token": {"token": "USDC"}}')
    notebook.run_cell(0)
    notebook.run_cell(1)
    table = notebook.page.locator(".nbext-result table")
    table.wait_for()
    points = dict(table.evaluate(POINTS))
    notebook.screenshot("table")
    assert {len(text.partition(".")[2]) for text in points} > {0, 3}
    assert len(set(points.values())) == 1
