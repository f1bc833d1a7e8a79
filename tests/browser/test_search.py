"""The search form in JupyterLab, over the embedded service and its sample."""

from __future__ import annotations

from tests.browser import hostile
from tests.browser.lab import expect
from tests.browser.test_accessibility import TALL, THEMES, WITH_A_HEIGHT, looked_at

ALIGNED = """table => [...new Set([...table.querySelectorAll("td, th")].map(
    one => `${one.className.split(" ")[0]} ${getComputedStyle(one).textAlign}`.trim()))].sort()"""
FORM = "import nbext\nform = nbext.search_form()\nform"


def test_search_pick_and_use_then_reopened_without_a_kernel_the_last_state_is_shown(
    open_notebook, server
):
    notebook = open_notebook(
        FORM, "mine[['symbol', 'tokenType']].values.tolist()", "%load_ext nbext\nmine"
    )
    page, form = notebook.page, notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    form.get_by_label("Name or symbol").press_sequentially("ape", delay=40)
    found = ["MutantApeYachtClub", "ApeCoin", "BoredApeYachtClub"]
    expect(form.locator(".nbext-name:visible")).to_have_text(found)
    # Beside the button, in the row's last cell.
    row = form.locator(".nbext-results tbody tr").first
    row.click(position={"x": row.bounding_box()["width"] - 20, "y": 12})
    form.locator(".nbext-facts").get_by_text(
        "0x60E4d786628Fea6478F785A6d7e704777c86a7c6"
    ).wait_for()
    form.get_by_role("button", name="BoredApeYachtClub").press("Enter")
    form.locator(".nbext-facts").get_by_text(
        "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
    ).wait_for()
    form.get_by_label("Variable").fill("mine")
    form.get_by_label("Variable").press("Enter")
    form.get_by_text("mine is set.").wait_for()
    notebook.screenshot("search")
    line = "mine = %nft ethereum 0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d"
    assert form.locator(".nbext-code").last.inner_text() == line
    expect(notebook.page.locator(".nbext-snapshot")).to_be_hidden()
    notebook.run_cell(1)
    assert notebook.output(1) == "[['BAYC', 'ERC721']]"
    # JupyterLab itself puts all to the right.
    notebook.run_cell(2)
    assert "BoredApeYachtClub" in notebook.output(2)
    shown = page.locator(".jp-Notebook-cell").nth(2).locator(".nbext-result")
    assert shown.evaluate(ALIGNED) == ["a left", "left", "n right"]
    saved = notebook.save()
    server.end_sessions()
    saved["metadata"].pop("kernelspec")
    server.write_saved("search-static", saved)
    again = open_notebook(name="search-static", kernel=False)
    again.page.locator(".nbext-snapshot").wait_for()
    for text in (
        "'ape' in tokens and collections on ethereum",
        "MutantApeYachtClub",
        "BoredApeYachtClub",
        "203",
        "Address",
    ):
        assert text in again.output(0)
    assert again.page.locator(".nbext-form").count() == 0
    again.screenshot("search-static")


def test_nothing_found_says_so_and_an_error_is_shown_in_the_form(open_notebook):
    broken = "search, form.client.search_nfts = form.client.search_nfts, None"
    notebook = open_notebook(FORM, broken, "form.client.search_nfts = search")
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    form.get_by_label("What").select_option("ERC-20 tokens")
    term = form.get_by_label("Name or symbol")
    term.fill("no such thing <b>at all</b>")
    form.get_by_text(
        "Looked at the names and symbols of ERC-20 tokens on ethereum: none contains 'no such thing <b>at all</b>'."
    ).wait_for()
    expect(form.locator(".nbext-name:visible")).to_have_count(0)
    notebook.screenshot("search-empty")
    notebook.run_cell(1)
    term.fill("ether")
    form.locator("[role=alert]").get_by_text("TypeError").wait_for()
    notebook.screenshot("search-error")
    notebook.run_cell(2)
    term.press("Enter")
    form.locator(".nbext-name").first.wait_for()
    expect(form.locator("[role=alert]")).to_have_count(0)


def test_after_a_search_that_failed_the_table_says_which_search_it_answers(open_notebook):
    broken = "search, form.client.search_nfts = form.client.search_nfts, None"
    notebook = open_notebook(FORM, broken, "form.client.search_nfts = search")
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    term, table = form.get_by_label("Name or symbol"), form.locator(".nbext-results")
    term.fill("ape")
    answers = table.get_by_text("'ape' in tokens and collections on ethereum")
    expect(form.locator(".nbext-name")).to_have_count(3)
    expect(answers).to_have_count(0)
    notebook.run_cell(1)
    term.fill("ether")
    form.locator("[role=alert]").get_by_text("TypeError").wait_for()
    expect(answers).to_be_visible()
    expect(form.locator(".nbext-name")).to_have_count(3)
    expect(form.locator(".nbext-name[aria-disabled]")).to_have_count(0)
    notebook.screenshot("search-failed")
    notebook.run_cell(2)
    term.press("Enter")
    expect(answers).to_have_count(0)
    expect(form.locator(".nbext-name", has_text="Ape")).to_have_count(0)


def test_pages_of_a_thousand_results_are_turned_and_walked_by_keys_and_axe_finds_nothing_wrong(
    open_notebook,
):
    with hostile.running() as service:
        service.found = 1000
        notebook = open_notebook(
            f"import nbext\nnbext.search_form('x', kind='nft', client=nbext.connect({service.url!r}, 'key'))"
        )
        page, keys = notebook.page, notebook.page.keyboard
        notebook.run_cell(0)
        form = page.locator(".nbext-form")
        said = form.locator(".nbext-status")
        place = "() => document.activeElement.dataset.at"
        said.get_by_text("1 to 50 of 1,000").wait_for()
        # The 700th, without the mouse: a page's number, and its last row.
        form.get_by_label("Page").fill("14")
        keys.press("Enter")
        said.get_by_text("651 to 700 of 1,000").wait_for()
        results = form.locator(".nbext-results")
        expect(results.get_by_role("row")).to_have_count(51)
        keys.press("Shift+Tab")
        assert page.evaluate(place) == "0"
        keys.press("End")
        assert page.evaluate(place) == "49"
        keys.press("Enter")
        form.locator(".nbext-facts").get_by_text("Owners").wait_for()
        assert results.locator("[aria-pressed=true]").get_attribute("data-at") == "49"
        page.wait_for_function(f"() => ({place})() === '49'")
        notebook.screenshot("search-pages")
        # The focus stays in the rows as the page turns, also where there is no further one.
        for key, first, row in [
            ("ArrowUp", 651, "48"),
            ("PageDown", 701, "0"),
            ("ArrowDown", 701, "1"),
            ("PageUp", 651, "0"),
            ("Home", 651, "0"),
        ]:
            keys.press(key)
            said.get_by_text(f"{first} to {first + 49} of 1,000").wait_for()
            page.wait_for_function(f"row => ({place})() === row", arg=row)
        search = form.get_by_role("button", name="Search")
        form.get_by_label("Name or symbol").fill("y")
        search.press("Enter")
        said.get_by_text("1 to 50 of 1,000").wait_for()
        assert page.evaluate("document.activeElement.innerText") == "Search"
        back = form.get_by_role("button", name="Previous")
        form.get_by_label("Page").fill("2")
        keys.press("Enter")
        said.get_by_text("51 to 100 of 1,000").wait_for()
        page.set_viewport_size(TALL)
        page.add_style_tag(content=WITH_A_HEIGHT)
        found = {}
        for theme in THEMES:
            page.evaluate(
                "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
                theme,
            )
            page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            found[theme] = tuple(looked_at(page, ".nbext-form", least=50)[0])
        assert found == dict.fromkeys(THEMES, ())
        back.press("Enter")
        said.get_by_text("1 to 50 of 1,000").wait_for()
        # A button that has nothing to do hands the focus on to the one beside it.
        expect(back).to_be_disabled()
        assert page.evaluate("document.activeElement.textContent") == "Next"
        assert service.caught == []
