"""Forms without mouse and sight: every field has a name in Chromium's accessibility tree, and keys suffice."""

from __future__ import annotations

from typing import Any

from tests.browser.full_builder import FULL_BUILDER

# Not those that are open inside of others.
TOP = ".nbext-view > .nbext-form"
FIELDS = "input, select, textarea, button"
ROLES = {"textbox", "searchbox", "combobox", "checkbox", "button", "spinbutton", "listbox"}
# As Chromium calls the line that unfolds what is below it.
UNFOLDS = "DisclosureTriangle"
ALL_FORMS = (
    FULL_BUILDER
    + """
from nbext.notebook.forms.card import ContractCard, HistoryCard
search = nbext.search_form("ape")
assert search.background.join(30)
search.pick(0)
assert search.background.join(30)
build = full_builder({"novel": {}})
rows = nbext.connect().execute_segment({"token": {"token": "USDC"}}, limit=30)
card, table = nbext.show(rows.head(3)), nbext.explore(rows)
table.to_segment()
token = ContractCard(nbext.connect(), nbext.connect().tokens("ethereum", "USDC"))
line = {"number": 1, "operator": "AND", "filters": '{"token": {"token": "USDC"}}', "matched": 30}
asked = HistoryCard(nbext.connect(), [(line, {"filters": {"token": {"token": "USDC"}}})])
display(search, nbext.signup_form(), build, card, table, token, asked)
"""
)

# Of a condition that the service's schema does not have.
NO_FIELDS = "No form fits this condition: change it in the JSON of all."
# Of a label its own words: a list has those of its choices inside.
FOCUSED = """() => {
    const [one, label] = [document.activeElement, document.activeElement.labels?.[0]];
    return ((label?.querySelector("span") || label || one).innerText || "").trim();
}"""


def named(page: Any, index: int) -> list[tuple[str, str]]:
    """The role and the accessible name of each field of a form, as Chromium tells a screen reader."""
    chromium = page.context.new_cdp_session(page)
    document = chromium.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    forms = chromium.send("DOM.querySelectorAll", {"nodeId": document, "selector": TOP})["nodeIds"]
    nodes = chromium.send("Accessibility.queryAXTree", {"nodeId": forms[index]})["nodes"]
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    return [(role, name) for role, name in told if role in {*ROLES, UNFOLDS}]


def test_every_field_of_every_form_has_a_name_for_screen_readers(open_notebook):
    notebook = open_notebook(ALL_FORMS)
    page = notebook.page
    notebook.run_cell(0)
    page.locator(".nbext-save").last.wait_for()
    builder = page.locator(TOP).nth(2)
    builder.get_by_text(NO_FIELDS).wait_for()
    builder.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    for index in range(7):
        unfold = {name for role, name in named(page, index) if role == UNFOLDS}
        assert unfold == ({"+ more"} if index == 2 else set())
        fields = [field for field in named(page, index) if field[0] != UNFOLDS]
        assert [field for field in fields if not field[1].strip()] == []
        if index == 2:  # a date's own parts are fields to Chromium
            continue
        assert (
            len(fields)
            == page.locator(TOP).nth(index).locator(FIELDS).locator("visible=true").count()
        )
    assert named(page, 0)[:4] == [
        ("textbox", "Name or symbol"),
        ("combobox", "Chain"),
        ("combobox", "What"),
        ("button", "Search"),
    ]
    assert named(page, 0)[-5:] == [
        ("textbox", "Variable"),
        ("button", "Use"),
        ("button", "Build from this"),
        ("textbox", "File"),
        ("button", "Save"),
    ]
    assert named(page, 1) == [
        ("textbox", "E-mail address"),
        ("checkbox", "I agree that this address is stored for the newsletter."),
        ("button", "Sign up"),
    ]
    assert [name for role, name in named(page, 3)] == ["File", "Save", "Edit"]
    assert named(page, 4)[3:6] == [
        ("button", "Hide"),
        ("button", "All columns"),
        ("button", "Clear filters"),
    ]
    texts = {name for role, name in named(page, 2) if role == "textbox"}
    picked = {name for role, name in named(page, 2) if role == "combobox"}
    assert {"Held since", "Balance, min", "The conditions as JSON", "Variable"} <= texts
    assert {"Token *", "NFT *", "+ Add", "+ Add to this group"} <= picked
    typed = [role for role, _ in named(page, 2) if role in ("textbox", "combobox", "listbox")]
    assert (
        len(typed)
        == builder.locator("input[type=text], textarea, select").locator("visible=true").count()
        > 40
    )


def focused_on(page: Any, name: str) -> None:
    """Wait until the focus is on the field or the button of that name."""
    page.wait_for_function(f"name => ({FOCUSED})() === name", arg=name)


def go_to(page: Any, name: str, key: str = "Tab") -> None:
    """Press Tab until the focus is on the field or the button of that name."""
    for _ in range(60):
        page.keyboard.press(key)
        if (page.evaluate(FOCUSED) or "").strip() == name:
            return
    raise AssertionError(f"{name!r} was not reached by {key}")


def test_search_sign_up_and_builder_are_worked_by_keys_alone(open_notebook):
    notebook = open_notebook(
        "import nbext\nnbext.search_form()",
        "nbext.signup_form()",
        "nbext.segment_form()",
        "print(mine['symbol'][0], len(segment))",
    )
    page, keys = notebook.page, notebook.page.keyboard
    for index in range(3):
        notebook.run_cell(index)
    search, signup, build = (page.locator(TOP).nth(index) for index in range(3))
    search.get_by_label("Name or symbol").focus()
    keys.type("bored")
    search.locator(".nbext-name:visible").first.wait_for()
    go_to(page, "BoredApeYachtClub")
    keys.press("Enter")
    search.locator(".nbext-use").wait_for()
    go_to(page, "Variable")
    keys.press("Control+a")
    keys.type("mine")
    go_to(page, "Use")
    keys.press("Space")
    search.get_by_text("mine is set.").wait_for()
    signup.get_by_label("E-mail address").focus()
    keys.type("by.keys@example.org")
    go_to(page, "I agree that this address is stored for the newsletter.")
    keys.press("Space")
    signup.locator(".nbext-signup:enabled").wait_for()
    go_to(page, "Sign up")
    keys.press("Enter")
    signup.get_by_text("Thank you.").wait_for()
    build.get_by_label("+ Add", exact=True).focus()
    keys.type("usdc")
    keys.press("Enter")
    # The focus is in what was added.
    focused_on(page, "Balance, min")
    keys.type("1")
    build.locator(".nbext-big").wait_for()
    # What is folded away, too.
    go_to(page, "+ more")
    keys.press("Space")
    go_to(page, "Unit")
    keys.type("t")
    build.get_by_text("unit token").wait_for()
    keys.press("Escape")
    build.get_by_label("Balance, min").wait_for(state="detached")
    focused_on(page, "TokenUSDC · balance >= 1 · unit token")
    go_to(page, "Rows, at most")
    keys.press("Control+a")
    keys.type("7")
    go_to(page, "Run")
    keys.press("Enter")
    build.get_by_text("segment holds 7 of", exact=False).wait_for()
    notebook.run_cell(3)
    assert notebook.output(3) == "BAYC 7"
