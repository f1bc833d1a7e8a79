"""The sign-up form in JupyterLab: one sign-up for a double click, and no address left anywhere in the notebook."""

from __future__ import annotations

import json
from contextlib import contextmanager

from tests.browser.lab import expect

FORM = "import nbext\nform = nbext.signup_form()\nform"
ADDRESS = "someone.unlikely+tag@example.org"


def test_a_double_click_and_enter_store_one_sign_up_and_the_notebook_does_not_hold_the_address(
    open_notebook, signups
):
    notebook = open_notebook(
        FORM,
        "sent, real = [], form.client.sign_up\n"
        "form.client.sign_up = lambda address: (sent.append(1), real(address))[1]",
        "print(len(sent), repr(form.email.value), form.consent.value)",
    )
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    notebook.run_cell(1)
    address = form.get_by_label("E-mail address")
    address.fill("half@")
    form.locator(".nbext-error").wait_for()
    notebook.screenshot("signup-wrong")
    expect(form.locator(".nbext-signup")).to_be_disabled()
    told = [
        address.get_attribute(f"aria-{name}") for name in ("invalid", "required", "describedby")
    ]
    assert (told[:2], form.locator(f"#{told[2]}").inner_text()) == (
        ["true", "true"],
        form.locator(".nbext-error").inner_text(),
    )
    address.fill(ADDRESS)
    form.get_by_label("I agree that this address is stored for the newsletter.").check()
    form.locator(".nbext-signup:enabled").dblclick()
    form.get_by_text("Thank you.").wait_for()
    # The button is switched off: the focus goes to the field.
    assert notebook.page.evaluate("document.activeElement.labels[0].innerText") == "E-mail address"
    address.press("Enter")
    notebook.screenshot("signup")
    notebook.run_cell(2)
    assert notebook.output(2) == "1 '' False"
    assert address.input_value() == ""
    saved = notebook.page.evaluate(
        "async () => JSON.stringify(window.jupyterapp.shell.currentWidget.context.model.toJSON())"
    )
    saved += json.dumps(notebook.save())
    assert "Thank you." in saved
    assert "someone.unlikely" not in saved
    assert signups().count(ADDRESS) == 1


def test_an_address_that_is_not_sent_is_in_no_saved_notebook_also_where_widgets_are_saved(
    open_notebook, server
):
    with saving_widgets(server):
        notebook = open_notebook(FORM, name="saving-widgets")
        form = fill(notebook)
        saved = notebook.save()
        states = json.dumps(saved["metadata"]["widgets"])
        assert "nbext-snapshot" in states
        where = json.dumps(saved)
        at = where.find("someone.unlikely")
        assert at < 0, where[max(0, at - 1500) : at + 300]
        notebook.screenshot("signup-unsent")
        form.locator(".nbext-signup:enabled").click()
        form.get_by_text("Thank you.").wait_for()
        assert "someone.unlikely" not in json.dumps(notebook.save())


def fill(notebook):
    """Run the form's cell if it is not there yet, and fill the form in without sending it."""
    form = notebook.page.locator(".nbext-form")
    if not form.count():
        notebook.run_cell(0)
    form.get_by_label("E-mail address").fill(ADDRESS)
    form.get_by_label("I agree that this address is stored for the newsletter.").check()
    form.locator(".nbext-signup:enabled").wait_for()
    return form


@contextmanager
def saving_widgets(server):
    """Tell JupyterLab to save the state of widgets with the notebook, for pages that are opened now."""
    setting = (
        server.home
        / "settings"
        / "@jupyter-widgets"
        / "jupyterlab-manager"
        / "plugin.jupyterlab-settings"
    )
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text('{"saveState": true}')
    try:
        yield
    finally:
        setting.unlink()
