"""What the examples of the pages show: cells and commands, run over the sample, with their output as a page has it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from unittest import mock

import pandas as pd

from tests.notebook.shells import Shell, loaded_shell

# An output is there to be recognised: what is longer is cut, and says so.
MOST_LINES = 9
# What a page cannot have: a port, the number that a notebook gives a cell, a widget's place in memory, a version.
_CHANCE = (
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"^Out\[\d+\]: ?\n?", ""),
    (r".*<nbext\.\S+ object at 0x\w+>", ""),
    (r"nbext \d[\w.]*", "nbext VERSION"),
    (r"^versions .*", "versions  nbext VERSION, ..."),
)
_DISPLAY = {
    "display.width": 132,
    "display.max_columns": 12,
    "display.max_colwidth": 50,
    "display.max_rows": 4,
    "display.min_rows": 2,
}
_PAIR = re.compile(r"```python\n(.*?)```\n\n```text\n.*?```\n", re.DOTALL)


@contextlib.contextmanager
def sample() -> Iterator[Shell]:
    """A notebook's shell in an empty folder, over the sample and with nobody's settings."""
    with tempfile.TemporaryDirectory(prefix="nbext-pages-") as folder, contextlib.chdir(folder):
        own = {
            "NBEXT_DATA_DIR": f"{folder}/data",
            "NBEXT_PROGRESS": "false",
            "NBEXT_WARM_UP": "false",
        }
        with mock.patch.dict(os.environ, own), loaded_shell() as shell:
            # What a session says of its service at first.
            shell.value("%nbext connect")
            yield shell


def output(shell: Shell, cell: str) -> str:
    """Return what a cell shows, errors among it, without what differs from run to run."""
    with pd.option_context(*(each for option in _DISPLAY.items() for each in option)):
        ran = shell.run(cell)
    # A form counts on in a thread, which would outlive the sample.
    if background := getattr(ran.value, "background", None):
        background.drop()
        background.join(60)
    return cut(ran.printed)


def cut(text: str, most: int = MOST_LINES) -> str:
    """Return an output as a page has it."""
    for pattern, instead in _CHANCE:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(lines if len(lines) <= most else [*lines[: most - 1], "..."])


def filled(page: str) -> str:
    """Return a written page with the output of each cell in the block below it; the cells run one after the other."""
    with sample() as shell:
        shell.value("import nbext")
        return _PAIR.sub(
            lambda pair: f"```python\n{pair[1]}```\n\n```text\n{output(shell, pair[1])}\n```\n",
            page,
        )


def transcript(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a block of code: each cell or command, and its output indented below it."""
    blocks = []
    for asked, shown in pairs:
        indented = "\n".join(f"    {line}".rstrip() for line in shown.splitlines())
        blocks.append(f"{asked}\n{indented}\n" if indented else f"{asked}\n")
    return "```text\n" + "\n".join(blocks) + "```\n"
