"""The one table of all figures: a row for each question, ours beside the others'."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.benchmarks.measure import Took

README = Path(__file__).parents[2] / "README.md"
PAGE = README.parent / "nbext" / "reference" / "performance.md"
BEGINS, ENDS = "<!-- the figures -->\n", "<!-- the figures end -->\n"
# What is compared, and what the comparison hangs on.
NAMED = ("duckdb", "polars", "pandas", "pyarrow", "jupysql")


@dataclass(frozen=True)
class Row:
    """One question: what ours took, and what others took; a text says why there is no time."""

    question: str
    ours: Took | str
    beside: Mapping[str, Took | str] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """Return the row as the table shows it."""
        sides = [self.ours, *self.beside.values()]
        rounds = [str(side.rounds) for side in sides if isinstance(side, Took)]
        beside = [f"{name}: {_beside(self.ours, side)}" for name, side in self.beside.items()]
        alike = len(set(rounds)) == 1
        return [
            self.question,
            _shown(self.ours),
            "; ".join(beside),
            rounds[0] if alike else ", ".join(rounds),
        ]


def rendered(rows: Iterable[Row], when: str, machine: str) -> str:
    """Return the table in Markdown, under its date and machine."""
    lines = [
        ["question", "nbext", "beside it (times ours)", "rounds"],
        ["---"] * 4,
        *(row.cells() for row in rows),
    ]
    table = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    return f"{when}, on {machine}. Times are medians of the rounds in the last column, nbext's first.\n\n{table}\n"


def today() -> str:
    """Return the date of the figures."""
    now = datetime.now(UTC)
    return f"{now.day} {now:%B %Y}"


def machine() -> str:
    """Return what the figures hang on: processors, memory, and the versions of what is compared."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    model = f" ({_model()})" if _model() else ""
    return (
        f"{os.cpu_count()} cores{model}, {pages / 2**30:.0f} GB, {platform.system()}, "
        f"Python {platform.python_version()}, {', '.join(filter(None, map(_version, NAMED)))}"
    )


def write(table: str, page: Path = PAGE) -> None:
    """Replace the table in the page of figures."""
    before, rest = page.read_text("utf-8").split(BEGINS)
    page.write_text(f"{before}{BEGINS}{table}{ENDS}{rest.split(ENDS)[1]}", "utf-8")


def written(page: Path = PAGE) -> str:
    """Return the table in the page of figures."""
    return page.read_text("utf-8").split(BEGINS)[1].split(ENDS)[0]


def _beside(ours: Took | str, side: Took | str) -> str:
    if isinstance(ours, str) or isinstance(side, str):
        return _shown(side)
    times = [_times(side.seconds / ours.seconds)]
    if ours.megabytes and side.megabytes:
        times.append(f"{_times(side.megabytes / ours.megabytes)} the memory")
    return f"{_shown(side)} ({', '.join(times)})"


def _shown(side: Took | str) -> str:
    if isinstance(side, str):
        return side
    memory = "" if side.megabytes is None else f", {side.megabytes:,.0f} MB"
    return f"{_seconds(side.seconds)}{memory}"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.2g} ms" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""
