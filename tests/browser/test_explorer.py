"""The explorer in JupyterLab: sort, filter, turn pages, copy an address, and run the segment that the filters mean."""

from __future__ import annotations

import ast

from tests.browser.lab import expect

CELLS = (
    "import nbext\n%load_ext nbext",
    '%segment {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}} --operator OR --limit 1002 --explore -o both',
    "picked = both.sort_values('UNI_balance_raw', ascending=False, kind='stable')\n"
    "print([f'{a[:10]}…{a[-8:]}' for a in picked.query('BAYC_count >= 1').address[:10]])",
    "print(sorted(owners.address) == sorted(picked.query('BAYC_count >= 1').address))",
)


def test_a_thousand_rows_are_sorted_filtered_and_turned_and_the_filters_run_as_a_segment(
    open_notebook, context
):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook = open_notebook(*CELLS)
    page = notebook.page
    for index in range(2):
        notebook.run_cell(index)
    form = page.locator(".nbext-form")
    where = form.locator(".nbt-where")
    where.get_by_text("1,002 rows", exact=True).wait_for()
    head = form.locator(".nbt-head", has_text="UNI_balance")
    head.locator("b").click()
    form.locator("[aria-sort=descending]").wait_for()
    form.get_by_text("sum 16,821,799.273333333333458304").wait_for()
    expect(form.locator(".nbt-body .nbt-number").first).to_have_text("5,288,600")
    # Brushing over bars filters; the rows are those that the bars count.
    bars = form.locator(".nbt-head", has_text="BAYC_count").locator(".nbt-bar")
    bars.last.wait_for()
    counted = [bar.get_attribute("title").split(": ") for bar in bars.all()]
    assert counted[0] == ["0", "832"]
    bars.nth(1).hover()
    page.mouse.down()
    bars.last.hover()
    page.mouse.up()
    where.get_by_text("170 of 1,002 rows").wait_for()
    form.locator(".nbt-about").get_by_text("BAYC_count · min 1 ").wait_for()
    # The bars that were brushed over are there with all others, which the other columns' have lost.
    expect(bars.and_(form.locator(".nbt-brushed"))).to_have_count(len(counted) - 1)
    assert [bar.get_attribute("title").split(": ") for bar in bars.all()] == counted
    notebook.run_cell(2)
    shown = ast.literal_eval(notebook.output(2))
    for at, address in enumerate(shown):
        expect(form.locator(".nbt-body .nbt-address").nth(at)).to_have_text(address)
    form.locator(".nbt-body .nbt-address").first.click()
    form.get_by_text("Copied 0x").wait_for()
    expect(where).to_have_text("170 of 1,002 rows")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert (len(copied), f"{copied[:10]}…{copied[-8:]}") == (42, shown[0])
    # Arrows move in the grid, which is one stop of the Tab key.
    expect(form.locator('[role=grid] [tabindex="0"]')).to_have_count(1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.keyboard.press("Control+ArrowDown")
    form.get_by_label("Variable").fill("owners")
    form.get_by_role("button", name="Store as variable").click()
    form.get_by_text("owners = 170 rows, 4 columns").wait_for()
    form.get_by_role("button", name="As a segment").click()
    cell = form.locator("pre.nbext-code")
    cell.wait_for()
    notebook.screenshot("explorer")
    notebook.run_cell(3)
    assert notebook.output(3) == "True"


def test_two_views_of_one_table_show_the_rows_of_the_same_question(open_notebook):
    notebook = open_notebook(
        "import nbext, pandas as pd\nmade = nbext.explore(pd.DataFrame({'n': range(300)}))\nmade",
        "made",
    )
    notebook.run_all()
    views = [notebook.page.locator(".nbext-view").nth(at) for at in range(2)]
    for view in views:
        view.get_by_text("300 rows", exact=True).wait_for()
    views[0].get_by_label("At least: n").fill("290")
    for view in views:
        view.get_by_text("10 of 300 rows", exact=True).wait_for()
        expect(view.locator(".nbt-body [data-row='0']")).to_have_text("290")
        expect(view.get_by_label("At least: n")).to_have_value("290")
    views[1].locator(".nbt-head b").click()
    for view in views:
        expect(view.locator(".nbt-head")).to_have_attribute("aria-sort", "descending")
        expect(view.locator(".nbt-body [data-row='0']")).to_have_text("299")
