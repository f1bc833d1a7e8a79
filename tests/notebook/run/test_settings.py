"""What is set is in effect at the next magic, wherever it was set; and what a line asks for is done or refused."""

from __future__ import annotations

import os
import threading

import pytest

import nbext
from nbext.notebook.session import current_session
from tests.notebook.shells import loaded_shell
from tests.notebook.test_notes import ingest

COUNT = '%segment {"activity": {"transfers": {"min": 1}}} --count'


def test_a_data_folder_is_in_effect_at_the_next_magic_and_stays_where_it_was_set(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("NBEXT_BASE_URL", raising=False)
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "sample"))
    monkeypatch.chdir(tmp_path)
    ingest(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with loaded_shell() as shell:
        everyone = shell.value(COUNT)
        assert everyone > 1_000
        # The environment, this session, IPython's configuration: each way, and in Python alike.
        for cell, undo in (
            (
                "import os; os.environ['NBEXT_DATA_DIR'] = 'data'",
                "os.environ['NBEXT_DATA_DIR'] = 'sample'",
            ),
            ("%nbext set data_dir data", "%nbext unset data_dir"),
            (
                "del os.environ['NBEXT_DATA_DIR']\n%config Nbext.data_dir = 'data'",
                "os.environ['NBEXT_DATA_DIR'] = 'sample'",
            ),
        ):
            shell.run(cell)
            assert (shell.value(COUNT), current_session().data_dir) == (2, tmp_path / "data"), cell
            os.chdir("elsewhere")
            shell.run("%nbext set limit 5")
            assert shell.value(COUNT) == 2, cell
            counted = nbext.connect().execute_segment(
                {"activity": {"transfers": {"min": 1}}}, limit=0
            )
            assert counted.attrs["nbext"]["matched"] == 2
            os.chdir("..")
            shell.run(undo)
            assert shell.value(COUNT) == everyone, cell
        monkeypatch.setenv("NBEXT_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("NBEXT_API_KEY", "key")
        monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
        assert shell.error(COUNT).startswith("ConnectionFailed: ")
        monkeypatch.delenv("NBEXT_BASE_URL")
        assert shell.value(COUNT) == everyone


def test_no_bar_is_drawn_over_a_prompt_for_the_key(shell, monkeypatch):
    asked = []

    def getpass(prompt):
        asked.append([one.name for one in threading.enumerate() if one.name == "nbext-bar"])
        return "key"

    monkeypatch.setattr("getpass.getpass", getpass)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("nbext.notebook.keys.from_keyring", lambda url: None)
    monkeypatch.setenv("NBEXT_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NBEXT_ATTEMPTS", "1")
    assert shell.error(COUNT).startswith("ConnectionFailed: ")
    assert asked == [[]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "%nft ethereum BAYC --limit 2",
            "%nft: --limit is for a search: %nft search TERM --limit ...",
        ),
        (
            "%nft ethereum BAYC --chain base",
            "%nft: --chain is for a search: %nft search TERM --chain ...",
        ),
        ("%nft search ape --strict", "%nft: --strict has no effect on a search. Leave it out."),
        ("%nft ethereum --chain base", "%nft: --chain has no effect on a search. Leave it out."),
        (
            "%segment sg_none --run-corrected",
            "%segment: --run-corrected has no effect on a segment that has run. Use it with filters.",
        ),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(shell, line, message):
    assert shell.error(line) == f"UsageError: {message}"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("%nft search azuky", "No hit for 'azuky' of the type nft on ethereum. Near: 'AZUKI'."),
        ("%nft search bayk", "No hit for 'bayk' of the type nft on ethereum. Near: 'BAYC'"),
        (
            '%nft search "bored aep"',
            "No hit for 'bored aep' of the type nft on ethereum. Near: 'BoredApeYachtClub'",
        ),
        (
            "%nft search uniswap",
            "No hit for 'uniswap' of the type nft on ethereum. There are tokens: ",
        ),
        ("%token search zzzzz", "No hit for 'zzzzz' of the type token on ethereum."),
    ],
)
def test_a_search_without_hits_names_what_is_near_and_what_it_did_not_look_at(shell, line, note):
    shell.run("%nbext connect")
    assert shell.run(f"t = {line}").printed.startswith(f"note: {note}")
    assert shell.value("t = %token search uni\nt")["symbol"].iloc[0] == "UNI"


def test_help_is_shown_wherever_it_is_asked_for_and_of_the_command_that_is_named(shell):
    assert shell.run("%token --bogus ethereum -h").printed.startswith("Read the metadata of ERC20")
    assert shell.run("%segment {} --limit -h").printed.startswith("Read a segment by its id")
    lines = shell.run("%nbext trend UNI --bogus --help").printed.splitlines()
    assert lines[:3] == [
        "count a segment through time: --every 1w --since 1y",
        "",
        "Usage: %nbext trend SEGMENT",
    ]
    assert "--every" in "".join(lines)
    assert "--cohort" not in "".join(lines)


def test_the_names_of_rows_stay_in_other_kinds_of_tables(shell):
    table = shell.value("import nbext; t = nbext.concentration('UNI')\nt")
    from nbext.client import frames

    assert frames.to_polars(table)["holders"].to_list() == list(table.index)
    assert frames.to_arrow(table)["holders"].to_pylist() == list(table.index)
    # A number without a name only counts the rows, in whichever order they stand.
    assert frames.to_arrow(table.reset_index().sort_values("amount")).column_names[0] == "holders"


def test_a_run_in_the_background_returns_the_kind_of_table_that_is_set(shell, monkeypatch):
    monkeypatch.setenv("NBEXT_FRAME", "polars")
    shell.run('%segment {"token": {"token": "UNI"}} --limit 3 --bg -o job')
    assert type(shell.value("job.result(60)")).__module__.startswith("polars")
    monkeypatch.setenv("NBEXT_FRAME", "nonsense")
    assert "nonsense" in shell.error('%segment {"token": {"token": "UNI"}}')
