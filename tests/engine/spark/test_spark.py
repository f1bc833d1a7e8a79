"""Every form of the grammar has the same rows on DuckDB and on a real Spark cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from operator import methodcaller
from pathlib import Path

import duckdb
import pytest

from nbext.engine.dataset import Cancel, Question
from nbext.engine.holdings import holdings_of, profile_of_holders
from nbext.engine.open import chosen, open_dataset
from nbext.engine.query.set_tree import in_all
from nbext.engine.schema import TABLES
from nbext.engine.spark.dataset import SparkDataset
from nbext.engine.spark.session import Spark, beside, parquet_files
from nbext.engine.storage import current_generation
from nbext.errors import ConfigError, QueryCancelled
from tests.engine import forms, hand_made
from tests.engine.cluster import cluster


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    forms.generation(folder)
    return folder


@pytest.fixture(scope="module")
def on_duckdb(data_dir):
    dataset = open_dataset(data_dir)
    yield dataset
    dataset.close()


@pytest.fixture(scope="module")
def on_spark(data_dir, tmp_path_factory):
    """A cluster whose own file system is another than that of the data folder, as most clusters' is."""
    with cluster(tmp_path_factory.mktemp("cluster")) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYSPARK_SUBMIT_ARGS",
            "--conf spark.hadoop.fs.defaultFS=hdfs://none.invalid:9000 pyspark-shell",
        )
        dataset = open_dataset(data_dir, f"{url}?spark.sql.shuffle.partitions=3")
        yield dataset
        dataset.close()


@pytest.mark.spark
@pytest.mark.parametrize("form", forms.FORMS)
def test_a_form_has_the_same_rows_on_spark(on_duckdb, on_spark, form):
    expected = on_duckdb.ask(forms.question(form, on_duckdb), limit=100)
    found = on_spark.ask(forms.question(form, on_spark), limit=100)
    assert found.matched == expected.matched > 0
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.rows.schema == expected.rows.schema


@pytest.mark.spark
def test_spark_lists_what_wallets_hold_as_duckdb_does(on_duckdb, on_spark):
    ends = {one.chain_id: one.last_block for one in on_duckdb.about.chains}
    for at in (dict.fromkeys(ends), {chain: last // 2 for chain, last in ends.items()}):
        expected, found = (
            holdings_of(dataset, forms.question("token_min", dataset), at)
            for dataset in (on_duckdb, on_spark)
        )
        assert found[0] == expected[0]
        assert found[1].to_pylist() == expected[1].to_pylist()
        assert found[2] == expected[2]
        assert found[0].num_rows


@pytest.mark.spark
def test_spark_profiles_a_segment_as_duckdb_does(on_duckdb, on_spark):
    ends = {one.chain_id: one.last_block for one in on_duckdb.about.chains}
    for at in (dict.fromkeys(ends), {chain: last // 2 for chain, last in ends.items()}):
        expected, found = (
            profile_of_holders(
                dataset,
                *(forms.question(name, dataset) for name in ("token_min", "token")),
                at,
                least=1,
                most=100,
            )
            for dataset in (on_duckdb, on_spark)
        )
        assert found[1].to_pylist() == expected[1].to_pylist()
        assert found[0] == expected[0] == len(found[1]) > 0


@pytest.mark.spark
def test_spark_counts_looks_up_and_explains_as_duckdb_does(on_duckdb, on_spark):
    question = forms.question("token_min", on_spark)
    counted = on_spark.ask(question, limit=0)
    assert counted.matched == on_duckdb.ask(question, limit=0).matched
    assert counted.rows == on_duckdb.ask(question, limit=0).rows
    assert on_spark.ask(question, limit=2).rows == on_duckdb.ask(question, limit=2).rows
    names = ["token", "all_any_not", "token_as_of"]
    on_both = [[forms.question(name, one) for name in names] for one in (on_spark, on_duckdb)]
    together = [[0], [1], [2], [0, 1], [2, 0, 1]]
    assert on_spark.answers(methodcaller("counts", on_both[0], together)) == on_duckdb.answers(
        methodcaller("counts", on_both[1], together)
    )
    address = forms.CONTRACTS[forms.BAYC].address
    assert on_spark.catalog.contract(1, address) == on_duckdb.catalog.contract(1, address)
    time = forms.WORLD.timestamp(1, 100)
    assert on_spark.clock.block_at(1, time) == on_duckdb.clock.block_at(1, time) == 100
    assert "Physical Plan" in on_spark.answers(methodcaller("explained", question, 2))["plan"]


@pytest.mark.spark
def test_the_statements_of_a_question_run_on_spark_at_the_same_time(on_spark, monkeypatch):
    together, fetch = threading.Barrier(3), Spark.fetch

    def fetched(spark, sql, job):
        # One after the other, the first would wait for the others and none would come.
        together.wait(120)
        return fetch(spark, sql, job)

    monkeypatch.setattr(Spark, "fetch", fetched)
    three = [f"SELECT DISTINCT sender AS wallet FROM transfers WHERE block > {n}" for n in range(3)]
    found = on_spark.ask(Question(lambda sql: in_all([sql.leaf(one) for one in three])), limit=0)
    assert found.matched > 0


@pytest.mark.spark
@pytest.mark.parametrize(
    "seconds", [3, 0.3, 0.1]
)  # while it runs, while it is planned, before its first job
def test_a_question_on_spark_is_cancelled_at_any_moment_and_the_next_is_answered(on_spark, seconds):
    def endless(sql):
        senders = ", ".join(f"(SELECT sender AS w{n} FROM transfers)" for n in range(6))
        summed = " + ".join(f"w{n}" for n in range(6))
        # All of them run at once, and the next question would wait for what went on.
        where = [f"CAST({summed} AS STRING) = {sql.value(one)}" for one in ("none", "no one")]
        return in_all(
            [sql.leaf(f"SELECT w0 AS wallet FROM {senders} WHERE {one}") for one in where]
        )

    cancel = Cancel()
    threading.Timer(seconds, cancel.asked.set).start()
    with pytest.raises(QueryCancelled):
        on_spark.ask(Question(endless), limit=1, cancel=cancel)
    assert on_spark.ask(forms.question("token", on_spark), limit=0).matched > 0


@pytest.mark.spark
def test_two_generations_on_one_spark_have_tables_of_their_own_and_one_ends_without_the_other(
    on_spark, tmp_path
):
    hand_made.generation(tmp_path, {"contracts": [hand_made.contract(1, symbol="NEW", holders=1)]})
    other = SparkDataset(
        chosen(tmp_path), Spark(beside(chosen(tmp_path)), on_spark._spark._master, {})
    )
    assert [
        other.catalog.symbols(1, nft=False),
        "NEW" in on_spark.catalog.symbols(1, nft=False),
    ] == [["NEW"], False]
    question = forms.question("token_min", on_spark)
    before = on_spark.ask(question, limit=0).matched
    other.close()
    assert on_spark.ask(question, limit=0).matched == before


# Prints what two options of Spark are in the session of a folder's tables.
CONFIGURED = """
import sys
from nbext.engine.open import Path, open_dataset
dataset = open_dataset(Path(sys.argv[1]), "local[1]?spark.sql.shuffle.partitions=3")
conf = dataset._spark.session().conf
print(conf.get("spark.sql.broadcastTimeout"), conf.get("spark.sql.shuffle.partitions"))
dataset.close()
"""


@pytest.mark.spark
@pytest.mark.filterwarnings("error")
def test_options_hold_of_the_url_and_where_it_has_none_of_sparks_own_file(data_dir, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.sql.broadcastTimeout 301\nspark.sql.shuffle.partitions 7\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONFIGURED, data_dir],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout) == (0, "301 3\n")


def test_spark_is_given_a_whole_url_of_a_folder_that_is_named_from_here(data_dir, monkeypatch):
    folder = parquet_files(current_generation(data_dir))
    monkeypatch.chdir(data_dir.parent)
    assert beside(current_generation(Path(data_dir.name)))() == f"file://{folder}"


def test_the_twin_holds_each_table_in_the_layouts_types(data_dir):
    folder = parquet_files(current_generation(data_dir))
    written = (folder / "wallets.parquet").stat().st_mtime_ns
    assert parquet_files(current_generation(data_dir)) == folder
    assert (folder / "wallets.parquet").stat().st_mtime_ns == written
    assert sorted(path.name for path in folder.glob("*.parquet")) == sorted(
        f"{name}.parquet" for name in TABLES
    )
    types = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
    for name, columns in TABLES.items():
        found = duckdb.sql(f"DESCRIBE FROM '{folder / name}.parquet'").fetchall()
        assert [(row[0], row[1]) for row in found] == [
            (column, types.get(kind, kind.upper())) for column, kind in columns.items()
        ]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (
            "spark://",
            "engine: 'spark://' is not the address of a Spark master. Write "
            "spark://HOST:PORT or sc://HOST:PORT.",
        ),
        (
            "spark://host",
            "engine: 'spark://host' is not the address of a Spark master. Write "
            "spark://HOST:PORT or sc://HOST:PORT.",
        ),
        (
            "spark://host:port",
            "engine: 'spark://host:port' is not the address of a Spark master. Write "
            "spark://HOST:PORT or sc://HOST:PORT.",
        ),
        (
            "sc://host:1/;token=abc",
            "engine: 'sc://host:1/' is not the address of a Spark master. Write "
            "spark://HOST:PORT or sc://HOST:PORT.",
        ),
        (
            "local[2]?cores=4",
            "engine: Spark has no option 'cores': its options begin with spark., such as "
            "spark.executor.memory=2g.",
        ),
        (
            "local[2]?spark.ui.enabled=true&spark.ui.enabled=false",
            "engine: 'spark.ui.enabled' is given twice.",
        ),
        (
            "local[two]",
            "engine: 'local[two]' is not the URL of an engine. Allowed: duckdb://, "
            "and Spark's masters: spark://HOST:PORT, local[N], yarn, k8s://https://HOST:PORT, sc://HOST:PORT.",
        ),
        (
            "pyspark://host:7077",
            "engine: 'pyspark://host:7077' is not the URL of an engine. Did you mean 'spark'? "
            "Allowed: duckdb://, and Spark's masters: spark://HOST:PORT, local[N], yarn, "
            "k8s://https://HOST:PORT, sc://HOST:PORT.",
        ),
    ],
)
def test_a_url_that_is_not_complete_says_how_it_is_written(data_dir, engine, message):
    with pytest.raises(ConfigError) as raised:
        open_dataset(data_dir, engine)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "engine",
    [
        "spark://10.0.0.1:7077",
        "spark://10.0.0.1:7077,10.0.0.2:7077",
        "local",
        "local[*]",
        "local[2,3]?spark.driver.memory=1g",
        "yarn",
        "k8s://https://10.0.0.1:6443",
        "sc://10.0.0.1:15002",
    ],
)
def test_spark_is_not_connected_to_before_it_is_asked(data_dir, engine):
    dataset = open_dataset(data_dir, engine)
    assert isinstance(dataset, SparkDataset)
    assert dataset.about.engine == "pyspark"
    assert dataset.clock.last(1)[0] == forms.LAST
    dataset.close()
