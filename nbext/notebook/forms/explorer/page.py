"""A table as one file that answers: opened from disk, offline, it sorts, filters, sums up and saves what it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nbext.analysis.charts import drawn_width
from nbext.analysis.segments import Result
from nbext.client.writer import target_of
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import html
from nbext.errors import NbextError
from nbext.notebook.forms.explorer.columns import columns_of
from nbext.notebook.forms.markup import code_html, facts_html, facts_of
from nbext.notebook.results.numbers import size_in_words
from nbext.notebook.views.view import STYLE, script_of

if TYPE_CHECKING:
    import pandas as pd

_MODULES = ("dom.js", "numbers.js", "histogram.js", "source.js", "table.js", "page.js")
# No address that a page or a name in it could ask: its one script and style by their hashes, pictures inside.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def write_page(
    table: pd.DataFrame, path: str, *, title: str | None = None, overwrite: bool = False
) -> None:
    """Write the page of a table into a file, whole or not at all; its title is by default the file's name."""
    target = target_of(path, overwrite=overwrite, endings=(".html",), option="path")
    columns = [one.described() | one.values() for one in columns_of(table, "page")]
    held = json.dumps({"columns": columns, "total": len(table)}, ensure_ascii=False).encode()
    # Digits of amounts and addresses hardly ever repeat: searching for that by itself makes them a tenth longer.
    deflate = zlib.compressobj(9, strategy=zlib.Z_FILTERED)
    # In base 85, which takes 1.25 letters for a byte; a script's text must have no comment of HTML in it.
    letters = base64.b85encode(deflate.compress(held) + deflate.flush())
    data = letters.replace(b"<", b",").decode()
    script, style = script_of(*_MODULES), STYLE
    policy = _POLICY.format(script=_digest(script), style=_digest(style))
    words = html(title or target.path.stem)
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{words}</title><style>{style}</style></head>'
        f'<body><main class="nbext-box nbext-form nbext-page"><h1>{words}</h1>{"".join(_about(table))}'
        f'<div id="nbext-table" role="status">Unpacking {html(size_in_words(table))} ...</div></main>'
        f'<script type="application/octet-stream" id="nbext-data" data-name="{html(target.path.stem, None)}.csv">'
        f"{data}</script>"
        f'<script type="module">{script}</script></body></html>\n'
    )
    with target.opened() as file:
        file.write(text.encode())


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _about(table: pd.DataFrame) -> Iterator[str]:
    """Yield what was asked and when, and the chart where the table has one."""
    known = Provenance.of(table)
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by nbext"
    yield facts_html([*facts_of(table), ("Written", written)])
    asked: Any = known.filters or list(known.segments)
    if asked:
        shown = {"operator": known.operator, "filters": asked} if known.filters else asked
        text = json.dumps(shown, indent=1, ensure_ascii=False)
        yield f"<details><summary>What was asked</summary>{code_html(text)}</details>"
    if isinstance(table, Result):
        try:
            chart = table.chart()
            # No SVG: the letters of another machine are wider than its picture.
            picture = chart.picture()
        except NbextError as error:
            yield f"<p>The chart is not part of this page: {html(error, None)}</p>"
        else:
            source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
            width = drawn_width(picture)
            yield f'<img alt="{html(chart.words, None)}" width="{width}" src="{source}">'
