"""A kernel that is restarted under a form: the form says so, its cell brings it back, and nothing is sent twice."""

from __future__ import annotations

from tests.browser.lab import expect

SIGN_UP = "import nbext\nnbext.signup_form()"
SEARCH = "import nbext\nnbext.search_form('ape')"
ADDRESS = "after.a.restart@example.org"
CONSENT = "I agree that this address is stored for the newsletter."
MESSAGE = "form => getComputedStyle(form.closest('.nbext-view'), '::before').content"


def test_after_a_restart_a_form_says_that_it_is_dead_and_its_cell_brings_it_back(
    open_notebook, signups
):
    notebook = open_notebook(SIGN_UP, SEARCH)
    signup, search = (notebook.page.locator(".nbext-form").nth(index) for index in range(2))
    notebook.run_cell(0)
    notebook.run_cell(1)
    search.locator(".nbext-name:visible").first.wait_for()
    assert [form.evaluate(MESSAGE) for form in (signup, search)] == ["none", "none"]
    fill(signup)
    signup.locator(".nbext-signup").click()
    signup.get_by_text("Thank you.").wait_for()
    fill(signup)
    notebook.restart()
    notebook.page.locator(".nbext-gone").nth(1).wait_for()
    for form in (signup, search):
        assert form.evaluate(MESSAGE).startswith(
            '"The kernel of this form was restarted or is gone'
        )
    notebook.screenshot("restarted")
    # A click on what is dead reaches nobody, and the address that was typed is no longer in a widget that is saved.
    signup.locator(".nbext-signup").click(force=True)
    assert signups().count(ADDRESS) == 1
    notebook.run_cell(0)
    notebook.run_cell(1)
    search.locator(".nbext-name:visible").first.wait_for()
    expect(notebook.page.locator(".nbext-gone")).to_have_count(0)
    fill(signup)
    signup.locator(".nbext-signup").click()
    signup.get_by_text("Thank you.").wait_for()
    assert signups().count(ADDRESS) == 1


def fill(form):
    form.get_by_label("E-mail address").fill(ADDRESS)
    form.get_by_label(CONSENT).check()
    form.locator(".nbext-signup:enabled").wait_for()
