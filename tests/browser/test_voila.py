"""The search form under Voila: the same form, without a notebook around it."""

from __future__ import annotations

import importlib.util
from urllib.parse import unquote

import pytest

from tests.browser import lab

pytestmark = pytest.mark.skipif(importlib.util.find_spec("voila") is None, reason="voila is not installed")


def test_the_search_form_works_under_voila(server, context):
    server.write("dashboard", ["import nbext\nnbext.search_form()"])
    requests: list[str] = []
    with lab.voila(server, "dashboard") as url:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        form = page.locator(".nbext-form")
        form.get_by_label("Name or symbol").press_sequentially("ape", delay=40)
        form.get_by_role("button", name="BoredApeYachtClub").click()
        form.get_by_label("Variable").fill("mine")
        form.get_by_role("button", name="Use").click()
        form.get_by_text("mine holds it.").wait_for()
        page.screenshot(path=lab.ARTEFACTS / "voila.png")
        assert form.locator(".nbext-name:visible").all_inner_texts() == ["MutantApeYachtClub", "BoredApeYachtClub"]
        assert page.locator(".nbext-twin").is_hidden()
    # Voila's page asks for the stylesheets of its icons elsewhere (and gets none here); the form asks for nothing.
    voilas_own = (lab.share() / "voila" / "templates" / "lab" / "index.html.j2").read_text("utf-8")
    assert [url for url in lab.leaving(requests) if unquote(url) not in voilas_own] == []
