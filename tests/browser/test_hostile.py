"""Forty hostile names in every field of every form and table: nothing runs, nothing is fetched, all is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nbext.notebook.escape import visible
from tests.browser import hostile as service


@pytest.fixture
def hostile() -> Iterator[service.Hostile]:
    with service.running() as running:
        yield running


CONNECT = """import itertools, nbext
client = nbext.connect("{url}", "a-key-that-must-not-be-shown")
def inside(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)
def type_into(form, names):
    "Put a name into each text field of a form, one after the other."
    for widget in inside(form.widget):
        if type(widget).__name__ in ("Text", "Textarea"):
            widget.value = next(names)
"""
BUILT = {"token": {"token": "refused"}, "all": [{"nft": {"nft": "x"}}], "novel <script>window.pwned=27</script>": {}}


def test_forty_hostile_names_run_nothing_fetch_nothing_and_are_shown_literally(open_notebook, server, hostile):
    names = hostile.names
    notebook = open_notebook(
        CONNECT.format(url=hostile.url),
        "search = nbext.search_form(client=client)\nsearch",
        "signup = nbext.signup_form(client=client)\nsignup",
        f"build = nbext.segment_form({BUILT!r}, client=client)\nbuild",
        "table = client.execute_segment({'token': {'token': 'x'}})\nnbext.show(table, client=client)",
        f"names = itertools.cycle({names!r})\n"
        "for form in [*[search] * 20, *[signup] * 40, build]: type_into(form, names)",
    )
    page = notebook.page
    for index in range(5):
        notebook.run_cell(index)
    search, signup, build, card = (page.locator(".nbext-form").nth(index) for index in range(4))
    # Every name as a result, and some of them picked.
    search.get_by_label("Name or symbol").fill("x")
    seen: list[str] = []
    for start in range(0, service.COUNT, 10):
        search.locator(".nbext-status").get_by_text(f"{start + 1} to {start + 10}").wait_for()
        seen += search.locator(".nbext-name:visible").all_inner_texts()
        search.locator(".nbext-name").nth(2).click()
        search.locator(".nbext-use").click()
        search.get_by_text("collection holds it.").wait_for()
        if start + 10 < service.COUNT:
            search.get_by_role("button", name="Next").click()
    assert seen == [visible(name, 80) for name in names]
    notebook.screenshot("hostile-search")
    # The service refuses the address, and says so with the address and hostile names in its words.
    signup.get_by_label("E-mail address").fill("refused@example.org")
    signup.get_by_label("I agree that this address is stored for the newsletter.").check()
    signup.locator(".nbext-signup:enabled").click()
    signup.locator("[role=alert]").get_by_text("the address is refused", exact=False).wait_for()
    # Every condition's words are hostile, the count is refused with hostile errors.
    build.locator(".nbext-error").get_by_text("h0stile02", exact=False).wait_for()
    for button in build.locator(".nbext-top-group > .nbext-adders button").all():
        button.click()
    build.get_by_label("Token *").first.fill("x")
    build.scroll_into_view_if_needed()
    notebook.screenshot("hostile-builder")
    card.locator(".nbext-csv").wait_for()
    shown = card.inner_text()
    assert [name for name in names if visible(name) not in shown] == []
    card.scroll_into_view_if_needed()
    notebook.screenshot("hostile-card")
    notebook.run_cell(5)
    page.wait_for_timeout(1000)
    assert page.locator(".nbext-form mjx-container, .nbext-form .MathJax, .nbext-twin mjx-container").count() == 0
    saved = notebook.save()
    notebook.check_nothing_left()
    assert "a-key-that-must-not-be-shown" not in str([cell["outputs"] for cell in saved["cells"]] + [saved["metadata"]])
    assert "refused@example.org" not in str(saved)
    # The same without a kernel, from the static twins.
    server.end_sessions()
    saved["metadata"].pop("kernelspec")
    server.write_saved("hostile-static", saved)
    again = open_notebook(name="hostile-static", kernel=False)
    again.page.locator(".nbext-twin").first.wait_for()
    again.page.wait_for_timeout(1000)
    assert visible(names[0]) in again.output(4)
    assert again.page.locator(".nbext-twin mjx-container").count() == 0
    again.screenshot("hostile-static")
    assert hostile.caught == []
    addresses = [body["email"] for body in hostile.of("/v1/signup/newsletter")]
    assert addresses == ["refused@example.org"]
