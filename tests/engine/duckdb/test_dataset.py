"""Questions are answered exactly, cancelled on time, bounded in memory, and reach nothing but their tables."""

from __future__ import annotations

import threading
import time

import duckdb
import ibis
import pyarrow as pa
import pytest

from nbext.core.uint256 import Limbs, split
from nbext.engine.dataset import Answer, Cancel, Question
from nbext.engine.open import open_dataset
from nbext.engine.query import exact
from nbext.engine.query.set_tree import And, Leaf, Not, Or
from nbext.errors import ConfigError, QueryCancelled, QueryTimeout, ResourceLimit
from tests.engine.hand_made import ADDRESSES, balance, generation

MAX = 2**256 - 1
BALANCES = [
    *(balance(1, wallet, wallet) for wallet in range(1, 20)),
    balance(2, 3, MAX),
    balance(2, 5, 10**26),
    balance(2, 7, -(10**60)),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("duck")
    generation(data_dir, {"balances": BALANCES})
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


def _holders(tables, scalars):
    contract, *bound = scalars
    balances = tables["balances"]
    enough = exact.at_least(exact.of(balances), Limbs(*bound))
    return Leaf(balances.filter(balances.contract == contract, enough).select("wallet"))


def _balances_of_two(tables, scalars):
    second = tables["balances"].filter(lambda t: t.contract == 2)
    return [
        second.select("wallet", B_balance=exact.column(exact.of(second))),
        second.select("wallet", n=ibis.literal(1, "int32")),
    ]


def holders(contract, at_least, known=None):
    """Ask for holders of a contract; ``known``: how many wallets the columns are said to have."""
    values = (contract, *split(at_least))
    return Question("holders", _holders, _balances_of_two, values, (known, known))


def _every(tables, places):
    """Every way to fill the places with wallets: 100 to the power of their number."""
    table = tables["wallets"].select(w0="wallet")
    for place in range(1, places):
        table = table.cross_join(tables["wallets"].select(**{f"w{place}": "wallet"}))
    return table


def _endless(tables, scalars):
    every = _every(tables, 7)
    # Compared as text: of numbers DuckDB knows the bounds and would answer at once.
    return Leaf(every.filter(sum(every[name] for name in every.columns).cast("string") == "none").select(wallet="w0"))


def _hungry(tables, scalars):
    collected = _every(tables, 4).agg(sums=lambda t: (t.w0 + t.w3).collect())
    return Leaf(collected.select(wallet=collected.sums.length().cast("int32")))


def _addresses_only(tables, scalars):
    return []


ENDLESS = Question("endless", _endless, _addresses_only)


# Read whole, or joined with the wallets that are returned.
@pytest.mark.parametrize("known", [None, 3, 10**9])
def test_the_matching_wallets_are_counted_and_the_first_by_address_returned(dataset, known):
    answer = dataset.ask(holders(1, 3, known), limit=4)
    assert answer.matched == 17
    assert answer.rows.to_pylist() == [
        {"address": ADDRESSES[3], "B_balance": str(MAX), "n": 1},
        {"address": ADDRESSES[4], "B_balance": "0", "n": 0},
        {"address": ADDRESSES[5], "B_balance": str(10**26), "n": 1},
        {"address": ADDRESSES[6], "B_balance": "0", "n": 0},
    ]
    assert answer.rows.schema == pa.schema({"address": pa.string(), "B_balance": pa.string(), "n": pa.int64()})


def test_a_kept_shape_answers_with_the_values_of_each_question(dataset):
    assert [dataset.ask(holders(1, n), limit=0).matched for n in (1, 10, 19, 20)] == [19, 10, 1, 0]
    assert [dataset.ask(holders(2, n), limit=9).matched for n in (-MAX, -(10**59), 10**26 + 1, MAX)] == [3, 2, 1, 1]


def test_lists_of_wallets_are_not_mixed_up_however_often_they_are_asked_for(dataset):
    def listed(tables, scalars):
        asked = scalars[0].unnest().name("address").as_table()
        return Leaf(tables["wallets"].semi_join(asked, "address").select("wallet"))

    for _ in range(2):
        for number in (3, 4):
            answer = dataset.ask(Question("listed", listed, _addresses_only, ((ADDRESSES[number],),)), limit=5)
            assert answer.rows.to_pylist() == [{"address": ADDRESSES[number]}]


def test_a_limit_of_zero_only_counts(dataset):
    answer = dataset.ask(holders(1, 3), limit=0)
    assert answer == Answer(17, dataset.ask(holders(1, 99), limit=5).rows)
    assert answer.rows.num_rows == 0


def test_no_match_has_no_rows_and_the_same_columns(dataset):
    answer = dataset.ask(holders(3, 1), limit=10)
    assert (answer.matched, answer.rows.num_rows) == (0, 0)
    assert answer.rows.schema == dataset.ask(holders(1, 1), limit=10).rows.schema


def test_a_text_value_is_never_read_as_sql(dataset):
    def named(tables, scalars):
        return Leaf(tables["wallets"].filter(lambda t: t.address == scalars[0]).select("wallet"))

    def one_of(tables, scalars):
        asked = scalars[0].unnest().name("address").as_table()
        return Leaf(tables["wallets"].semi_join(asked, "address").select("wallet"))

    for text in (ADDRESSES[4], "' OR '1'='1", "x'); DROP TABLE wallets; --", "\\"):
        expected = int(text == ADDRESSES[4])
        assert dataset.ask(Question("named", named, _addresses_only, (text,)), limit=5).matched == expected
        assert dataset.ask(Question("one of", one_of, _addresses_only, ((text, "'"),)), limit=5).matched == expected


def test_an_explanation_shows_the_sql_with_its_values_and_the_plan(dataset):
    explained = dataset.explain(holders(1, 10**30), limit=7)
    assert explained["sql"].startswith("-- wallets: 1; the first 7 by address are returned\n\n-- 1\nSELECT")
    assert explained["plan"].startswith("1\n")
    assert "$" not in explained["sql"]
    assert "SCAN" in explained["plan"]
    assert max(map(len, explained["plan"].splitlines())) <= 100


def test_an_explanation_shows_every_statement_that_runs_and_how_they_are_combined(dataset):
    def some(tables, scalars):
        first = tables["balances"].filter(lambda t: t.contract == 1)
        leaves = [Leaf(first.filter(first.wallet > n).select("wallet")) for n in range(5)]
        return And([leaves[0], Or([leaves[1], leaves[2]]), Not(And([leaves[3], leaves[4]]))])

    question = Question("some", some, _balances_of_two, (), (3, None))
    first, *statements = dataset.explain(question, limit=7)["sql"].split("\n\n")
    assert first == "-- wallets: 1 and (2 or 3) and not (4 and 5); the first 7 by address are returned"
    assert [text.splitlines()[0] for text in statements] == [
        *(f"-- {n}" for n in range(1, 6)), "-- B_balance", "-- n", "-- address"
    ]  # fmt: skip
    counted = dataset.explain(question, limit=0)["sql"]
    assert counted.startswith("-- wallets: 1 and (2 or 3) and not (4 and 5); they are only counted\n\n")
    assert "B_balance" not in counted
    run = []
    cursor = dataset._connection.cursor()
    cursor.execute("USE generation")
    for text in statements[:5]:
        run.append({row[0] for row in cursor.execute(text).fetchall()})
    assert dataset.ask(question, limit=0).matched == len((run[0] & (run[1] | run[2])) - (run[3] & run[4])) > 0


def test_a_cancelled_question_ends_soon_and_the_next_is_answered(dataset):
    cancel = Cancel()
    threading.Timer(0.2, cancel.asked.set).start()
    started = time.monotonic()
    with pytest.raises(QueryCancelled):
        dataset.ask(ENDLESS, limit=1, cancel=cancel)
    assert time.monotonic() - started < 5
    assert dataset.ask(holders(1, 1), limit=1).matched == 19


def test_a_question_ends_at_its_deadline(dataset):
    with pytest.raises(QueryTimeout, match="time limit"):
        dataset.ask(ENDLESS, limit=1, cancel=Cancel(deadline=time.monotonic() + 0.2))


def test_a_question_past_the_memory_limit_fails_and_the_dataset_stays_up(tmp_path):
    generation(tmp_path, {"balances": BALANCES})
    small = open_dataset(tmp_path, "duckdb://?memory=64MB&threads=1")

    with pytest.raises(ResourceLimit, match="64MB"):
        small.ask(Question("hungry", _hungry, _addresses_only), limit=1)
    assert small.ask(holders(1, 1), limit=1).matched == 19
    small.close()


def test_threads_ask_at_once_and_each_gets_its_own_answer(dataset):
    answers = {}

    def ask(bound):
        answers[bound] = dataset.ask(holders(1, bound), limit=0).matched

    threads = [threading.Thread(target=ask, args=(bound,)) for bound in range(1, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {bound: 20 - bound for bound in range(1, 20)}


def test_nothing_but_the_tables_can_be_reached(dataset, tmp_path):
    outside = tmp_path / "secret.csv"
    outside.write_text("a\n1\n", "utf-8")
    cursor = dataset._connection.cursor()
    for sql in (
        f"SELECT * FROM read_csv('{outside}')",
        f"COPY wallets TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/other.duckdb'",
        "SET enable_external_access = true",
        "SET memory_limit = '99GB'",
        "INSTALL httpfs",
        "DELETE FROM wallets",
    ):
        with pytest.raises(duckdb.Error):
            cursor.execute(sql)
    assert not (tmp_path / "out.csv").exists()


def test_the_data_says_whose_it_is(dataset):
    assert (dataset.about.name, dataset.about.synthetic, dataset.about.engine) == ("hand-made", True, "duckdb")
    assert [chain.last_block for chain in dataset.about.chains] == [900]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("duckbd://", "Did you mean 'duckdb'"),
        ("duckdb", "is not the URL of an engine"),
        ("duckdb:///some/file", "has no path"),
        ("duckdb://?memroy=1GB", "Did you mean 'memory'"),
        ("duckdb://?memory=lots", "Write memory=4GB"),
        ("duckdb://?threads=0", "Write memory=4GB"),
    ],
)
def test_an_engine_url_that_cannot_be_used_says_what_can(tmp_path, engine, message):
    generation(tmp_path, {})
    with pytest.raises(ConfigError, match=message):
        open_dataset(tmp_path, engine)
