"""The forms in marimo, which draws them in shadow roots and has no magics."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import pytest

import nbext
from tests.browser import lab

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("marimo") is None, reason="marimo is not installed"
)


def notebook_of_the_reference() -> str:
    """The notebook that the reference shows."""
    page = (Path(nbext.__file__).parent / "reference" / "team.md").read_text("utf-8")
    return textwrap.dedent(page[page.index("    import marimo") :])


def test_forms_and_charts_work_in_marimo_and_offer_neither_magics_nor_variables(
    server, context, tmp_path
):
    requests: list[str] = []
    (tmp_path / "holders.py").write_text(notebook_of_the_reference())
    with lab.marimo(server, tmp_path / "holders.py") as url:
        page = context.new_page()
        # Of a view nothing is heard before all cells have run.
        page.set_default_timeout(60_000)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        search, build, table, card, chart = (
            page.locator(".nbext-view > .nbext-form").nth(at) for at in range(5)
        )
        search.locator(".nbext-name").nth(1).click()
        search.locator(".nbext-facts").get_by_text("ApeCoin").wait_for()
        lab.expect(search.get_by_label("Variable")).to_be_hidden()
        search.get_by_role("button", name="Build from this").click()
        search.locator(".nbl-words").get_by_text("0x4d22", exact=False).wait_for()
        build.locator(".nbext-big").wait_for()
        matched = build.locator(".nbext-big").inner_text().removesuffix(" wallets match.")
        lab.expect(build.get_by_role("button", name="Copy")).to_have_text(["Copy JSON"])
        # A pick by keys: the focus is in a shadow root.
        build.get_by_label("+ Add", exact=True).press_sequentially("bayc", delay=40)
        build.get_by_role("option", name="BAYC").first.wait_for()
        page.keyboard.press("Enter")
        build.get_by_label("Count, min").wait_for()
        build.get_by_role("button", name="Undo").click()
        build.locator(".nbext-run").click()
        build.get_by_text(f"form.frame holds 1,000 of {matched} wallets", exact=False).wait_for()
        table.locator(".nbt-where").get_by_text(f"{matched} rows", exact=True).wait_for()
        lab.expect(card.locator(".nbext-facts td").first).to_have_text(matched)
        # A mark of a chart opens its wallets, and their segment is a cell to copy.
        mark = chart.locator(".nbext-press").nth(1)
        words = mark.get_attribute("aria-label")
        mark.click()
        rows = f"{words.rpartition(', ')[2]} rows"
        chart.locator(".nbt-where").get_by_text(rows, exact=True).wait_for()
        chart.get_by_text(f"{words}: {rows}").wait_for()
        chart.get_by_role("button", name="As a segment").click()
        chart.locator(".nbext-code").get_by_text('"BAYC"', exact=False).wait_for()
        page.set_viewport_size({"width": 1280, "height": 3200})
        page.screenshot(path=lab.ARTEFACTS / "marimo.png")
    assert lab.leaving(requests) == []
