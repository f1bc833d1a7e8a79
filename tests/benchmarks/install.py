"""What installing brings, and a newcomer's way: from a fresh environment to the first DataFrame, as the README says.

The wheel is built, and installed in new environments, from what pip has fetched before and with nothing fetched
before. The newcomer makes an environment, types the README's install line in a copy of this repository,
and runs the README's first cells in a real kernel that has only loopback to talk to.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

import nbformat

from tests.benchmarks.measure import Took
from tests.benchmarks.table import README, Row

REPO = README.parent
LOOPBACK_ONLY = REPO / "tests/release/loopback_only.py"
INSTALL_LINE = re.compile(r"<!-- the install line -->\n```bash\n(.*)\n```")
CELLS = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Installed:
    """What one ``pip install`` brought: how long it took, and the megabytes of each distribution."""

    python: Path
    seconds: float
    megabytes: dict[str, float]

    @property
    def total(self) -> float:
        """All megabytes, the byte code that pip makes included."""
        return sum(self.megabytes.values())

    def largest(self, count: int) -> str:
        """Name the distributions that are largest, with their megabytes."""
        return ", ".join(
            f"{name} {size:.0f}" for name, size in list(self.megabytes.items())[:count]
        )


def installed(wheel: Path, extras: str, folder: Path, *, cold: bool = False) -> Installed:
    """Install the wheel with these extras in a new environment; cold: nothing was ever fetched before."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    wanted = f"nbext{extras} @ {wheel.as_uri()}"
    seconds = run(
        [python, "-m", "pip", "install", "-q", wanted], folder, folder if cold else Path.home()
    )
    (site,) = folder.glob("lib/python*/site-packages")
    sizes = {
        found.name: sum(_size(path.locate()) for path in found.files or ()) / 1e6
        for found in distributions(path=[str(site)])
        if found.name not in ("pip", "setuptools")
    }
    return Installed(python, seconds, dict(sorted(sizes.items(), key=lambda item: -item[1])))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@dataclass(frozen=True)
class Arrived:
    """How a newcomer got to a DataFrame: what was typed, and in how long."""

    commands: list[str]
    cells: list[str]
    seconds: float
    shown: str

    def __str__(self) -> str:
        return f"{self.seconds / 60:.1f} min, {len(self.commands)} commands and {len(self.cells)} cells"


def newcomer(folder: Path) -> Arrived:
    """Do what the README says, from nothing to its first table; nothing was ever fetched before."""
    clone, home = cloned(folder)
    readme = README.read_text("utf-8")
    (line,) = INSTALL_LINE.findall(readme)
    environment, cells = "python3 -m venv .venv", CELLS.findall(readme)[:3]
    activate = ". .venv/bin/activate"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, clone / "first.ipynb")
    seconds = run(["bash", "-c", f"{environment} && {activate} && {line}"], clone, home)
    execute = f"{activate} && exec jupyter nbconvert --execute --to markdown first.ipynb"
    seconds += run([sys.executable, LOOPBACK_ONLY, "bash", "-c", execute], clone, home)
    shown = (clone / "first.md").read_text("utf-8")
    return Arrived([environment, activate, line, "jupyter lab"], cells, seconds, shown)


def cloned(folder: Path) -> tuple[Path, Path]:
    """Return a copy of what a clone has outside of its tests, and an empty home folder."""
    clone, home = folder / "clone", folder / "home"
    home.mkdir(parents=True)
    shutil.copytree(REPO, clone, ignore=shutil.ignore_patterns(".*", "tests", "__pycache__"))
    return clone, home


def run(command: list[str | Path], cwd: Path, home: Path) -> float:
    """Run a command that must succeed, in a clean environment; return its seconds."""
    mine = ("NBEXT_", "PYTHON", "IPYTHON", "JUPYTER", "VIRTUAL_ENV")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    began = time.monotonic()
    ran = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environ | {"HOME": str(home)},
        text=True,
        capture_output=True,
        timeout=900,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"{command}\n{ran.stdout}{ran.stderr}")
    return time.monotonic() - began


def built(folder: Path) -> Path:
    """Build the source archive, and from it the wheel, as they would be published."""
    run([sys.executable, "-m", "build", "--outdir", folder, REPO], folder, folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each set of extras, and one for the newcomer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(folder)
        for extras in ("", "[local]"):
            warm = installed(wheel, extras, folder / f"warm{extras}")
            cold = installed(wheel, extras, folder / f"cold{extras}", cold=True)
            yield Row(
                f'`pip install "nbext{extras}"`, {len(warm.megabytes)} packages, fetched before',
                Took(warm.seconds, megabytes=warm.total),
                {"nothing fetched before": Took(cold.seconds), "largest, in MB": warm.largest(10)},
            )
        arrived = newcomer(folder / "newcomer")
        yield Row(
            "from a fresh environment to the first DataFrame, nothing fetched before", str(arrived)
        )
