"""A temporary folder with example files of a chain, and `run`, which runs the nbext command there as a terminal would.

start()
run("nbext ingest export/ethereum --chain ethereum --data mine")
end()
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from example_files import write_example_files

_before = Path.cwd()


def start() -> None:
    """Go to a new folder in which `export` has what ethereum-etl and cryo write, of synthetic transfers."""
    os.chdir(tempfile.mkdtemp())
    for path in write_example_files("export"):
        print(path.as_posix())


def run(command: str) -> None:
    """Run a command line of nbext, and print what it prints, without the temporary folder's name."""
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "nbext.cli", *words], capture_output=True, text=True, check=False
    )
    print((done.stdout + done.stderr).replace(f"{Path.cwd()}{os.sep}", "").strip())


def end() -> None:
    """Go back, and remove the folder."""
    folder = Path.cwd()
    os.chdir(_before)
    shutil.rmtree(folder, ignore_errors=True)
