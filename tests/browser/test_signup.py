"""The sign-up form in JupyterLab: one sign-up for a double click, and no address left anywhere in the notebook."""

from __future__ import annotations

import json
import subprocess
import sys

FORM = "import nbext\nform = nbext.signup_form()\nform"
ADDRESS = "someone.unlikely+tag@example.org"


def test_a_double_click_and_enter_store_one_sign_up_and_the_notebook_does_not_hold_the_address(open_notebook, server):
    notebook = open_notebook(
        FORM,
        "sent, real = [], form.client.sign_up\n"
        "form.client.sign_up = lambda address: (sent.append(1), real(address))[1]",
        "print(len(sent), repr(form.email.value), form.consent.value, 'example.org' in form.email.entry.value)",
    )
    form = notebook.page.locator(".nbext-form")
    notebook.run_cell(0)
    notebook.run_cell(1)
    address = form.get_by_label("E-mail address")
    address.fill("half@")
    form.locator(".nbext-error").wait_for()
    notebook.screenshot("signup-wrong")
    assert form.locator(".nbext-signup").is_disabled()
    address.fill(ADDRESS)
    form.get_by_label("I agree that this address is stored for the newsletter.").check()
    form.locator(".nbext-signup:enabled").dblclick()
    form.get_by_text("Thank you.").wait_for()
    address.press("Enter")
    notebook.screenshot("signup")
    notebook.run_cell(2)
    assert notebook.output(2) == "1 '' False False"
    assert address.input_value() == ""
    saved = notebook.page.evaluate(
        "async () => JSON.stringify(window.jupyterapp.shell.currentWidget.context.model.toJSON())"
    )
    saved += json.dumps(notebook.save())
    assert "Thank you." in saved
    assert "someone.unlikely" not in saved
    stored = subprocess.run(
        [sys.executable, "-m", "nbext.cli", "signups", "export", "--data", str(server.home / "nbext")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert stored.stdout.count(ADDRESS) == 1
