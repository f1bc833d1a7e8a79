"""The first minute of a newcomer, beside what the libraries alone take to import; the gate prints the seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEASURE = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
start = time.monotonic()
shell.run_cell("%load_ext nbext")
result = shell.run_cell("df = %token ethereum USDC")
assert list(shell.user_ns["df"]["symbol"]) == ["USDC"], result
print(f"{time.monotonic() - start:.2f}")
"""


# What no order of ours can avoid: the libraries themselves.
IMPORTS = """
import time
from IPython.core.interactiveshell import InteractiveShell
start = time.monotonic()
import fastapi, uvicorn, requests, pandas, duckdb
print(f"{time.monotonic() - start:.2f}")
"""


def seconds_of(code, folder, *words):
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, cwd=folder
    )
    return float(done.stdout.split()[-1])


@pytest.mark.load
def test_the_first_token_takes_at_most_three_times_what_its_libraries_take_to_import(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    turns = [(seconds_of(MEASURE, tmp_path), seconds_of(IMPORTS, tmp_path)) for _ in range(3)]
    print("seconds to the first token, and to import the libraries:", turns)
    assert min(first / imports for first, imports in turns) < 3, turns


FIRST_SEGMENT = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext nbext")
time.sleep(float(sys.argv[1]))
start = time.monotonic()
result = shell.run_cell('%%segment_query whales\\n{"token": {"token": "UNI", "balance": {"min": "1000"}}}')
seconds = time.monotonic() - start
assert len(shell.user_ns["whales"]) == 262, result
print(f"{seconds:.3f}")
"""


@pytest.mark.load
def test_the_first_segment_takes_less_than_half_the_time_when_it_comes_after_the_warm_up(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("NBEXT_WARM_UP", "true")
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    imports = max(1.0, min(seconds_of(IMPORTS, tmp_path) for _ in range(3)) / 1.5)
    warm = [seconds_of(FIRST_SEGMENT, tmp_path, str(2 * imports)) for _ in range(3)]
    cold = [seconds_of(FIRST_SEGMENT, tmp_path, "0") for _ in range(3)]
    print(
        f"seconds to the first segment: {warm} after the warm-up, {cold} right after loading; scale {imports:.2f}"
    )
    assert min(warm) < min(cold) / 2, (warm, cold, imports)
