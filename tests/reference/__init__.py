"""The reference pages, made from the code they describe: ``python -m tests.reference`` writes them anew.

Each page is a function that returns Markdown; the OpenAPI document is JSON, and HTML. A test compares them with the
files in ``nbext/reference``, so that a new setting, error, condition, option or operation cannot stay undocumented, and
no output that a page shows can grow old.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "nbext" / "reference"
# file -> module with a function page() -> str
PAGES = {
    "magics.md": "tests.reference.magics_page",
    "commands.md": "tests.reference.commands_page",
    "segment-language.md": "tests.reference.language_page",
    "operations.md": "tests.reference.operations_page",
    "python.md": "tests.reference.python_page",
    "settings.md": "tests.reference.settings_page",
    "errors.md": "tests.reference.errors_page",
    "openapi.json": "tests.reference.openapi_page",
    "openapi.html": "tests.reference.openapi_html",
}
# Written by hand, but for the outputs of their cells.
FILLED = ("analysis.md", "from-sql.md")
NOTE = "<!-- Made from the code by `python -m tests.reference`; edit the code instead. -->\n"


def made(name: str) -> str:
    """Return the page of this file name as it should be."""
    if name in FILLED:
        from tests.reference.shown import filled

        return filled((FOLDER / name).read_text("utf-8"))
    page: Callable[[], str] = import_module(PAGES[name]).page
    return NOTE * name.endswith(".md") + page()


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; a bar or a line break inside a cell does not end it."""

    def line(cells: list[str]) -> str:
        return (
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
        )

    return "\n".join([line(headings), "|" + "---|" * len(headings), *map(line, rows)]) + "\n"
