"""Data from the notebook: files in, what they are, out again, and back to the sample, without a restart."""

from __future__ import annotations

import pytest

from tests.notebook.shells import loaded_shell
from tests.notebook.test_notes import HEADER, ONE, TOKEN, TWO, ZERO

COUNT = f'%segment {{"token": {{"token": "{TOKEN}"}}}} --count'


def written(folder, name, *owners):
    rows = [
        f"{TOKEN},{ZERO},{owner},{10**30},0x{int(owner, 16):064x},{at},{at},{1_700_000_000 + at}\n"
        for at, owner in enumerate(owners, 1)
    ]
    (folder / name).write_text(HEADER + "".join(rows))
    return folder / name


@pytest.mark.slow
def test_files_are_ingested_listed_and_removed_from_the_notebook(tmp_path, monkeypatch):
    monkeypatch.delenv("NBEXT_BASE_URL", raising=False)
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "unused"))
    first, second = written(tmp_path, "a.csv", ONE), written(tmp_path, "b.csv", ONE, TWO)
    with loaded_shell() as shell:
        assert "synthetic sample" in shell.run("%token ethereum UNI -o t").printed
        shell.run(f"%nbext set data_dir {tmp_path / 'data'}")
        assert shell.run("%nbext sources").printed.endswith("has no files that were ingested.\n")
        shell.ip.user_ns["files"] = str(first)
        assert "1 row read" in shell.run("%nbext ingest {{files}} --chain ethereum").printed
        assert shell.value(COUNT) == 1
        shell.run(f"%nbext ingest {second} --chain ethereum")
        assert shell.value(COUNT) == 2
        listed = shell.run("%nbext sources").printed
        assert [name in listed for name in ("a.csv", "b.csv")] == [True, True]
        shell.run("%nbext remove b.csv")
        assert shell.value(COUNT) == 1
        shell.run("%nbext remove --all")
        assert shell.error(COUNT).startswith("InvalidSegment")
        assert shell.value('%segment {"token": {"token": "UNI"}} --count') == 1_002


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("%nbext ingest no.csv", "IngestError: "),
        (
            "%nbext ingest a.csv --chian ethereum",
            "UsageError: %nbext ingest: unrecognized arguments: --chian ethereum. `%nbext ingest --help`",
        ),
        (
            "%nbext remove",
            "UsageError: Name a file of `nbext sources`, or write --all for every file.",
        ),
    ],
)
def test_a_wrong_line_is_refused_as_the_shell_refuses_it(shell, line, error):
    assert shell.error(line).startswith(error)


def test_help_lists_the_options_of_the_shells_command(shell):
    for line in ("%nbext ingest", "%nbext ingest -h"):
        assert "--replace-from BLOCK" in shell.run(line).printed
