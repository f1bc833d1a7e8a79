"""The kept reference pages are what the code says today."""

from __future__ import annotations

import pytest

from tests.reference import FOLDER, PAGES, pages


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_says_today(name):
    kept = (FOLDER / name).read_text("utf-8")
    assert kept == pages()[name], "run: python -m tests.reference"


def test_every_page_is_made_from_the_code_or_is_one_of_the_written_guides():
    guides = {"analysis.md", "explorer.md", "from-sql.md", "limits.md", "node.md", "performance.md", "remote.md",
              "scaling.md", "team.md"}
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES) | guides
