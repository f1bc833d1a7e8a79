"""What ``nbext.`` offers, and what ``nbext?`` shows: how to begin, in lines that run."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import nbext
from tests.notebook.shells import loaded_shell

(EXAMPLES_IN_A_NOTEBOOK, EXAMPLES_IN_PYTHON) = re.findall(
    r"::\n\n((?:    .*\n|\n)+)", nbext.__doc__
)


def test_completion_offers_what_users_call_and_nothing_else():
    offered = [name for name in dir(nbext) if not name.startswith("_")]
    assert offered == sorted([*nbext.__all__, "load_ipython_extension", "unload_ipython_extension"])
    assert [name for name in offered if getattr(nbext, name).__doc__ is None] == []


def test_what_the_docstring_shows_runs():
    magics, segment = EXAMPLES_IN_A_NOTEBOOK.replace("    ", "").strip().split("\n\n")
    python = "\n".join(line[4:] for line in EXAMPLES_IN_PYTHON.splitlines())
    with loaded_shell() as shell:
        for cell in (magics, segment, python):
            ran = shell.run(cell)
            assert ran.error is None, f"{cell}\n{ran.shown_error}"
        assert shell.value("len(whales)") > 0


def test_each_example_in_a_docstring_gives_what_it_shows():
    folder, wrong, asked = Path(nbext.__file__).parent, [], 0
    for path in folder.rglob("*.py"):
        if ">>> " in path.read_text("utf-8"):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            found = doctest.testmod(import_module(name))
            wrong += [name] * found.failed
            asked += found.attempted
    assert wrong == []
    assert asked >= 50
