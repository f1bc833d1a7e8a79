"""``python -m tests.charts FOLDER``: every chart of the sample as a PNG, and a page of all, on light and on dark.

Look at it after a change of `nbext.analysis.charts`: nothing may overlap, be cut off or be hard to read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

import nbext
from nbext.analysis.charts import Chart

WHALES = {"token": {"token": "UNI", "balance": {"min": "1000"}}}
BOTH = {
    **WHALES,
    "nft": {"nft": "BAYC"},
    "not": {"token": {"token": "USDC", "balance": {"min": "10000"}}},
}
_PAGE = """<!doctype html><meta charset="utf-8"><title>Charts of the sample</title>
<style>section {{ padding: 24px; }} figure {{ margin: 8px; display: inline-block; vertical-align: top; }}
.light {{ background: #fff; color: #111; }} .dark {{ background: #111; color: #eee; }}</style>
<section class="light">{charts}</section><section class="dark">{charts}</section>
"""


def charts() -> Iterator[tuple[str, Chart]]:
    """Yield a name and a chart of each kind, with few names and with many."""
    tokens = [*nbext.connect().search_nfts("a", type="token", limit=30)["address"].dropna()]
    few, many = nbext.overlap(["BAYC", "MAYC", "AZUKI", "UNI", "USDC"]), nbext.overlap(tokens)
    yield "overlap", few.chart()
    yield "overlap-of-many", many.chart()
    yield "share", nbext.overlap(["BAYC", "MAYC", "AZUKI"], share=True).chart()
    yield "lift", nbext.overlap(["BAYC", "MAYC", "AZUKI"], lift=True).chart()
    yield "upset", few.chart("upset")
    yield "upset-of-many", nbext.overlap(tokens[:12]).chart("upset")
    yield "changes", nbext.changes("UNI", "30d").chart()
    yield "trend", nbext.trend("UNI", every="1w", since="26w").chart()
    yield "trend-without-amounts", nbext.trend(BOTH, every="4w", since="26w").chart()
    for by in ("month", "week"):
        yield f"retention-by-{by}", nbext.retention("UNI", by, since="26w").chart()
    yield "concentration", nbext.concentration("UNI").chart()
    yield "profile", nbext.profile("BAYC").chart()
    yield "funnel", nbext.funnel(BOTH).chart()
    owner = nbext.overlap(["BAYC", "UNI"]).segment("BAYC", "UNI").open(3)["address"]
    yield "wallet", nbext.wallet(owner.iloc[0]).chart()
    yield "wallets", nbext.wallet(owner).chart()


def write(folder: Path) -> None:
    """Write the pictures and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, chart in charts():
        (folder / f"{name}.png").write_bytes(chart.picture())
        chart.save(str(folder / f"{name}.svg"))
        (folder / f"{name}.json").write_text(json.dumps(chart.spec, allow_nan=False), "utf-8")
        svg = (folder / f"{name}.svg").read_text("utf-8")
        shown.append(f"<figure>{svg}<pre>{escape(chart.text)}</pre></figure>")
    (folder / "index.html").write_text(_PAGE.format(charts="\n".join(shown)), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
