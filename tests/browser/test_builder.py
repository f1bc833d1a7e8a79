"""The segment builder and the card in JupyterLab, over the embedded service and its sample."""

from __future__ import annotations

import importlib.util
import json
import re
import time

import pytest

from tests.browser.lab import expect
from tests.browser.test_keyboard import go_to

START = "%load_ext nbext\n%nbext build"
WANTED = {
    "token": {"token": "UNI", "balance": {"min": "1000"}, "heldSince": "180d"},
    "not": {"nft": {"nft": "BAYC"}},
    "any": [{"nft": {"nft": "AZUKI"}}, {"nft": {"nft": "MAYC"}}],
}


class Hand:
    """A mouse and a keyboard that count."""

    def __init__(self, page):
        self.page, self.clicks, self.keys = page, 0, 0

    def click(self, target):
        target.click()
        self.clicks += 1

    def type(self, text):
        self.page.keyboard.type(text)
        self.keys += len(text)

    def enter(self):
        self.page.keyboard.press("Enter")
        self.keys += 1


def focused_on(page, label):
    words = "() => (document.activeElement.closest('label') || document.activeElement).innerText"
    page.wait_for_function(f"label => (({words})() || '').startsWith(label)", arg=label)


def matched_in(form):
    """The number of wallets that match, as the form writes it."""
    said = re.fullmatch(r"([\d,]+) wallets? match(es)?\.", form.locator(".nbext-big").inner_text())
    return said[1]


def where_the_json_is(form):
    """Where the JSON stands, seen from the lines."""
    lines, text = form.locator(".nbl-main").bounding_box(), form.locator(".nbl-json").bounding_box()
    if text["x"] >= lines["x"] + lines["width"] and text["y"] < lines["y"] + lines["height"]:
        return "beside"
    return "below" if text["y"] >= lines["y"] + lines["height"] else "on top of it"


def test_a_nested_segment_takes_eight_clicks_and_twelve_keys_and_runs_with_the_rows_of_one_by_hand(
    open_notebook,
):
    notebook = open_notebook(
        START,
        "import nbext",
        f"byhand = nbext.connect().execute_segment({WANTED!r})",
        "print(byhand.equals(whales), len(whales) > 0)",
        "nbext.show(whales)",
    )
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    hand, add = Hand(page), form.get_by_label("+ Add", exact=True)
    began = time.monotonic()
    hand.click(add)
    hand.type("uni")
    hand.enter()
    focused_on(page, "Balance, min")
    hand.type("1000")
    hand.click(form.get_by_role("button", name="180 days"))
    hand.click(add)
    hand.type("b")
    hand.click(form.get_by_role("option", name="BAYC"))
    focused_on(page, "Count, min")
    hand.click(form.get_by_role("button", name="NOT NFT BAYC"))
    hand.click(add)
    hand.type("a")
    hand.click(form.get_by_role("option", name="AZUKI"))
    focused_on(page, "Count, min")
    hand.click(form.get_by_role("button", name="Or …"))
    focused_on(page, "NFT *")
    hand.type("m")
    hand.enter()
    form.get_by_text("own AZUKI on ethereum or own MAYC on ethereum").wait_for()
    form.locator(".nbext-big").wait_for()
    print(f"built and counted in {time.monotonic() - began:.1f} s")
    assert json.loads(form.locator(".nbl-json").input_value()) == WANTED
    assert (hand.clicks, hand.keys) == (8, 12)
    lines = ["TokenUNI · balance >= 1,000 · held for 180 days", "NFTBAYC", "NFTAZUKI", "NFTMAYC"]
    expect(form.locator(".nbl-top .nbl-summary")).to_have_text(lines)
    expect(form.locator(".nbl-join")).to_have_text(["AND", "AND", "OR"])
    counts = [one.split("\n")[-1] for one in form.locator(".nbl-head .nbl-count").all_inner_texts()]
    assert counts[1].startswith("not ")
    matched = matched_in(form)
    assert form.locator(".nbl-beside td:last-child").last.inner_text() == matched
    expect(form.locator(".nbl-beside code")).to_have_count(min(3, int(matched.replace(",", ""))))
    form.get_by_label("Variable").fill("whales")
    form.locator(".nbext-insert").click()
    # At once, below the form's own cell.
    form.get_by_text("The cell is below this one.").wait_for()
    notebook.wait_for_cells(6)
    name, _, inserted = notebook.sources()[1].partition("\n")
    assert (name, json.loads(inserted)) == ("%%segment_query whales", WANTED)
    assert where_the_json_is(form) == "beside"
    for index in (1, 2, 3, 4):
        notebook.run_cell(index)
    assert notebook.output(4) == "True True"
    form.locator(".nbext-run").click()
    form.get_by_text(f"whales holds {matched} wallets.", exact=False).wait_for()
    # While it ran the button was switched off.
    focused_on(page, "Run")
    form.scroll_into_view_if_needed()
    notebook.screenshot("builder")
    page.set_viewport_size({"width": 700, "height": 1400})
    page.wait_for_timeout(500)
    notebook.screenshot("builder-narrow")
    assert where_the_json_is(form) == "below"
    page.set_viewport_size({"width": 1280, "height": 1400})
    notebook.run_cell(5)
    card = page.locator(".nbext-form").nth(1)
    card.get_by_role("button", name="Save").wait_for()
    card.locator(".nbext-title").first.scroll_into_view_if_needed()
    notebook.screenshot("card")
    assert card.locator(".nbext-facts td").first.inner_text() == matched
    card.get_by_label("File").fill("out.csv")
    card.get_by_role("button", name="Save").click()
    card.get_by_text("Saved out.csv").wait_for()
    rows = (notebook.server.root / "out.csv").read_text().splitlines()
    assert len(rows) == int(matched) + 1
    card.get_by_role("button", name="Edit").click()
    card.locator(".nbl-top .nbl-summary").nth(3).wait_for()
    expect(card.locator(".nbl-json")).to_have_value(re.compile(r"MAYC"))
    assert json.loads(card.locator(".nbl-json").input_value()) == WANTED


NAMES = ["USDC", "UNI", "WBTC"]
THREE = f"import nbext\nnbext.segment_form({json.dumps({'token': [{'token': name} for name in NAMES]})})"


SYMBOLS = "[...document.querySelectorAll('.nbl-top .nbl-words')].map(one => one.innerText)"


def check_symbols(form, names):
    expect(form.locator(".nbl-top .nbl-words")).to_have_text(names)


def test_a_double_click_on_remove_removes_one_condition_and_enter_brings_it_back(open_notebook):
    notebook = open_notebook(THREE)
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    form.locator(".nbl-top .nbl-summary").nth(2).wait_for()
    form.get_by_role("button", name="Remove").nth(1).dblclick()
    form.get_by_text("Removed: Token UNI").wait_for()
    page.wait_for_timeout(500)
    notebook.screenshot("builder-removed")
    check_symbols(form, ["USDC", "WBTC"])
    focused_on(page, "Undo")
    page.keyboard.press("Enter")
    form.get_by_text("Removed: Token UNI").wait_for(state="detached")
    check_symbols(form, NAMES)
    focused_on(page, "TokenUNI")


def test_lines_are_moved_removed_and_brought_back_by_keys_and_the_json_follows_and_leads(
    open_notebook,
):
    notebook = open_notebook(THREE)
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    form.locator(".nbl-top .nbl-summary").nth(2).wait_for()
    text, error = (
        form.locator(".nbl-json"),
        form.locator(".nbext-field:has(.nbl-json) .nbext-error"),
    )

    def becomes(names):
        expected = ", ".join(f'{{"token": "{name}"}}' for name in names)
        page.wait_for_function(
            "e => document.querySelector('.nbl-json').value.includes(e)", arg=f"[{expected}]"
        )
        page.wait_for_function(f"names => ({SYMBOLS}).join() === names", arg=",".join(names))

    form.locator(".nbl-top .nbl-summary").first.focus()
    page.keyboard.press("Alt+ArrowDown")
    becomes(["UNI", "USDC", "WBTC"])
    focused_on(page, "TokenUSDC")
    page.keyboard.press("ArrowDown")
    focused_on(page, "TokenWBTC")
    page.keyboard.press("Delete")
    becomes(["UNI", "USDC"])
    focused_on(page, "Undo")
    page.keyboard.press("Control+z")
    becomes(["UNI", "USDC", "WBTC"])
    page.keyboard.press("Control+z")
    becomes(NAMES)
    text.fill('{"token": [{"token": "UNI"}, {"token": "AAVE"')
    error.get_by_text("Not used").wait_for()
    check_symbols(form, NAMES)
    text.fill('{"token": [{"token": "UNI"}, {"token": "AAVE"}]}')
    becomes(["UNI", "AAVE"])
    expect(error).to_have_count(0)
    # What is wrong stands at its field, and Run moves the focus there.
    form.locator(".nbl-top .nbl-summary").nth(1).click()
    form.get_by_label("Token *").fill("AAAVE")
    form.locator(".nbl-fields .nbext-error").get_by_text(
        "The data has no token", exact=False
    ).wait_for()
    notebook.screenshot("builder-error")
    expect(form.get_by_label("Token *")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Token *").fill("")
    form.get_by_text("Still to fill in: Token.").wait_for()
    form.get_by_role("button", name="Done").click()
    form.get_by_label("Token *").wait_for(state="detached")
    form.locator(".nbext-run").click()
    focused_on(page, "Token *")
    page.keyboard.type("UNI")
    variable = form.get_by_label("Variable")
    variable.fill("class")
    form.locator(".nbext-run").click()
    form.locator(".nbext-field").get_by_text("'class' is a Python keyword.", exact=False).wait_for()
    page.wait_for_function("() => document.activeElement.value === 'class'")
    below = variable.get_attribute("aria-describedby")
    assert (variable.get_attribute("aria-invalid"), page.locator(f"#{below}").inner_text()) == (
        "true",
        "'class' is a Python keyword. Choose another name for the result.",
    )
    variable.fill("mine")
    form.get_by_text("is a Python keyword").wait_for(state="detached")
    expect(variable).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.skipif(
    importlib.util.find_spec("notebook") is None, reason="notebook is not installed"
)
def test_in_notebook_7_a_cell_is_inserted_at_once_too(open_notebook):
    notebook = open_notebook(THREE, "print('last')", application="notebooks")
    form = notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    form.locator(".nbl-top .nbl-summary").nth(2).wait_for()
    assert notebook.page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
    form.get_by_role("button", name="Insert cell").click()
    notebook.wait_for_cells(3)
    notebook.screenshot("notebook-7")
    assert [source.split("\n")[0] for source in notebook.sources()] == [
        "import nbext",
        "%%segment_query segment",
        "print('last')",
    ]


SLOW = """form.client.about()
import threading
go_on, real = threading.Event(), form.client.funnel
def slow(*asked, **options):
    go_on.wait(60)
    return real(*asked, **options)
form.client.funnel = slow"""


def test_a_count_that_takes_long_says_for_how_long_and_is_cancelled_and_asked_for_again(
    open_notebook,
):
    notebook = open_notebook(
        THREE.replace("\nnbext", "\nform = nbext") + "\nform", SLOW, "go_on.set()"
    )
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    form.locator(".nbext-big").wait_for()
    counted = matched_in(form)
    notebook.run_cell(1)
    form.get_by_role("button", name="NOT Token USDC").click()
    total = form.locator(".nbl-beside .nbext-status")
    expect(total).to_contain_text(f"{counted} before the change. Counting …")
    expect(form.locator(".nbext-big")).to_have_count(0)
    cancel = total.get_by_role("button", name="Cancel")
    cancel.wait_for()
    assert " s" in total.inner_text()
    notebook.screenshot("builder-counting")
    cancel.press("Enter")
    total.get_by_text("Not counted.", exact=True).wait_for()
    expect(total).not_to_contain_text(counted)
    # The same button, and so the focus is still on it.
    focused_on(page, "Retry")
    notebook.run_cell(2)
    total.get_by_role("button", name="Retry").press("Enter")
    form.locator(".nbext-big").wait_for()
    # The button is hidden, and the focus is on the first of the form.
    focused_on(page, "Undo")


def test_the_options_of_all_conditions_are_a_line_whose_fields_offer_the_columns_of_the_rows(
    open_notebook,
):
    notebook = open_notebook('import nbext\nnbext.segment_form({"token": {"token": "UNI"}})')
    page, form = notebook.page, notebook.page.locator(".nbext-form").first
    notebook.run_cell(0)
    options = form.get_by_role("button", name="Options")
    options.click()
    focused_on(page, "As of")
    # The fields that are folded are reached by keys, too.
    go_to(page, "+ more")
    page.keyboard.press("Enter")
    go_to(page, "Order by")
    page.keyboard.type("uni")
    form.get_by_role("option", name="UNI_balance, largest first").click()
    go_to(page, "Columns")
    for typed, name in (("first", "firstSeen"), (", TRA", "transfers")):
        page.keyboard.type(typed)
        form.get_by_role("option", name=name).first.click()
    notebook.screenshot("builder-options")
    page.keyboard.press("Escape")
    form.get_by_label("Order by").wait_for(state="detached")
    focused_on(page, "Optionsorder by -UNI_balance · columns firstSeen, transfers")
    expect(form.locator(".nbl-json")).to_have_value(re.compile("transfers"))
    assert json.loads(form.locator(".nbl-json").input_value()) == {
        "token": {"token": "UNI"},
        "orderBy": "-UNI_balance",
        "columns": ["firstSeen", "transfers"],
    }
    # There they are always: no key removes or moves them.
    for key in ("Delete", "Alt+ArrowDown"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowDown")
    focused_on(page, "TokenUNI")
    expect(form.locator(".nbext-bad")).to_have_count(0)


def test_two_views_of_one_builder_show_the_same_lines_and_open_them_together(open_notebook):
    notebook = open_notebook(THREE.replace("\nnbext", "\nform = nbext") + "\nform", "form")
    page = notebook.page
    first, second = (page.locator(".nbext-form").nth(index) for index in range(2))
    notebook.run_cell(0)
    notebook.run_cell(1)
    second.locator(".nbl-top .nbl-summary").nth(2).wait_for()
    first.get_by_role("button", name="Remove").first.click()
    second.get_by_text("Removed: Token USDC").wait_for()
    for form in (first, second):
        check_symbols(form, NAMES[1:])
    second.get_by_role("button", name="Undo").first.click()
    first.get_by_text("Removed: Token USDC").wait_for(state="detached")
    for form in (first, second):
        check_symbols(form, NAMES)
