"""The notebooks are kept as a reader should find them: executed in order, without errors, and offline."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_with_every_cell_executed_in_order(path):
    # nbval never compares a cell without an execution count: a stripped notebook would always pass.
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_says_at_its_top_what_is_synthetic_and_ends_in_an_assertion(path):
    cells = nbformat.read(path, as_version=4).cells
    assert "synthetic" in "".join(cell.source for cell in cells[:2])
    assert "assert " in [cell for cell in cells if cell.cell_type == "code"][-1].source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_tables_and_a_picture_and_names_no_path_of_a_machine(path):
    text = path.read_text("utf-8")
    assert "text/html" in text
    assert "image/png" in text
    assert not any(place in text for place in ("/home/", "/root/", "/Users/", "/tmp/"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_keeps_no_live_forms_so_that_their_static_twins_are_seen(path):
    # Restored from kept state a form hides its twin, and its buttons reach no kernel.
    assert "widgets" not in nbformat.read(path, as_version=4).metadata


def test_there_is_a_quickstart():
    assert NOTEBOOKS[0].name == "01_quickstart.ipynb"
