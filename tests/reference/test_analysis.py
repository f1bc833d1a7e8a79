"""The page on analysis names every function; `test_pages.py` runs its examples and compares what they give."""

from __future__ import annotations

import nbext
from tests.reference import FOLDER

FUNCTIONS = [name for name, home in nbext._HOMES.items() if home.startswith("nbext.analysis")]
PAGE = (FOLDER / "analysis.md").read_text("utf-8")


def test_the_page_names_every_function_and_runs_each():
    assert [name for name in FUNCTIONS if f"`nbext.{name}(" not in PAGE] == []
    assert [
        name for name in FUNCTIONS if f"nbext.{name}(" not in PAGE.split("## Examples")[1]
    ] == []
