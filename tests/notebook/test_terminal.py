"""nbext in IPython's terminal, as a process of its own: tables are text, and nothing waits for a page."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
SEGMENT = '%segment {"token": {"token": "UNI", "balance": {"min": "100000"}}}'


def in_a_terminal(tmp_path, *lines):
    """Return what IPython prints of some lines that are typed into it."""
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
        input="\n".join(["%load_ext nbext", *lines, ""]),
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "NBEXT_PROGRESS": "false"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout


def test_explore_shows_the_table_of_the_same_query(tmp_path):
    said = in_a_terminal(tmp_path, SEGMENT, f"{SEGMENT} --explore")
    first, second = (part.partition("\n\n")[0] for part in said.split("Out[")[1:])
    assert first.partition(": ")[2].strip() == second.partition(": ")[2].strip()
    assert first.count("0x") > 3
