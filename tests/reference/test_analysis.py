"""The page on analysis is true: its examples run, one after the other, in a notebook over the sample."""

from __future__ import annotations

import re

import pytest

from tests.notebook.shells import loaded_shell
from tests.reference import FOLDER

PAGE = (FOLDER / "analysis.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def shell():
    with loaded_shell() as shell:
        shell.run("import nbext")
        yield shell


def test_the_examples_give_tables_with_rows(shell):
    for example in EXAMPLES:
        # A shell runs the lines of a cell as a notebook does, magics among them.
        assert shell.run(example).error is None
    found = {name: shell.ip.user_ns[name] for name in ("moved", "left", "more", "owners", "stay", "one", "held")}
    assert [name for name, table in found.items() if not len(table)] == []
    assert len(shell.ip.user_ns["young"]) > 3


def test_the_page_names_every_function_and_its_columns():
    from nbext import analysis

    assert [name for name in analysis.__all__ if f"`nbext.{name}(" not in PAGE] == []
