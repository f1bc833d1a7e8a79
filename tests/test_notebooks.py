"""The notebooks are kept as a reader should find them: executed in order, without errors, and offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import PyFileConfigLoader

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STORIES = NOTEBOOKS
# The quickstart: the others run in the gate.
QUICK, FROM_A_NODE = {"01_quickstart.ipynb"}, "08_from_a_node.ipynb"
HIDDEN, CHART = "remove-cell", re.compile("image/png|data:image/png")


def run_where(path):
    """Return a notebook as a parameter, marked for where it runs."""
    mark = pytest.mark.node if path.name == FROM_A_NODE else pytest.mark.slow
    return pytest.param(path, id=path.name, marks=() if path.name in QUICK else mark)


@pytest.mark.parametrize("path", [run_where(path) for path in NOTEBOOKS])
def test_a_notebook_gives_what_it_shows(path):
    if path.name == FROM_A_NODE:
        pytest.importorskip("eth_tester")
        pytest.importorskip("vyper")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
    command += ["--nbval-sanitize-with", FOLDER.parent / "tests/nbval.cfg"]
    command += ["--nbval-cell-timeout", "120", path]
    # A reader names no folder: of a named one without data a client warns.
    environ = {name: value for name, value in os.environ.items() if name != "NBEXT_DATA_DIR"}
    environ["XDG_DATA_HOME"] = os.environ["NBEXT_DATA_DIR"]
    ran = subprocess.run(
        command, cwd=FOLDER.parent, env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


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


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_a_notebook_asks_in_its_first_line_and_answers_with_a_chart_in_the_last_cell_that_a_reader_sees(
    path,
):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].source.splitlines()[0].endswith("?")
    shown = [cell for cell in cells if HIDDEN not in cell.metadata.get("tags", [])]
    assert any(CHART.search(str(output.get("data", {}))) for output in shown[-1].outputs)
    assert not any("assert " in cell.source for cell in shown)
    # In JupyterLab a hidden cell is folded; a page that `html_page.py` makes has none.
    assert all(
        cell.metadata["jupyter"] == {"source_hidden": True} for cell in cells if cell not in shown
    )


def test_a_page_leaves_out_the_cells_that_only_check_and_wraps_long_lines():
    settings = PyFileConfigLoader("html_page.py", path=str(FOLDER)).load_config()
    page, _ = HTMLExporter(config=settings).from_filename(str(NOTEBOOKS[0]))
    assert "Quickstart: who holds what?" in page
    assert f"celltag_{HIDDEN}" not in page
    assert "assert" not in page.split("<body", 1)[1]
    # As a style, not as its text: nbconvert escapes what a raw cell holds.
    assert "<style>.highlight pre" in page


@pytest.mark.slow
@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_a_page_says_in_words_what_each_of_its_pictures_shows(path):
    settings = PyFileConfigLoader("html_page.py", path=str(FOLDER)).load_config()
    page, _ = HTMLExporter(config=settings).from_filename(str(path))
    words = re.findall(r'<img alt="([^"]*)"', page)
    assert len(words) == page.count('src="data:image/png;base64,') > 0
    # nbconvert's words for a picture that has none are three dozen letters.
    assert min(map(len, words)) > 60
    assert not any("No description" in one for one in words)


def test_a_page_runs_the_hidden_cells_before_it_leaves_them_out():
    settings = PyFileConfigLoader("html_page.py", path=str(FOLDER)).load_config()
    settings.ExecutePreprocessor.enabled = True
    hidden, shown = (
        new_code_cell("word = 'set'", metadata={"tags": [HIDDEN]}),
        new_code_cell("print(word * 2)"),
    )
    page, _ = HTMLExporter(config=settings).from_notebook_node(new_notebook(cells=[hidden, shown]))
    assert "setset" in page
    assert f"celltag_{HIDDEN}" not in page


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_every_file_that_a_notebook_links_to_is_beside_it(path):
    words = "".join(
        cell.source
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    )
    links = re.findall(r"\]\(((?!https?:)[^)#]+)", words)
    # With `nbext examples` the notebooks arrive without the rest of the repository.
    assert [link for link in links if not (FOLDER / link).is_file() or "/" in link] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_tables_and_a_picture_and_names_no_path_of_a_machine(path):
    text = path.read_text("utf-8")
    assert "text/html" in text
    assert "image/png" in text
    assert not any(place in text for place in ("/home/", "/root/", "/Users/", "/tmp/"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_printed_notebook_cuts_no_line_of_code(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    lines = [line for cell in cells for line in cell.source.splitlines()]
    # What a page of nbconvert's has room for, in A4 as PDF.
    assert [line for line in lines if len(line) > 73] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_keeps_no_live_forms_so_that_their_static_twins_are_seen(path):
    # Restored from kept state a form hides its twin, and its buttons reach no kernel.
    assert "widgets" not in nbformat.read(path, as_version=4).metadata


def test_there_is_a_quickstart():
    assert NOTEBOOKS[0].name == "01_quickstart.ipynb"
