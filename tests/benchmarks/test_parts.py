"""The parts of `python -m tests.benchmarks all` give their rows, at a small scale; `query` has a file of its own."""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec

import pytest

from tests.benchmarks import analysis, append, client, first, ingest, notebook, payout, together
from tests.benchmarks.measure import Took
from tests.benchmarks.notebook import PARQUET, TABLES, Cells, in_new_shells

# Minutes of work that only who compares needs.
pytestmark = pytest.mark.load


@pytest.fixture(scope="module")
def args(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    return Namespace(rows=30_000, seed=1, rounds=1, ingests=1, memory="1GB", folder=folder)


def test_cells_beside_jupysqls_give_the_same_wallets(args):
    loaded, first, warm = notebook.rows(args)
    assert [isinstance(row.ours, Took) for row in (loaded, first, warm)] == [True] * 3
    assert (list(loaded.beside), list(first.beside), list(warm.beside)) == (
        ["JupySQL"],
        *[[PARQUET, TABLES]] * 2,
    )
    kind = Took if find_spec("sql") else str
    assert all(
        isinstance(side, kind) for row in (loaded, first, warm) for side in row.beside.values()
    )


def test_segments_side_by_side_are_those_of_sql_and_pandas(args):
    found = list(analysis.rows(args))
    assert [row.question.split(" of ")[0] for row in found] == [
        "overlap",
        "changes over half",
        "what the wallet with most contracts holds",
        "a profile",
    ]
    assert all(isinstance(side, Took) for row in found for side in (row.ours, *row.beside.values()))


def test_the_first_answer_is_measured_in_new_kernels(args, monkeypatch):
    monkeypatch.setattr(first, "WAITS", (0, 1))
    found = list(first.rows(args))
    assert [row.question for row in found] == [
        "`%load_ext` in a kernel, CPU of its main thread",
        "the first answer of the sample, a cell straight after it",
        "the first answer of the sample, a cell 1 s after it",
    ]
    assert [row.ours.rounds for row in found] == [2, 1, 1]


def test_a_payout_is_measured_at_each_size(args, monkeypatch):
    monkeypatch.setattr(payout, "CLAIMS", (201, 2_000))
    assert [(row.question.split(",")[0], row.ours.rounds) for row in payout.rows(args)] == [
        ("a payout of 201 claims", 1),
        ("a payout of 2", 1),
    ]


def test_an_extension_that_is_not_installed_is_told(args):
    assert (
        in_new_shells(Cells("%load_ext no_such_extension", "", []), args.folder, 1)
        == "jupysql is not installed"
    )


def test_ingest_is_measured_beside_duckdb(args, capfd):
    (row,) = ingest.rows(args)
    assert row.question == "`nbext ingest` of 30,000 transfers, all tables prepared"
    assert row.ours.megabytes > 0
    assert [side.megabytes > 0 for side in row.beside.values()] == [True]
    assert "30,000 of them new" in capfd.readouterr().out


def test_days_are_added_and_asked_beside_compacted_data(args, monkeypatch):
    monkeypatch.setattr(append, "DAYS", 2)
    added, compacted, *asked = append.rows(args)
    assert (added.ours.rounds, added.ours.megabytes > 0, compacted.ours.megabytes > 0) == (
        2,
        True,
        True,
    )
    assert [list(row.beside) for row in asked] == [["compacted"]] * 7


def test_the_client_is_measured_beside_requests_and_the_floors(args, monkeypatch):
    monkeypatch.setattr(client, "ROWS", 2_000)
    monkeypatch.setattr(client, "LOOKUPS", 20)
    rows = list(client.rows(args))
    assert [row.question for row in rows] == [
        "2,000 rows to a DataFrame, from our service, as Arrow",
        "2,000 rows to a DataFrame, from another, as CSV",
        "10,000 rows to a DataFrame, from our service, as Arrow",
        "metadata of 20 contracts from a service that takes 20 ms",
    ]
    assert [len(row.beside) for row in rows] == [3, 3, 1, 1]


def test_a_part_that_fails_takes_no_other_with_it_and_writes_nothing(args, monkeypatch, capfd):
    monkeypatch.setattr(
        together.table, "write", lambda made: pytest.fail("a table that lacks rows was written")
    )
    args = Namespace(**vars(args) | {"write": True})
    assert together.run(["no_such_part", "ingest"], args) == 1
    printed = capfd.readouterr()
    assert "failed: no_such_part" in printed.err
    assert "| `nbext ingest` of 30,000 transfers, all tables prepared |" in printed.out
