"""What the benchmark compares agrees on generated transfers that went through ingest."""

from __future__ import annotations

import argparse

import pytest

from nbext.engine.ingest import ingest
from tests.benchmarks.generate import World, generate
from tests.benchmarks.query import (
    HOLDERS,
    RIVALS,
    Ours,
    asked,
    beside,
    case_of,
    other_kinds,
    ours_tables,
    totals_beside,
)
from tests.benchmarks.rivals import Arrays, Pandas, Polars, RawDuckDB

WORLD = World(30_000, contracts=200, wallets=2_000)

# Minutes of work that only who compares needs.
pytestmark = pytest.mark.load


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    source, data_dir = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("data")
    generate(source, WORLD)
    ingest([source], "ethereum", data_dir)
    return source, data_dir


@pytest.fixture(scope="module")
def ours(folders):
    engine = Ours(folders[1])
    yield engine
    engine.dataset.close()


@pytest.mark.parametrize("name", HOLDERS)
def test_every_side_finds_the_same_wallets(folders, ours, name):
    source, data_dir = folders
    ranks = {"very large": (0, 3, 1), "mid-size": (1, 10, 2), "long-tail": (20, 24, 21)}[name]
    case = case_of(ours, WORLD, name, ranks)
    arrays = Arrays(ours_tables(data_dir))
    arrays.hold(case)
    found = ours.ask(case)
    assert found[0] > 0
    assert len(found[1]) == found[0]
    assert arrays.ask(case) == RawDuckDB(source).ask(case) == Pandas(source).ask(case) == found


def test_polars_finds_the_same_wallets(folders, ours):
    pytest.importorskip("polars", reason="polars is not installed")
    case = case_of(ours, WORLD, "very large", HOLDERS["very large"])
    assert Polars(folders[0]).ask(case) == ours.ask(case)


def test_the_other_kinds_of_conditions_are_answered(ours):
    case = case_of(ours, WORLD, "very large", HOLDERS["very large"])
    answers = {
        name: ours.rows(filters).matched for name, filters in other_kinds(case, WORLD).items()
    }
    assert all(answers.values()), answers


def test_totals_are_those_of_sql_by_hand(folders, ours):
    case = case_of(ours, WORLD, "very large", HOLDERS["very large"])
    row = totals_beside(case, ours, folders[1], argparse.Namespace(rounds=1))
    assert list(row.beside) == ["DuckDB SQL over our tables"]
    assert " 0 match" not in row.question


def test_a_rival_that_is_not_installed_is_told(folders, ours):
    class Missing(RawDuckDB):
        def ask(self, case):
            import no_such_package

            return no_such_package.ask(case)

    case = case_of(ours, WORLD, "very large", HOLDERS["very large"])
    assert asked(Missing, folders[0], case, ours.ask(case), 1) == "no_such_package is not installed"


def test_a_question_is_timed_on_every_side(folders, ours, tmp_path):
    case = case_of(ours, WORLD, "very large", HOLDERS["very large"])
    args = argparse.Namespace(rows=WORLD.rows, rounds=1)
    row = beside(case, ours, Arrays(ours_tables(folders[1])), folders[0], args)
    again, in_memory = "the same asked again", "arrays of ids, already in memory"
    assert list(row.beside) == [*RIVALS, again, in_memory]
    assert {side.rounds for side in (row.ours, *row.beside.values())} == {1, 3}
