"""The search form in JupyterLab, over the embedded service and its sample."""

from __future__ import annotations

FORM = "import nbext\nform = nbext.search_form()\nform"


def test_search_pick_and_use_then_reopened_without_a_kernel_the_last_state_is_shown(open_notebook, server):
    notebook = open_notebook(FORM, "mine[['symbol', 'tokenType']].values.tolist()")
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    form.get_by_label("Name or symbol").press_sequentially("ape", delay=40)
    form.locator(".nbext-name").first.wait_for()
    assert form.locator(".nbext-name:visible").all_inner_texts() == ["MutantApeYachtClub", "BoredApeYachtClub"]
    # Beside the button, in the row's last cell.
    row = form.locator(".nbext-line:visible").nth(1)
    row.click(position={"x": row.bounding_box()["width"] - 20, "y": 12})
    form.locator(".nbext-facts").get_by_text("0x60E4d786628Fea6478F785A6d7e704777c86a7c6").wait_for()
    form.get_by_role("button", name="BoredApeYachtClub").press("Enter")
    form.locator(".nbext-facts").get_by_text("0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D").wait_for()
    form.get_by_label("Variable").fill("mine")
    form.get_by_label("Variable").press("Enter")
    form.get_by_text("mine is set.").wait_for()
    notebook.screenshot("search")
    line = "mine = %nft ethereum 0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d"
    assert form.locator(".nbext-code").inner_text() == line
    assert notebook.page.locator(".nbext-snapshot").is_hidden()
    notebook.run_cell(1)
    assert notebook.output(1) == "[['BAYC', 'ERC721']]"
    saved = notebook.save()
    server.end_sessions()
    saved["metadata"].pop("kernelspec")
    server.write_saved("search-static", saved)
    again = open_notebook(name="search-static", kernel=False)
    again.page.locator(".nbext-snapshot").wait_for()
    for text in ("'ape' in NFT collections on ethereum", "MutantApeYachtClub", "BoredApeYachtClub", "203", "Address"):
        assert text in again.output(0)
    assert again.page.locator(".nbext-form").count() == 0
    again.screenshot("search-static")


def test_pages_turn_nothing_found_says_so_and_an_error_is_shown_in_the_form(open_notebook):
    broken = "search, form.client.search_nfts = form.client.search_nfts, None"
    notebook = open_notebook(FORM, broken, "form.client.search_nfts = search")
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    form.get_by_label("What").select_option("ERC-20 tokens")
    term = form.get_by_label("Name or symbol")
    term.fill("e")
    term.press("Enter")
    form.get_by_text("1 to 10").wait_for()
    first = form.locator(".nbext-name:visible").all_inner_texts()
    form.get_by_role("button", name="Next").click()
    form.get_by_text("11 to").wait_for()
    second = form.locator(".nbext-name:visible").all_inner_texts()
    assert len(first) == 10
    assert second
    assert not set(first) & set(second)
    form.get_by_role("button", name="Previous").click()
    form.get_by_text("1 to 10").wait_for()
    assert form.locator(".nbext-name:visible").all_inner_texts() == first
    term.fill("no such thing <b>at all</b>")
    form.get_by_text("No name or symbol on ethereum contains 'no such thing <b>at all</b>'.").wait_for()
    assert form.locator(".nbext-name:visible").count() == 0
    notebook.screenshot("search-empty")
    notebook.run_cell(1)
    term.fill("ether")
    form.locator("[role=alert]").get_by_text("TypeError").wait_for()
    notebook.screenshot("search-error")
    notebook.run_cell(2)
    term.press("Enter")
    form.locator(".nbext-name").first.wait_for()
    assert form.locator("[role=alert]").count() == 0
