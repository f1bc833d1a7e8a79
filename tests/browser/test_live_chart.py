"""Charts that are pressed: a mark opens its wallets and their segment as a cell, by mouse and by keys alone."""

from __future__ import annotations

import json
import re

from tests.browser.hostile import names
from tests.browser.test_accessibility import TALL, WITH_A_HEIGHT, looked_at

LOOP = (
    '%load_ext nbext\n%nbext search "bored ape"',
    "import nbext\nnbext.profile(segment).chart()",
    "rows.columns[0], len(rows)",
)
PICTURE = ".jp-RenderedVegaCommon5, .vega-embed"


def test_search_build_chart_press_rows_and_a_segments_cell_follow_without_a_key_typed(
    open_notebook,
):
    notebook = open_notebook(*LOOP)
    page = notebook.page
    notebook.run_cell(0)
    search = page.locator(".nbext-form").first
    search.locator(".nbext-name", has_text="BoredApeYachtClub").first.click()
    search.get_by_role("button", name="Build from this").click()
    search.locator(".nbext-run").click()
    search.get_by_text("segment holds", exact=False).wait_for()
    notebook.run_cell(1)
    live = page.locator(".nbext-form:has(> div > .nbext-chart)")
    bar = live.locator(".nbext-press").first
    words = bar.get_attribute("aria-label")
    bar.click()
    where = live.locator(".nbt-where")
    where.wait_for()
    rows = where.inner_text()
    # Of the mark that was pressed, and nothing else: the share that its name has.
    assert 0 < int(rows.split()[0]) < 202
    live.get_by_text(f"{words}: {rows}").wait_for()
    live.get_by_role("button", name="Store as variable").click()
    live.get_by_text(f"rows = {rows}", exact=False).wait_for()
    notebook.run_cell(2)
    assert notebook.output(2) == f"('address', {rows.split()[0]})"
    live.get_by_role("button", name="Insert cell").click()
    notebook.wait_for_cells(len(LOOP) + 1)
    assert notebook.sources()[2].startswith("%%segment_query\n{")
    notebook.run_cell(2)
    found = re.findall(r"\b0x[0-9a-f]{40}\b", notebook.output(2))
    assert (len(found), len(set(found))) == (int(rows.split()[0]),) * 2
    # By keys alone: the mark below, which Enter presses.
    bar.focus()
    page.keyboard.press("ArrowDown")
    below = live.locator(".nbext-press:focus")
    words = below.get_attribute("aria-label")
    assert words == live.locator(".nbext-press").nth(1).get_attribute("aria-label")
    page.keyboard.press("Enter")
    live.get_by_text(f"{words}: ").wait_for()
    assert live.locator('.nbext-chart [tabindex="0"]').count() == 1
    notebook.screenshot("live-loop")


HOSTILE = names("http://127.0.0.1:9")
CELLS = (
    f"""import json
import pandas as pd
import nbext
%load_ext nbext
names = json.loads({json.dumps(HOSTILE)!r})
some = dict(zip(names[:6], ["BAYC", "MAYC", "AZUKI", "UNI", "DAI", "USDC"]))
compared = nbext.overlap(some)
compared.chart()""",
    "from dataclasses import replace\n"
    "from nbext.analysis import charts\n"
    "drawn = charts.bars(names, range(len(names), 0, -1), 'Wallets of many names', names[1], "
    "nbext.core.provenance.Provenance())\n"
    "replace(drawn, of_cell=lambda row, _: compared.segment(names[0], names[1])).live()",
)


def test_hostile_names_are_text_in_every_mark_and_axe_finds_nothing_in_either_theme(open_notebook):
    notebook = open_notebook(*CELLS)
    page = notebook.page
    page.set_viewport_size(TALL)
    page.add_style_tag(content=WITH_A_HEIGHT)
    notebook.run_all()
    charts = page.locator(".nbext-chart")
    charts.nth(1).wait_for()
    # The picture beside each is drawn by the front end, and hidden once the live one is there.
    assert page.locator(PICTURE).count() == 0 or not page.locator(PICTURE).first.is_visible()
    assert charts.nth(1).locator(".nbext-press").count() == len(HOSTILE)
    for at in range(2):
        charts.nth(at).locator(".nbext-press").nth(1).click()
        page.locator(".nbt-where").nth(at).wait_for()
    assert (
        page.locator(
            ".nbext-form img, .nbext-form script, .nbext-form iframe, .nbext-form a"
        ).count()
        == 0
    )
    found = {}
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        found[theme] = looked_at(page, ".nbext-form:has(.nbext-chart)")
        notebook.screenshot(f"live-{theme.split()[-1].lower()}")
    assert found == dict.fromkeys(found, ([], []))
    assert page.evaluate("() => window.pwned === undefined")
