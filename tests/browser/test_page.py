"""A table as a page: opened from disk, offline, in both themes, with every hostile name in every place of it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nbext
from nbext.core.untrusted_text import visible
from tests.browser import hostile, lab
from tests.browser.test_accessibility import looked_at

TRAP = "http://127.0.0.1:9/trap"
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is missing")
UNI = 10**18


def table():
    """Amounts that no float holds, hostile names, a share, times, and what was asked, as hostile."""
    names = hostile.names(TRAP)
    rows = len(names)
    made = pd.DataFrame(
        {
            "address": [f"0x{place:040x}" for place in range(rows)],
            "UNI_balance": [float(place) for place in range(rows)],
            "UNI_balance_raw": [str(place * UNI + 1) for place in range(rows)],
            "name": names,
            "share": [place / 100 for place in range(rows)],
            "firstSeen": pd.date_range("2025-01-01", periods=rows, tz="UTC"),
            names[0]: [None, *range(rows - 1)],
        }
    )
    columns = [
        {"name": "UNI_balance", "unit": "token", "symbol": names[1]},
        {
            "name": "UNI_balance_raw",
            "type": "uint256",
            "unit": "raw",
            "decimals": 18,
            "symbol": names[1],
        },
    ]
    made.attrs["nbext"] = {
        "columns": columns,
        "filters": {"token": {"token": names[2]}},
        "operator": "AND",
        "warnings": [names[3]],
        "chain": names[4],
        "as_of": {"block": 12, "timestamp": names[5]},
        "segment_id": names[6],
    }
    return made


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_from_disk_answers_offline_and_every_name_in_it_is_text(context, tmp_path, theme):
    rows = table()
    file = tmp_path / "who's <b>.html"
    nbext.page(rows, file, title=hostile.names(TRAP)[7])
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.emulate_media(color_scheme=theme)
    page.goto(file.as_uri())
    where = page.locator(".nbt-where")
    where.get_by_text(f"{len(rows)} rows", exact=True).wait_for()
    page.locator(".nbt-bar").first.wait_for()
    assert page.title() == page.locator("h1").inner_text() == visible(hostile.names(TRAP)[7])
    # One stop of the Tab key is in the grid, however many cells it has.
    lab.expect(page.locator('[role=grid] [tabindex="0"]')).to_have_count(1)
    page.locator(".nbt-head", has_text="UNI_balance").locator("b").click()
    page.locator('[aria-sort="descending"]').wait_for()
    first = page.locator(".nbt-body .nbt-number").first
    lab.expect(first).to_have_attribute("data-exact", f"{len(rows) - 1}.000000000000000001")
    lab.expect(first).to_have_text(f"{len(rows) - 1}")
    page.get_by_label("At least: UNI_balance").fill("30")
    page.get_by_label("At most: UNI_balance").fill("32")
    where.get_by_text(f"2 of {len(rows)} rows", exact=True).wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as saved:
        heads, *cells = list(csv.reader(saved))
    assert heads == ["address", "UNI_balance", *map(visible, rows.columns[3:])]
    assert [cell[1] for cell in cells] == ["31.000000000000000001", "30.000000000000000001"]
    page.get_by_role("button", name="Clear filters").click()
    where.get_by_text(f"{len(rows)} rows", exact=True).wait_for()
    page.get_by_label("Search names and addresses").fill("h0stile07")
    where.get_by_text(f"1 of {len(rows)} rows", exact=True).wait_for()
    assert page.evaluate("() => window.pwned") is None
    assert page.locator("img, iframe, svg, object, embed, form").count() == 0
    page.get_by_label("Search names and addresses").fill("")
    where.get_by_text(f"{len(rows)} rows", exact=True).wait_for()
    wrong, _ = looked_at(page, ".nbext-page")
    assert wrong == []
    assert (asked, said) == ([file.as_uri()], [])


def test_a_page_of_100_000_random_wallets_by_five_columns_has_6_mb_at_most_and_every_digit(
    context, tmp_path
):
    rows, random = 100_000, np.random.default_rng(1)
    addresses = [f"0x{random.bytes(20).hex()}" for _ in range(rows)]
    amounts = {
        name: [int(one * 10**9) * 10**9 + int(random.integers(10**9)) for one in whole]
        for name, whole in (
            ("UNI", random.lognormal(3, 3, rows)),
            ("LINK", random.lognormal(1, 2, rows)),
        )
    }
    table = pd.DataFrame(
        {
            "address": addresses,
            **{f"{name}_balance_raw": list(map(str, raw)) for name, raw in amounts.items()},
            "transfers": random.geometric(0.02, rows),
            "firstSeen": pd.to_datetime(
                random.integers(1_577_836_800, 1_735_689_600, rows), unit="s", utc=True
            ),
        }
    )
    raw = {"type": "uint256", "unit": "raw", "decimals": 18}
    table.attrs["nbext"] = {
        "columns": [{"name": f"{name}_balance_raw", "symbol": name, **raw} for name in amounts]
    }
    nbext.page(table, tmp_path / "wallets.html")
    assert (tmp_path / "wallets.html").stat().st_size <= 6_000_000
    page = context.new_page()
    page.goto((tmp_path / "wallets.html").as_uri())
    page.locator(".nbt-where").get_by_text("100,000 rows", exact=True).wait_for()
    page.locator(".nbt-head", has_text="UNI_balance").locator("b").click()
    page.locator('[aria-sort="descending"]').wait_for()
    most = max(range(rows), key=amounts["UNI"].__getitem__)
    exact = f"{amounts['UNI'][most] // UNI}.{amounts['UNI'][most] % UNI:018}".rstrip("0")
    first = page.locator('.nbt-body [data-row="0"]')
    lab.expect(first.nth(1)).to_have_attribute("data-exact", exact)
    lab.expect(first.nth(0)).to_have_attribute("data-exact", addresses[most])
    lab.expect(first.nth(3)).to_have_attribute("data-exact", str(table["transfers"][most]))
    lab.expect(first.nth(4)).to_have_attribute(
        "data-exact", f"{table['firstSeen'][most]:%Y-%m-%dT%H:%M:%SZ}"
    )


def test_a_number_that_says_which_one_and_one_without_end_are_written_as_in_a_notebooks_table(
    context, tmp_path
):
    ids = {"token_id": [1234567], "projectId": [1234567.0]}
    others = {"transfers": [1234567], "mean": [float("inf")], "share": [float("-inf")]}
    written = tmp_path / "ids.html"
    nbext.page(pd.DataFrame(ids | others), str(written))
    page = context.new_page()
    page.goto(written.as_uri())
    # Waited for: a browser under load draws the columns in sight more than once.
    cells = page.locator("[data-row='0']")
    lab.expect(cells).to_have_text(["1234567", "1234567", "1,234,567", "inf", "-inf"])
    page.wait_for_selector(".nbt-about:has-text('min 1234567 ')")
    page.close()


def test_a_pinned_column_stays_in_its_place_and_the_last_of_many_rows_is_at_the_end(
    context, tmp_path
):
    # So many rows are taller than a browser draws.
    rows = 310_000
    columns = {f"a column of a long name {place}": np.arange(rows) % 1000 for place in range(4)}
    nbext.page(pd.DataFrame(columns), tmp_path / "many.html")
    page = context.new_page()
    page.set_viewport_size({"width": 600, "height": 700})
    page.goto((tmp_path / "many.html").as_uri())
    first = page.locator(".nbt-body [data-at='0']").first
    lab.expect(first).to_have_text("0")
    page.get_by_role("button", name="Pin").click()
    lab.expect(first).to_have_class("nbt-cell nbt-number nbt-pinned")
    grid = page.get_by_role("grid")
    begin = first.bounding_box()["x"]
    for left in (15, 90, 300):
        grid.evaluate("(one, left) => { one.scrollLeft = left; }", left)
        page.wait_for_timeout(200)
        assert first.bounding_box()["x"] == begin
    grid.evaluate("(one) => { one.scrollTop = one.scrollHeight; }")
    last = page.locator(f"[data-at='0'][data-row='{rows - 1}']")
    lab.expect(last).to_have_text("999")
    cell, canvas = last.bounding_box(), page.locator(".nbt-canvas").bounding_box()
    assert round(cell["y"] + cell["height"]) in range(
        round(canvas["y"] + canvas["height"]) - 1, round(canvas["y"] + canvas["height"]) + 1
    )


def test_a_column_is_as_wide_as_its_edge_is_dragged_also_after_a_brush_that_ended_on_the_edge(
    context, tmp_path
):
    nbext.page(pd.DataFrame({"n": range(100), "m": range(100)}), tmp_path / "wide.html")
    page = context.new_page()
    page.goto((tmp_path / "wide.html").as_uri())
    head = page.locator(".nbt-head").first
    head.locator(".nbt-bar").first.wait_for()
    width = head.bounding_box()["width"]
    edge = head.locator(".nbt-grip").bounding_box()
    bar = head.locator(".nbt-bar").first.bounding_box()

    def dragged(start, x):
        page.mouse.move(start["x"] + 2, start["y"] + start["height"] - 4)
        page.mouse.down()
        page.mouse.move(edge["x"] + x, bar["y"] + 4, steps=5)
        page.mouse.up()

    dragged(bar, 4)
    assert head.bounding_box()["width"] == width
    dragged(edge, 62)
    assert abs(head.bounding_box()["width"] - width - 60) < 8
