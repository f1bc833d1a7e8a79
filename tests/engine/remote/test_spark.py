"""Every form of the grammar has the same rows on DuckDB and on a real Spark cluster."""

from __future__ import annotations

import threading

import duckdb
import pytest

from nbext.engine.dataset import Cancel, Question
from nbext.engine.open import open_dataset
from nbext.engine.query.set_tree import Leaf
from nbext.engine.remote.backends import parquet_files
from nbext.engine.remote.dataset import RemoteDataset
from nbext.engine.schema import TABLES
from nbext.engine.storage import current
from nbext.errors import ConfigError, QueryCancelled
from tests.engine import forms
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
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        dataset = open_dataset(data_dir, url.replace("spark://", "pyspark://"))
        yield dataset
        dataset.close()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("form", forms.FORMS)
def test_a_form_has_the_same_rows_on_spark(on_duckdb, on_spark, form):
    expected = on_duckdb.ask(forms.question(form, on_duckdb), limit=100)
    found = on_spark.ask(forms.question(form, on_spark), limit=100)
    assert found.matched == expected.matched > 0
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.rows.schema == expected.rows.schema


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_spark_counts_looks_up_and_explains_as_duckdb_does(on_duckdb, on_spark):
    question = forms.question("token_min", on_spark)
    assert on_spark.ask(question, limit=0) == on_duckdb.ask(question, limit=0)
    assert on_spark.ask(question, limit=2).rows == on_duckdb.ask(question, limit=2).rows
    address = forms.CONTRACTS[forms.BAYC].address
    assert on_spark.catalog.contract(1, address) == on_duckdb.catalog.contract(1, address)
    time = forms.WORLD.timestamp(1, 100)
    assert on_spark.clock.block_at(1, time) == on_duckdb.clock.block_at(1, time) == 100
    assert "Physical Plan" in on_spark.explain(question, limit=2)["plan"]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_question_on_spark_is_cancelled_and_the_next_is_answered(on_spark):
    def endless(tables, scalars):
        every = tables["transfers"].select(w0=lambda t: t.sender)
        for place in range(1, 6):
            every = every.cross_join(tables["transfers"].select(**{f"w{place}": lambda t: t.sender}))
        text = sum(every[name] for name in every.columns).cast("string")
        return Leaf(every.filter(text == "none").select(wallet="w0"))

    cancel = Cancel()
    threading.Timer(3, cancel.asked.set).start()
    with pytest.raises(QueryCancelled):
        on_spark.ask(Question("endless", endless, lambda tables, scalars: []), limit=1, cancel=cancel)
    assert on_spark.ask(forms.question("token", on_spark), limit=0).matched > 0


def test_the_twin_holds_each_table_in_the_layouts_types(data_dir):
    folder = parquet_files(current(data_dir))
    assert parquet_files(current(data_dir)) == folder
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.parquet" for name in TABLES)
    types = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
    for name, columns in TABLES.items():
        found = duckdb.sql(f"DESCRIBE FROM '{folder / name}.parquet'").fetchall()
        assert [(row[0], row[1]) for row in found] == [
            (column, types.get(kind, kind.upper())) for column, kind in columns.items()
        ]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("pyspark://", "Write pyspark://HOST:PORT"),
        ("pyspark://host", "Write pyspark://HOST:PORT"),
        ("pyspark://host:port", "is not a URL"),
        ("pyspark://local?cores=4", "has no option 'cores'"),
        ("bigquery://project", "Write bigquery://PROJECT/DATASET"),
        ("trino://host:8080/catalog", "Write trino://USER@HOST:PORT/CATALOG/SCHEMA"),
    ],
)
def test_a_url_that_is_not_complete_says_how_it_is_written(data_dir, engine, message):
    with pytest.raises(ConfigError, match=message):
        open_dataset(data_dir, engine)


@pytest.mark.parametrize("engine", ["pyspark://10.0.0.1:7077", "bigquery://project/nbext", "trino://me@host:1/lake/nbext"])
def test_an_engine_elsewhere_is_not_connected_to_before_it_is_asked(data_dir, engine):
    dataset = open_dataset(data_dir, engine)
    assert isinstance(dataset, RemoteDataset)
    assert dataset.about.engine == engine.split(":", maxsplit=1)[0]
    assert dataset.clock.last(1)[0] == forms.LAST
    dataset.close()


def test_ibis_can_write_every_form_for_spark(data_dir, on_duckdb):
    dataset = open_dataset(data_dir, "pyspark://local")
    for form in forms.FORMS:
        question = forms.question(form, on_duckdb)
        sql = dataset._statements.returning(question).with_literals((*question.values, 5))
        assert "9000000000000" not in sql
    dataset.close()
