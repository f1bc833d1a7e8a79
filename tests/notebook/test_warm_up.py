"""The warm-up: what it prepares, that nobody notices it, and its hazards: exits, forks, imports, what pandas sees."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from notebooks.example_files import write_example_files
from tests.notebook.kernels import running_kernel
from tests.notebook.slow_service import slow_service

THREADS = "import threading; print(sorted(one.name for one in threading.enumerate() if one.name.startswith('nbext-s')))"
LOADED = """
import os, sys, threading, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "nbext")
"""


@pytest.fixture
def environ(home, tmp_path, monkeypatch):
    """An environment in which the warm-up is on, with a data folder of its own."""
    monkeypatch.setenv("NBEXT_WARM_UP", "true")
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    return monkeypatch


@pytest.fixture
def kernel(environ):
    with running_kernel() as made:
        yield made


def until_warm(kernel):
    """Wait between cells, so that none runs while the libraries are imported."""
    time.sleep(3)
    until = time.monotonic() + 60
    while "nbext-service" not in kernel.run(THREADS).printed and time.monotonic() < until:
        time.sleep(1)


def run(code, *words):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_the_service_starts_without_a_call_and_without_a_word(kernel):
    until_warm(kernel)
    assert kernel.run(THREADS).printed == "['nbext-service']\n"
    first = kernel.run("%token ethereum USDC -o usdc").printed.splitlines()
    assert [line.partition(":")[0] for line in first] == ["nbext", "usdc = 1 row, 17 columns"]


@pytest.mark.slow
def test_pandas_imported_between_two_cells_displays_tables_as_in_any_notebook(kernel):
    until_warm(kernel)
    assert kernel.run("import sys; print('pandas' in sys.modules)").printed == "True\n"
    assert (
        kernel.run("import pandas as pd; print(pd.options.display.max_columns)").printed == "20\n"
    )


@pytest.mark.slow
def test_pandas_imported_by_a_service_that_a_cell_started_does_so_too(environ):
    environ.setenv("NBEXT_WARM_UP", "false")
    with running_kernel() as kernel:
        kernel.run("%nbext connect")
        time.sleep(7)  # the service imports the language after five
        assert (
            kernel.run("import pandas as pd; print(pd.options.display.max_columns)").printed
            == "20\n"
        )


@pytest.mark.slow
def test_a_setting_turns_it_off(environ):
    environ.setenv("NBEXT_WARM_UP", "false")
    with running_kernel() as kernel:
        time.sleep(2)
        assert kernel.run(THREADS).printed == "[]\n"
        assert kernel.run("import sys; print('pandas' in sys.modules)").printed == "False\n"


@pytest.mark.slow
def test_beside_a_remote_service_nothing_is_started_or_asked(environ):
    environ.setenv("NBEXT_API_KEY", "key")
    with slow_service() as service:
        environ.setenv("NBEXT_BASE_URL", service.url)
        with running_kernel() as kernel:
            time.sleep(2)
            assert kernel.run(THREADS).printed == "[]\n"
        assert service.asked == []


MOMENTS = pytest.mark.parametrize(
    "seconds", [0.3, *(pytest.param(s, marks=pytest.mark.load) for s in (0, 0.8))]
)


@pytest.mark.slow
@MOMENTS
def test_python_may_end_at_any_moment_of_it(environ, seconds):
    done = run(LOADED + f"time.sleep({seconds})")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.slow
@MOMENTS
def test_a_fork_at_any_moment_of_it_has_no_module_half_imported(environ, seconds):
    child = "import pandas, duckdb, fastapi, nbext; nbext.connect().tokens('ethereum', 'UNI'); os._exit(7)"
    code = f"time.sleep({seconds})\nif os.fork() == 0:\n    {child}\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"
    done = run(LOADED + code)
    assert done.stdout.splitlines()[-1:] == ["7"], done.stderr


@pytest.mark.slow
def test_the_next_cell_may_import_a_part_of_what_it_imports(environ):
    cell = "from pandas.api.types import is_numeric_dtype; print(is_numeric_dtype('int64'))"
    done = run(LOADED + f"shell.run_cell({cell!r}).raise_error()")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["True"]), done.stderr


@pytest.mark.slow
def test_a_magic_in_the_cell_that_loads_it_may_need_a_part_of_what_it_imports(environ, tmp_path):
    asked = '%segment {"nft": {"nft": "BAYC"}} --limit 1 --to bayc.csv'
    cell = f"%cd -q {tmp_path}\n%load_ext nbext\n{asked}"
    begun = LOADED.rpartition("shell.run_line_magic")[0]
    # Already there, so that the two threads meet in a package of ours.
    done = run(f"import pandas, pyarrow\n{begun}shell.run_cell({cell!r}).raise_error()")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "bayc.csv: 1 row" in done.stdout


@pytest.mark.slow
def test_what_fails_in_it_is_said_by_the_first_call(environ, tmp_path):
    (tmp_path / "data").write_text("a file, where the data folder belongs")
    with running_kernel() as kernel:
        time.sleep(3)
        assert kernel.run("1").printed == ""
        assert kernel.run("%token ethereum UNI").error.startswith("StorageError: ")


@pytest.mark.slow
def test_data_that_is_ingested_after_it_answers_the_first_call(kernel, tmp_path):
    until_warm(kernel)
    files = write_example_files(tmp_path / "export")
    ingest = ("ingest", str(tmp_path / "export" / "base"), "--data", str(tmp_path / "data"))
    done = run("import sys; from nbext.cli import main; sys.exit(main())", *ingest)
    assert done.returncode == 0, (done.stderr, files)
    printed = kernel.run("%token base USDC -o usdc").printed
    assert "synthetic sample" not in printed
    assert "base to block" in printed
