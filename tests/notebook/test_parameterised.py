"""A notebook with parameters, run as papermill runs it: its defaults stay, and a cell after them overrides some."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import nbext

DEFAULTS = new_code_cell('token = "UNI"\nleast = "1000"', metadata={"tags": ["parameters"]})
QUERY = """%%segment_query --to out_{{token}}.parquet
{"token": {"token": {{token}}, "balance": {"min": {{least}}}}}"""
COUNT = '%segment {"token": {"token": {{token}}, "balance": {"min": {{least}}}}} --count'
SYMBOL = 'metadata = %token ethereum {{token}}\nprint(*metadata["symbol"])'


def executed(folder, *injected):
    """The last lines of what the query, the count and the token show, and the names of the files written."""
    cells = [new_code_cell("%load_ext nbext"), DEFAULTS]
    cells += [
        new_code_cell(
            "# Parameters\n" + "\n".join(injected), metadata={"tags": ["injected-parameters"]}
        )
    ]
    cells += [new_code_cell(source) for source in (QUERY, COUNT, SYMBOL)]
    # papermill adds no cell where no parameter is given.
    notebook = new_notebook(cells=[cell for cell in cells if cell.source != "# Parameters\n"])
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    texts = [
        "".join(out.get("text") or out["data"]["text/plain"] for out in cell.outputs)
        for cell in notebook.cells
    ]
    return [text.splitlines()[-1] for text in texts[-3:]], sorted(
        path.name for path in folder.iterdir()
    )


@pytest.fixture
def folder(home, tmp_path, monkeypatch):
    """Where the notebook runs; its kernel imports the nbext that is tested, wherever it runs."""
    monkeypatch.setenv("PYTHONPATH", str(Path(nbext.__file__).parents[1]))
    (made := tmp_path / "run").mkdir()
    return made


@pytest.mark.slow
def test_a_notebook_runs_with_the_parameters_that_were_injected_after_its_own(folder):
    outputs, files = executed(folder, 'token = "AAVE"')
    rows = pd.read_parquet(folder / "out_AAVE.parquet")
    assert list(rows.columns) == ["address", "AAVE_balance", "AAVE_balance_raw"]
    assert (outputs, files) == (
        [f"out_AAVE.parquet: {len(rows)} rows, 3 columns", str(len(rows)), "AAVE"],
        ["out_AAVE.parquet"],
    )


@pytest.mark.slow
def test_a_notebook_runs_with_its_own_parameters_where_none_are_injected(folder):
    outputs, files = executed(folder)
    assert (outputs, files) == (
        ["out_UNI.parquet: 262 rows, 3 columns", "262", "UNI"],
        ["out_UNI.parquet"],
    )
