"""Charts in JupyterLab, Notebook 7 and Voila: drawn offline, in the ink of the theme, and hostile names are text."""

from __future__ import annotations

import json

import pytest

from nbext.core.untrusted_text import visible
from tests.browser import lab
from tests.browser.hostile import names
from tests.browser.test_voila import offline_template

# No service listens there: a name that loads something would be seen among the page's requests.
NAMES = names("http://127.0.0.1:9")
CELLS = [
    f"""import json
import pandas as pd
from nbext.analysis import charts
from nbext.core.provenance import Provenance
names = json.loads({json.dumps(NAMES)!r})
about = Provenance(service=names[0])
charts.bars(names, range(len(names), 0, -1), "Wallets of many names", names[1], about)""",
    """some = names[:8]
table = pd.DataFrame([[place + other for other in range(8)] for place in range(8)], some, some)
charts.heatmap(table, "Wallets that two segments have in common", names[2], about)""",
    "charts.upset(names[20:28], range(8, 16), {1: 5, 6: 3, 255: 1}, about)",
    "charts.lorenz([70, 9, 1, 1], names[3], 0.5, about)",
]
PICTURES = ".jp-OutputArea svg.marks"


def ink(page):
    """Return the colours of the texts of the first picture, and of the page around it."""
    drawn = page.locator(f"{PICTURES} .role-axis-label text").first
    return [
        one.evaluate("one => getComputedStyle(one)[one.tagName === 'text' ? 'fill' : 'color']")
        for one in (drawn, page.locator(".jp-OutputArea-output").first)
    ]


def check(page):
    """Wait for all charts; each name is there as text, also under the pointer."""
    for place in range(len(CELLS)):
        page.locator(PICTURES).nth(place).wait_for()
    written = page.locator(PICTURES).first.text_content()
    assert [one for one in NAMES if visible(one, None)[:12] not in written] == []
    bars = page.locator(PICTURES).first.locator(".press_marks path")
    lab.expect(bars).to_have_count(len(NAMES))
    for place in (0, 2, 3):
        bars.nth(place).hover()
        page.locator("#vg-tooltip-element.visible").get_by_text(
            visible(NAMES[place], None)[:15]
        ).wait_for()
    assert page.locator("#vg-tooltip-element img, #vg-tooltip-element script").count() == 0


@pytest.mark.parametrize("application", ["doc/tree", "notebooks"])
def test_charts_are_drawn_offline_in_the_ink_of_the_theme_and_names_are_text(
    open_notebook, application
):
    notebook = open_notebook(*CELLS, application=application)
    page = notebook.page
    notebook.run_all()
    check(page)
    inks = []
    for theme, light in (("JupyterLab Light", "true"), ("JupyterLab Dark", "false")):
        page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        page.wait_for_function("is => document.body.dataset.jpThemeLight === is", arg=light)
        drawn, around = ink(page)
        assert drawn == around
        inks.append(drawn)
    assert len(set(inks)) == 2
    page.locator(PICTURES).nth(1).scroll_into_view_if_needed()
    notebook.screenshot(f"charts-dark-{application.split('/')[0]}")


def test_charts_are_drawn_under_voila_too(server, context):
    server.write("charts", CELLS)
    requests: list[str] = []
    with lab.voila(server, "charts", offline_template(server)) as url:
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        check(page)
        assert page.evaluate("() => window.pwned === undefined")
        page.screenshot(path=lab.ARTEFACTS / "charts-voila.png")
    assert lab.leaving(requests) == []
    assert [url for url in requests if ":9/" in url] == []
