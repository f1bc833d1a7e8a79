"""A server of Spark Connect, which has no context in this process, answers as DuckDB does."""

from __future__ import annotations

import threading
from operator import methodcaller

import pytest

from nbext.engine.dataset import Cancel, Question
from nbext.engine.open import open_dataset
from nbext.errors import QueryCancelled
from tests.engine import forms
from tests.engine.cluster import connect_server

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """The same data on DuckDB and over Spark Connect."""
    folder = tmp_path_factory.mktemp("forms")
    forms.generation(folder)
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        both = open_dataset(folder), open_dataset(folder, f"{url}?spark.sql.shuffle.partitions=3")
        yield both
        for dataset in both:
            dataset.close()


@pytest.mark.parametrize("form", ["token_min", "all_any_not", "token_as_of", "nft"])
def test_a_form_has_the_same_rows_over_spark_connect(datasets, form):
    on_duckdb, connected = datasets
    expected = on_duckdb.ask(forms.question(form, on_duckdb), limit=100)
    found = connected.ask(forms.question(form, connected), limit=100)
    assert found.matched == expected.matched > 0
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.rows.schema == expected.rows.schema
    assert (
        "Physical Plan"
        in connected.answers(methodcaller("explained", forms.question(form, connected), 2))["plan"]
    )


def test_a_question_over_spark_connect_is_cancelled_and_the_next_is_answered(datasets):
    _, connected = datasets

    def endless(sql):
        senders = ", ".join(f"(SELECT sender AS w{n} FROM transfers)" for n in range(6))
        summed = " + ".join(f"w{n}" for n in range(6))
        where = f"CAST({summed} AS STRING) = {sql.value('none')}"
        return sql.leaf(f"SELECT w0 AS wallet FROM {senders} WHERE {where}")

    cancel = Cancel()
    threading.Timer(3, cancel.asked.set).start()
    with pytest.raises(QueryCancelled):
        connected.ask(Question(endless), limit=1, cancel=cancel)
    assert connected.ask(forms.question("token", connected), limit=0).matched > 0
