"""The segment builder and the card in JupyterLab, over the embedded service and its sample."""

from __future__ import annotations

import json

START = "%load_ext nbext\n%nbext build"
BY_HAND = {
    "token": {"token": "USDC", "balance": {"min": "1"}},
    "any": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "MAYC", "count": {"min": 1}}}],
}


def the_cell_is(form):
    """Where the text of the cell stands, seen from the conditions."""
    conditions, cell = form.locator(".nbext-top-group").bounding_box(), form.locator(".nbext-code").bounding_box()
    if cell["x"] >= conditions["x"] + conditions["width"] and cell["y"] < conditions["y"] + conditions["height"]:
        return "beside"
    return "below" if cell["y"] >= conditions["y"] + conditions["height"] else "on top of it"


def test_a_nested_segment_is_built_counted_inserted_and_run_with_the_rows_of_one_by_hand(open_notebook):
    notebook = open_notebook(
        START,
        "import nbext",
        f"byhand = nbext.connect().execute_segment({BY_HAND!r})",
        "print(byhand.equals(whales), len(whales) > 0)",
        "nbext.show(whales)",
    )
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    form.get_by_role("button", name="+ Token").click()
    form.get_by_text("Still to fill in: Token.").wait_for()
    form.get_by_label("Token *").fill("USDC")
    counted = form.locator(".nbext-big")
    counted.wait_for()
    one_condition = counted.inner_text()
    form.get_by_label("Balance, min").fill("1")
    form.get_by_role("button", name="+ Any of these").click()
    group = form.locator(".nbext-group")
    group.get_by_role("button", name="+ NFT").click()
    group.get_by_label("NFT *").fill("BAYK")
    group.get_by_text("Did you mean", exact=False).wait_for()
    notebook.screenshot("builder-error")
    assert the_cell_is(form) == "beside"
    page.set_viewport_size({"width": 700, "height": 1400})
    page.wait_for_timeout(500)
    notebook.screenshot("builder-narrow")
    assert the_cell_is(form) == "below"
    page.set_viewport_size({"width": 1280, "height": 1400})
    group.get_by_label("NFT *").fill("BAYC")
    group.get_by_role("button", name="+ NFT").click()
    second = group.locator(".nbext-card").nth(1)
    second.get_by_label("NFT *").fill("MAYC")
    second.get_by_label("Count, min").fill("1")
    page.wait_for_function("was => { const e = document.querySelector('.nbext-big'); return e && e.innerText != was }",
                           arg=one_condition)  # fmt: skip
    three_conditions = counted.inner_text()
    form.get_by_label("Variable").fill("whales")
    assert json.loads(form.locator(".nbext-code").inner_text().split("\n", 1)[1]) == BY_HAND
    form.locator(".nbext-insert").click()
    form.get_by_text("The cell appears below the next cell").wait_for()
    notebook.run_cell(1)
    notebook.wait_for_cells(6)
    inserted = notebook.sources()[2]
    assert inserted.startswith("%%segment_query whales\n{")
    for index in (2, 3, 4):
        notebook.run_cell(index)
    assert notebook.output(4) == "True True"
    form.locator(".nbext-run").click()
    form.get_by_text(f"whales holds {three_conditions} wallets.", exact=False).wait_for()
    form.scroll_into_view_if_needed()
    notebook.screenshot("builder")
    notebook.run_cell(5)
    card = page.locator(".nbext-form").nth(1)
    card.get_by_role("button", name="Save CSV").wait_for()
    card.locator(".nbext-title").scroll_into_view_if_needed()
    notebook.screenshot("card")
    assert card.locator(".nbext-facts td").first.inner_text() == three_conditions
    assert card.locator("img.nbext-picture").count() == 4
    card.get_by_label("File").fill("out.csv")
    card.get_by_role("button", name="Save CSV").click()
    card.get_by_text("Saved out.csv").wait_for()
    notebook.screenshot("card-below")
    rows = (notebook.server.root / "out.csv").read_text().splitlines()
    assert len(rows) == int(three_conditions) + 1


def test_a_double_click_on_remove_removes_one_condition_and_enter_brings_it_back(open_notebook):
    names = ["USDC", "UNI", "WBTC"]
    query = json.dumps({"token": [{"token": name} for name in names]})
    notebook = open_notebook(f"import nbext\nnbext.segment_form({query})")
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    symbols = form.get_by_label("Token *")
    symbols.nth(2).wait_for()
    form.get_by_role("button", name="Remove").nth(1).dblclick()
    form.get_by_text("Removed: Token").wait_for()
    page.wait_for_timeout(500)
    notebook.screenshot("builder-removed")
    assert [symbols.nth(n).input_value() for n in range(symbols.count())] == ["USDC", "WBTC"]
    assert form.get_by_role("button", name="Undo").evaluate("e => e === document.activeElement")
    page.keyboard.press("Enter")
    form.get_by_text("Removed: Token").wait_for(state="detached")
    symbols.nth(2).wait_for()
    assert [symbols.nth(n).input_value() for n in range(symbols.count())] == names
