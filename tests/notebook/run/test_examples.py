"""`nbext examples` and `%nbext examples`: the notebooks are copied with their helpers, and no change is lost."""

from __future__ import annotations

import pytest

from nbext.cli import main
from nbext.notebook.run import examples
from nbext.notebook.run.root import TOUR

NAMES = [path.name for path in examples.files()]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_notebooks_are_copied_with_their_helpers_and_without_what_only_tests_need(
    capsys, tmp_path
):
    assert main(["examples", "mine/here"]) == 0
    count = sum(name.endswith(".ipynb") for name in NAMES)
    assert (
        capsys.readouterr().out
        == f"mine/here: {count} notebooks. Open 01_quickstart.ipynb first.\n"
    )
    assert sorted(path.name for path in (tmp_path / "mine/here").iterdir()) == NAMES
    assert all(
        (tmp_path / "mine/here" / path.name).read_bytes() == path.read_bytes()
        for path in examples.files()
    )
    assert NAMES[0] == "01_quickstart.ipynb"
    assert "conftest.py" not in NAMES


def test_a_changed_notebook_stays_until_overwrite_is_given_and_nothing_else_is_copied_meanwhile(
    shell, tmp_path
):
    assert shell.run("%nbext examples").printed.startswith("nbext-examples: ")
    mine, gone = tmp_path / "nbext-examples" / NAMES[0], tmp_path / "nbext-examples" / NAMES[1]
    mine.write_text("my notes")
    gone.unlink()
    assert shell.error("%nbext examples") == (
        f"UsageError: nbext-examples has other files of these names: {NAMES[0]}. Nothing was copied. "
        "Name another folder, or add --overwrite to replace them."
    )
    assert (mine.read_text(), gone.exists()) == ("my notes", False)
    shell.value("%nbext examples --overwrite")
    assert mine.read_bytes() == examples.files()[0].read_bytes()
    # The same files again are no change.
    assert shell.run("%nbext examples nbext-examples").error is None


def test_a_folder_that_cannot_be_is_named(shell, tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        shell.error("%nbext examples file") == "StorageError: file cannot be written: File exists"
    )


def test_the_five_things_of_the_tour_are_the_first_of_the_help_and_run_in_their_order(shell):
    printed = shell.run("%nbext help").printed
    assert printed == shell.run("%nbext").printed
    # Whoever looks for the help of one command finds it in that of all.
    assert printed == shell.run("%nbext help set").printed
    assert [
        printed.index(f"  {number}. {what}:\n       {line}\n")
        for number, (what, line) in enumerate(TOUR, 1)
    ]
    assert printed.index(TOUR[-1][1]) < printed.index("Commands:")
    assert len(TOUR) == 5
    for _, line in TOUR:
        ran = shell.run(line)
        assert ran.error is None, (line, ran.shown_error)
