"""The forms under Voila: the same forms, without a notebook around them."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

import nbext
from tests.browser import lab

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("voila") is None, reason="voila is not installed"
)


def offline_template(server) -> str:
    """Install the template that the reference tells of; return its name."""
    page = (Path(nbext.__file__).parent / "reference" / "team.md").read_text("utf-8")
    told = page.split("voila/templates/offline")[1].partition("\n## ")[0]
    configuration, template = (
        textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n)+", told, re.MULTILINE)
    )
    folder = server.home / "data" / "voila" / "templates" / "offline"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html.j2").write_text(template)
    (folder / "conf.json").write_text(configuration)
    return "offline"


def test_the_search_form_works_under_voila_and_asks_nothing_of_others(server, context):
    server.write("dashboard", ["import nbext\nnbext.search_form()"])
    requests: list[str] = []
    with lab.voila(server, "dashboard", offline_template(server)) as url:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        form = page.locator(".nbext-form")
        form.get_by_label("Name or symbol").press_sequentially("ape", delay=40)
        form.get_by_role("button", name="BoredApeYachtClub").click()
        form.get_by_label("Variable").fill("mine")
        form.get_by_role("button", name="Use").click()
        form.get_by_text("mine is set.").wait_for()
        page.screenshot(path=lab.ARTEFACTS / "voila.png")
        found = ["MutantApeYachtClub", "ApeCoin", "BoredApeYachtClub"]
        lab.expect(form.locator(".nbext-name:visible")).to_have_text(found)
        lab.expect(page.locator(".nbext-snapshot")).to_be_hidden()
    assert lab.leaving(requests) == []


def test_the_other_forms_and_the_card_work_under_voila_too(server, context, signups):
    server.write(
        "audience",
        [
            "import nbext\nnbext.signup_form()",
            "nbext.segment_form({'token': {'token': 'USDC'}, 'nft': {'nft': 'BAYC'}})",
            "nbext.show(nbext.connect().execute_segment({'token': {'token': 'USDC'}, 'nft': {'nft': 'BAYC'}}))",
        ],
    )
    requests: list[str] = []
    with lab.voila(server, "audience", offline_template(server)) as url:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        signup, builder, card = (page.locator(".nbext-form").nth(index) for index in range(3))
        signup.get_by_label("E-mail address").fill("by.voila@example.org")
        signup.get_by_label("I agree that this address is stored for the newsletter.").check()
        signup.locator(".nbext-signup:enabled").click()
        signup.get_by_text("Thank you.").wait_for()
        counted = builder.locator(".nbext-big")
        counted.wait_for()
        matched = card.locator(".nbext-facts td").first.inner_text()
        assert counted.inner_text() == f"{matched} wallets match."
        lab.expect(builder.get_by_role("button", name="Copy cell")).to_be_visible()
        lab.expect(builder.locator(".nbext-insert")).to_have_count(0)
        builder.locator(".nbext-run").click()
        builder.get_by_text("segment holds", exact=False).wait_for()
        card.get_by_role("button", name="Save").click()
        card.get_by_text("Saved ", exact=False).wait_for()
        page.set_viewport_size({"width": 1000, "height": 2800})
        page.screenshot(path=lab.ARTEFACTS / "voila-all.png")
        lab.expect(page.locator(".nbext-snapshot:visible")).to_have_count(0)
    assert signups().count("by.voila@example.org") == 1
    assert lab.leaving(requests) == []
