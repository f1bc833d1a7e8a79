"""The explorer in JupyterLab: sort, filter, turn pages, copy an address, and run the segment that the filters mean."""

from __future__ import annotations

CELLS = (
    "import nbext\n%load_ext nbext",
    '%segment {"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}} --operator OR --limit 1002 --explore -o both',
    "picked = both.sort_values('UNI_balance_raw', ascending=False, kind='stable')\n"
    "print([f'{a[:10]}…{a[-8:]}' for a in picked.query('BAYC_count >= 1').address[25:50]])",
)

CELL = """%%segment_query
{
  "any": [{"token": {"token": "UNI"}}, {"nft": {"nft": "BAYC"}}],
  "nft": {
    "nft": "0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d",
    "chain": "ethereum",
    "count": {"min": 1}
  }
}"""


def test_a_thousand_rows_are_sorted_filtered_and_turned_and_the_filters_run_as_a_segment(
    open_notebook, context
):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook = open_notebook(*CELLS)
    page = notebook.page
    for index in range(3):
        notebook.run_cell(index)
    form = page.locator(".nbext-form")
    where = form.locator(".nbx-where")
    where.get_by_text("Rows 1 to 25 of 1,002", exact=True).wait_for()
    form.get_by_text("sum 16,821,799.273333333333458304").wait_for()
    form.get_by_role("button", name="UNI_balance").click()
    form.locator("th[aria-sort=descending]").wait_for()
    assert form.locator("tbody .nbext-number").first.inner_text() == "5,288,600"
    form.get_by_label("At least: BAYC_count").fill("1")
    where.get_by_text("Rows 1 to 25 of 170 that match, of 1,002").wait_for()
    form.get_by_role("button", name="Next").click()
    where.get_by_text("Rows 26 to 50 of 170").wait_for()
    shown = form.locator(".nbx-copy").all_inner_texts()
    assert str(shown) == notebook.output(2)
    form.locator(".nbx-copy").first.click()
    form.get_by_text("Copied 0x").wait_for()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert (len(copied), f"{copied[:10]}…{copied[-8:]}") == (42, shown[0])
    form.get_by_role("button", name="As a segment").click()
    form.get_by_role("button", name="Copy cell").click()
    form.get_by_text("Copied the cell.").wait_for()
    notebook.screenshot("explorer")
    assert page.evaluate("() => navigator.clipboard.readText()") == CELL
