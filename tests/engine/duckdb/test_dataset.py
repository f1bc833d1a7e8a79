"""Questions are answered exactly, cancelled on time, bounded in memory, and reach nothing but their tables."""

from __future__ import annotations

import gc
import re
import threading
import time
import weakref
from dataclasses import replace
from operator import methodcaller

import duckdb
import pyarrow as pa
import pytest

from nbext.engine.dataset import Cancel, ExactColumn, Order, Question
from nbext.engine.open import open_dataset
from nbext.engine.query import answers
from nbext.engine.query.amounts import limbs_at_least
from nbext.engine.query.set_tree import in_all, in_any
from nbext.engine.query.sql import Sql
from nbext.errors import ConfigError, QueryCancelled, QueryTimeout, ResourceLimit
from tests.engine.hand_made import ADDRESSES, balance, generation

MAX = 2**256 - 1
BALANCES = [
    *(balance(1, wallet, wallet) for wallet in range(1, 20)),
    balance(2, 3, MAX),
    balance(2, 5, 10**26),
    balance(2, 7, -(10**60)),
]
# Amounts whose sort keys are equal, though they are not, and amounts that are equal, of many digits and of few.
ALIKE = dict(
    enumerate([11 * 10**20 + n for n in (3, 1, 2, 1)] + [-(10**30) - n for n in (1, 2)] + [11, 11])
)
BALANCES += [balance(9, wallet, value) for wallet, value in ALIKE.items()]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("duck")
    generation(data_dir, {"balances": BALANCES})
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


def _amounts(sql):
    return f"SELECT wallet, hi, mid, lo FROM {sql.table('balances', contract=2)}"


def _ones(sql):
    return f"SELECT wallet, 1 AS n FROM {sql.table('balances', contract=2)}"


def columns(known=10**9):
    """Two columns; ``known``: how many wallets they are said to have."""
    return (
        ExactColumn("B_balance_raw", "amount", _amounts, known),
        ExactColumn("n", "count", _ones, known),
    )


def holders(contract, at_least, known=10**9):
    """Ask for holders of a contract."""

    def wallets(sql):
        balances = sql.table("balances", contract=contract)
        return sql.leaf(f"SELECT wallet FROM {balances} WHERE {limbs_at_least(sql, at_least)}")

    return Question(wallets, columns(known), floats={"B_balance": ("B_balance_raw", 10**18)})


def _every(places):
    """Every way to fill the places with wallets: 100 to the power of their number."""
    return ", ".join(f"(SELECT wallet AS w{place} FROM wallets)" for place in range(places))


def _endless(sql):
    summed = " + ".join(f"w{place}" for place in range(7))
    # Compared as text: of numbers DuckDB knows the bounds and would answer at once.
    where = f"CAST({summed} AS VARCHAR) = 'none'"
    return sql.leaf(f"SELECT w0 AS wallet FROM {_every(7)} WHERE {where}")


def _hungry(sql):
    return sql.leaf(f"SELECT len(list(w0 + w3))::INTEGER AS wallet FROM {_every(4)}")


def _above(sql, wallets):
    """Return the holders of contract 1 behind each of some wallets."""
    return [
        sql.leaf(
            f"SELECT wallet FROM {sql.table('balances', contract=1)} WHERE wallet > {sql.value(wallet)}"
        )
        for wallet in wallets
    ]


def _many(sql):
    return in_any(_above(sql, range(200)))


ENDLESS = Question(_endless)


# Read whole, or joined with the wallets that are returned.
@pytest.mark.parametrize("known", [3, 10**9])
def test_the_matching_wallets_are_counted_and_the_first_by_address_returned(dataset, known):
    answer = dataset.ask(holders(1, 3, known), limit=4)
    assert answer.matched == 17
    assert answer.rows.to_pylist() == [
        {"address": ADDRESSES[3], "B_balance": MAX / 10**18, "B_balance_raw": str(MAX), "n": 1},
        {"address": ADDRESSES[4], "B_balance": 0, "B_balance_raw": "0", "n": 0},
        {"address": ADDRESSES[5], "B_balance": 10**8, "B_balance_raw": str(10**26), "n": 1},
        {"address": ADDRESSES[6], "B_balance": 0, "B_balance_raw": "0", "n": 0},
    ]
    assert answer.rows.schema == pa.schema(
        {
            "address": pa.string(),
            "B_balance": pa.float64(),
            "B_balance_raw": pa.string(),
            "n": pa.int64(),
        }
    )


def test_a_question_is_answered_with_its_own_values(dataset):
    assert [dataset.ask(holders(1, n), limit=0).matched for n in (1, 10, 19, 20)] == [19, 10, 1, 0]
    assert [
        dataset.ask(holders(2, n), limit=9).matched for n in (-MAX, -(10**59), 10**26 + 1, MAX)
    ] == [3, 2, 1, 1]


def test_lists_of_wallets_are_not_mixed_up_however_often_they_are_asked_for(dataset):
    for _ in range(2):
        for number in (3, 4):
            listed = Question(
                lambda sql, number=number: sql.leaf(
                    f"SELECT wallet FROM {sql.wallets_at([ADDRESSES[number]])}"
                )
            )
            answer = dataset.ask(listed, limit=5)
            assert answer.rows.to_pylist() == [{"address": ADDRESSES[number]}]


def test_a_limit_of_zero_only_counts(dataset):
    answer = dataset.ask(holders(1, 3), limit=0)
    assert answer.matched == 17
    assert answer.rows == dataset.ask(holders(1, 99), limit=5).rows
    assert answer.rows.num_rows == 0


def test_no_match_has_no_rows_and_the_same_columns(dataset):
    answer = dataset.ask(holders(3, 1), limit=10)
    assert (answer.matched, answer.rows.num_rows) == (0, 0)
    assert answer.rows.schema.names == dataset.ask(holders(1, 1), limit=10).rows.schema.names
    # The type that exact amounts have unless they are too large for it.
    assert answer.rows.schema.field("B_balance_raw").type == pa.decimal128(38, 0)


def test_an_answer_of_too_many_values_is_refused_with_the_numbers_and_counted_all_the_same(
    dataset, monkeypatch
):
    monkeypatch.setattr("nbext.engine.dataset.MOST_VALUES", 20)
    with pytest.raises(ResourceLimit) as caught:
        dataset.ask(holders(1, 3), limit=1000)
    assert str(caught.value) == (
        "The answer would have 68 values: 17 rows of 4 columns. The service returns at most 20. "
        "Lower the limit to 5, or name fewer tokens and collections."
    )
    assert dataset.ask(holders(1, 3), limit=5).rows.num_rows == 5
    assert dataset.ask(holders(1, 3), limit=0).matched == 17


@pytest.mark.parametrize("endless", [True, False])
def test_what_a_stopped_question_had_fetched_is_freed_at_once(dataset, endless):
    """Before its rows, and in a statement: errors whose frames refer to them would wait for the garbage collector."""
    question = Question(_endless if endless else holders(1, 1).wallets, columns())
    alive, late = weakref.ref(question), Cancel(deadline=time.monotonic() + 0.2)
    if not endless:
        late.asked.set()
    gc.disable()
    try:
        with pytest.raises((QueryTimeout, QueryCancelled)):
            dataset.ask(question, limit=5, cancel=late)
        del question
        # The thread that was asked drops it when it runs again.
        until = time.monotonic() + 20
        while alive() and time.monotonic() < until:
            time.sleep(0.001)
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("dense", "most"), [(0, 5), (8, 5), (8, 1)])
def test_rows_read_in_chunks_by_ranges_or_by_joins_are_the_same(dataset, monkeypatch, dense, most):
    whole = dataset.ask(holders(1, 3), limit=1000).rows
    bounds = {"CHUNK": 4, "_READ_WHOLE": 0, "_KEPT_WHOLE": 0, "_DENSE": dense, "_AT_ONCE": most}
    for name, value in bounds.items():
        monkeypatch.setattr(f"nbext.engine.query.answers.{name}", value)
    monkeypatch.setattr("nbext.engine.query.rows.BATCH", 2)
    answer = dataset.ask(holders(1, 3), limit=1000)
    assert (answer.rows, answer.stored.per_batch) == (whole, 2)


def test_a_large_answer_has_more_time_than_a_small_one(dataset, monkeypatch):
    monkeypatch.setattr("nbext.engine.query.answers._VALUES_A_SECOND", 2)
    cancel = Cancel(deadline=time.monotonic() + 60)
    deadline = cancel.deadline
    assert dataset.ask(holders(1, 3), limit=5, cancel=cancel).rows.num_rows == 5
    assert cancel.deadline - deadline == 10


def test_a_text_value_is_never_read_as_sql(dataset):
    for text in (ADDRESSES[4], "' OR '1'='1", "x'); DROP TABLE wallets; --", "\\"):
        named = Question(
            lambda sql, text=text: sql.leaf(
                f"SELECT wallet FROM wallets WHERE address = {sql.value(text)}"
            )
        )
        one_of = Question(
            lambda sql, text=text: sql.leaf(f"SELECT wallet FROM {sql.wallets_at((text, chr(39)))}")
        )
        expected = int(text == ADDRESSES[4])
        assert [dataset.ask(one, limit=5).matched for one in (named, one_of)] == [expected] * 2


def test_an_explanation_shows_the_sql_with_its_values_and_the_plan(dataset):
    explained = dataset.answers(methodcaller("explained", holders(1, 10**30), 7))
    assert explained["sql"].startswith(
        "-- wallets: 1; the first 7 by address are returned\n\n-- 1\nSELECT wallet\n"
        "FROM (SELECT *\n  FROM balances\n  WHERE contract = $v0)\n"
    )
    assert "-- $v0 = 1\n-- $v1 = 0\n-- $v2 = 10000\n" in explained["sql"]
    assert explained["plan"].startswith("1\n")
    assert "SCAN" in explained["plan"]
    assert max(map(len, explained["plan"].splitlines())) <= 100


def test_a_step_of_a_plan_that_is_too_long_for_a_line_goes_on_below_itself(dataset):
    many = " OR ".join(f"address LIKE '%{n:040}%'" for n in range(9))
    leaf = Sql(f"SELECT wallet FROM wallets WHERE {many}")
    plan = dataset.do(lambda engine: engine.plan(leaf), None).splitlines()
    assert max(map(len, plan)) <= 100
    (first,) = [at for at, line in enumerate(plan) if f"{0:040}" in line][:1]
    depths = [len(line) - len(line.lstrip()) for line in plan[first - 1 : first + 4]]
    # Below its name, and not beside it as another step would be.
    assert {*depths[2:]} == {max(depths)}
    assert max(depths) > depths[0]


@pytest.mark.load
def test_an_explanation_is_cut_where_nobody_reads_on_and_ends_at_its_deadline(dataset):
    whole = dataset.answers(methodcaller("explained", Question(_many), 0))
    assert whole["sql"].count("SELECT wallet") == 200
    assert "\n\n200\n" in whole["plan"]
    wide = Question(lambda sql: in_any(_above(sql, range(2_000))))
    cut = dataset.answers(methodcaller("explained", wide, 0))["sql"]
    assert len(cut) < 110_000
    assert re.search(r"\n\.\.\. and [\d,]+ more characters$", cut)
    with pytest.raises(QueryTimeout):
        dataset.answers(
            methodcaller("explained", Question(_many), 0), Cancel(deadline=time.monotonic())
        )


def test_an_explanation_shows_every_statement_that_runs_and_how_they_are_combined(dataset):
    def some(sql):
        leaves = _above(sql, range(5))
        return in_all([leaves[0], in_any([leaves[1], leaves[2]]), ~in_all([leaves[3], leaves[4]])])

    question = Question(some, columns())
    first, *statements = dataset.answers(methodcaller("explained", question, 7))["sql"].split(
        "\n\n"
    )
    assert (
        first == "-- wallets: 1 and (2 or 3) and not (4 and 5); the first 7 by address are returned"
    )
    assert [text.splitlines()[0] for text in statements] == [
        *(f"-- {n}" for n in range(1, 6)),
        "-- B_balance_raw",
        "-- n",
        "-- address",
    ]
    twice = Question(lambda sql: in_all([some(sql), *_above(sql, range(1))]))
    first, *again = dataset.answers(methodcaller("explained", twice, 0))["sql"].split("\n\n")
    assert first == "-- wallets: 1 and (2 or 3) and not (4 and 5) and 1; they are only counted"
    assert len(again) == 5
    counted = dataset.answers(methodcaller("explained", question, 0))["sql"]
    assert counted.startswith(
        "-- wallets: 1 and (2 or 3) and not (4 and 5); they are only counted\n\n"
    )
    assert "B_balance" not in counted
    run = []
    cursor = dataset._connection.cursor()
    cursor.execute("USE generation")
    for text in statements[:5]:
        values = {name: int(value) for name, value in re.findall(r"-- \$(v\d) = (\d+)", text)}
        run.append({row[0] for row in cursor.execute(text, values).fetchall()})
    assert (
        dataset.ask(question, limit=0).matched
        == len((run[0] & (run[1] | run[2])) - (run[3] & run[4]))
        > 0
    )


def test_an_explanation_shows_the_order_what_is_read_whole_and_the_sets_of_a_column(dataset):
    def sort_keys(sql):
        return f"SELECT wallet, sort_key FROM {sql.table('balances', contract=2)}"

    matches = ExactColumn("matches", "match", lambda sql: in_any(_above(sql, (3, 5))))
    ordered = Question(
        lambda sql: _above(sql, [1])[0],
        (replace(columns(known=3)[0], sort_keys=sort_keys), matches),
        Order(0, descending=True),
    )
    first, *statements = dataset.answers(methodcaller("explained", ordered, 7))["sql"].split("\n\n")
    assert first == "-- wallets: 1; matches: 2 or 3; the first 7 by B_balance_raw are returned"
    of_two = "FROM (SELECT *\n  FROM balances\n  WHERE contract = $v0)\n-- $v0 = 2"
    assert statements[3:5] == [
        f"-- B_balance_raw\nSELECT wallet, hi, mid, lo\n{of_two}",
        f"-- order by B_balance_raw\nSELECT wallet, sort_key\n{of_two}",
    ]
    assert [text.splitlines()[0] for text in statements] == [
        *(f"-- {n}" for n in range(1, 4)),
        "-- B_balance_raw",
        "-- order by B_balance_raw",
        "-- address",
    ]


@pytest.mark.parametrize("chunk", [2, 1_000_000])
def test_amounts_are_in_their_exact_order_where_their_sort_keys_are_equal(
    dataset, monkeypatch, chunk
):
    monkeypatch.setattr(answers, "CHUNK", chunk)

    def rows(sql, columns):
        return f"SELECT wallet, {columns} FROM {sql.table('balances', contract=9)}"

    column = ExactColumn(
        "amount",
        "amount",
        lambda sql: rows(sql, "hi, mid, lo"),
        sort_keys=lambda sql: rows(sql, "sort_key"),
    )
    wallets = {address: n for n, address in enumerate(ADDRESSES)}
    for sign in (1, -1):
        question = Question(
            lambda sql: sql.leaf(rows(sql, "hi").replace(", hi", "")),
            [column],
            Order(0, descending=sign < 0),
        )
        expected = sorted(ALIKE, key=lambda wallet: (sign * ALIKE[wallet], wallet))
        for limit in range(1, len(ALIKE) + 1):
            found = dataset.ask(question, limit=limit).rows
            assert [wallets[one] for one in found["address"].to_pylist()] == expected[:limit]
            assert list(map(int, found["amount"].to_pylist())) == [
                ALIKE[one] for one in expected[:limit]
            ]


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
        small.ask(Question(_hungry), limit=1)
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


def test_no_question_is_planned_by_the_steps_of_duckdb_that_answer_wrong_or_hash_the_larger_side(
    dataset,
):
    with dataset._connection.cursor() as cursor:
        (without,) = cursor.execute("SELECT current_setting('disabled_optimizers')").fetchone()
    assert set(without.split(",")) == {"common_subplan", "build_side_probe_side"}


def test_the_data_says_whose_it_is(dataset):
    assert (dataset.about.name, dataset.about.synthetic, dataset.about.engine) == (
        "hand-made",
        True,
        "duckdb",
    )
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
        ("duckdb://?threads=1٤", "Write memory=4GB"),
        ("duckdb://?memory=٤GB", "Write memory=4GB"),
        ("duckdb://?memory=0GB", "Write memory=4GB"),
        ("duckdb://?memory=1GB&memory=2GB", "'memory' is given twice"),
    ],
)
def test_an_engine_url_that_cannot_be_used_says_what_can(tmp_path, engine, message):
    generation(tmp_path, {})
    with pytest.raises(ConfigError, match=message):
        open_dataset(tmp_path, engine)
