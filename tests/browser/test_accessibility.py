"""axe-core finds nothing to mend in any form, in any of JupyterLab's themes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.test_keyboard import ALL_FORMS, NO_FIELDS

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

# JupyterLab keeps the last one for the tests after this.
THEMES = ["JupyterLab Dark", "JupyterLab Dark High Contrast", "JupyterLab Light"]
# To axe all that lies outside the window is hidden, and so is all below a body without a height, which JupyterLab's is:
# it then finds nothing, whatever the colours are.
TALL = {"width": 1280, "height": 12_000}
WITH_A_HEIGHT = "body { height: 100vh }"


def looked_at(page: Any, selector: str, least: int = 80) -> tuple[list[str], list[str]]:
    """What axe finds wrong below a selector, a line each; and of what it judged the contrast without seeing it.

    Of fewer than ``least`` texts it has not looked at what is there.
    """
    from axe_playwright_python.sync_playwright import Axe

    told = (
        Axe()
        .run(page, context=[selector], options={"resultTypes": ["violations", "passes"]})
        .response
    )
    wrong = [
        f"{rule['id']}: {node['html'][:160]}: {' '.join(node['failureSummary'].split())}"
        for rule in told["violations"]
        for node in rule["nodes"]
    ]
    contrasts = [
        node for rule in told["passes"] if rule["id"] == "color-contrast" for node in rule["nodes"]
    ]
    assert len(contrasts) > least
    unseen = [one for one in contrasts if one["any"][0]["data"].get("messageKey") == "hidden"]
    # What is folded away is not to be seen by anybody.
    return wrong, [one["html"] for one in unseen if page.locator(one["target"][0]).is_visible()]


# What is cut off by its own box or by that of its form, and has no title with the whole of it. What is for screen
# readers alone is one pixel wide.
CUT = """selector => [...document.querySelectorAll(selector)].flatMap(form => {
    const edge = form.getBoundingClientRect();
    const whole = e => e.closest('[title]:not([title=""])');
    const shown = [...form.querySelectorAll('*')].filter(e => e.offsetParent && e.clientWidth > 1 && !whole(e));
    const words = e => `${e.className}: ${(e.innerText || e.placeholder || '').slice(0, 60)}`;
    const measured = document.createElement('canvas').getContext('2d');
    return shown.filter(e => {
        const style = getComputedStyle(e), box = e.getBoundingClientRect();
        measured.font = style.font;
        const fits = (text, margin) => measured.measureText(text).width <= e.clientWidth - margin;
        if (e.matches('input')) return !e.value && !fits(e.placeholder, 14);
        if (e.matches('select')) return !e.multiple && !fits(e.selectedOptions[0]?.text, 24);
        const clips = ['hidden', 'clip'].includes(style.overflowX) && e.scrollWidth > e.clientWidth + 1
            || ['hidden', 'clip'].includes(style.overflowY) && e.scrollHeight > e.clientHeight + 1;
        const within = e.children.length || e.closest('.nbext-scroll');
        return clips || (!within && (box.right > edge.right + 1 || box.left < edge.left - 1));
    }).map(words);
})"""


def test_axe_finds_no_violation_in_any_form_in_any_theme(open_notebook):
    notebook = open_notebook(ALL_FORMS)
    page = notebook.page
    page.set_viewport_size(TALL)
    page.add_style_tag(content=WITH_A_HEIGHT)
    notebook.run_cell(0)
    page.locator(".nbext-save").last.wait_for()
    page.locator(".nbext-view > .nbext-form").nth(2).get_by_text(NO_FIELDS).wait_for()
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    # A field that is wrong, with its error below it.
    address = page.get_by_label("E-mail address")
    address.fill("nobody")
    address.press("Enter")
    page.locator(".nbext-field .nbext-error").wait_for()
    found = {}
    for theme in THEMES:
        page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
        )
        page.locator(f"body[data-jp-theme-name='{theme}']").wait_for(state="attached")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        found[theme] = looked_at(page, ".nbext-form")
    assert found == dict.fromkeys(THEMES, ([], []))
    # Search, sign-up and builder; a snapshot follows each form.
    for width in (480, 700, 1280):
        page.set_viewport_size({**TALL, "width": width})
        page.wait_for_timeout(500)
        assert page.evaluate(CUT, ".jp-OutputArea-child:nth-child(-n+6) .nbext-form") == [], width
    page.add_style_tag(content=".nbext-form .nbext-note { color: #999; background: #888 }")
    assert "color-contrast" in looked_at(page, ".nbext-form")[0][0]
