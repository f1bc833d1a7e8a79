"""The first minute of a newcomer, by the clock: run by the gate, on a machine that has nothing else to do."""

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
import fastapi, uvicorn, requests, pandas, ibis.backends.duckdb
print(f"{time.monotonic() - start:.2f}")
"""


def seconds_of(code, folder):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return float(done.stdout.split()[-1])


@pytest.mark.load
def test_the_first_token_answers_within_three_seconds_of_loading(tmp_path, monkeypatch):
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    turns = [(seconds_of(MEASURE, tmp_path), seconds_of(IMPORTS, tmp_path)) for _ in range(3)]
    # Three seconds where importing takes 1.5; a machine that is busy or slower gets what it needs for that.
    assert min(first / max(1.0, imports / 1.5) for first, imports in turns) < 3, turns
