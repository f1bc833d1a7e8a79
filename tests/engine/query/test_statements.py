"""Every form of the grammar is answered the same as by the one statement that Spark is sent."""

from __future__ import annotations

import pytest
import sqlglot

from nbext.engine.open import open_dataset
from nbext.engine.query.parameters import inline
from nbext.engine.query.statements import Statements, name_apart
from nbext.engine.query.statements import answer as answer_of
from tests.engine import forms


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("forms")
    forms.generation(data_dir)
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


@pytest.mark.parametrize("form", forms.FORMS)
def test_sets_combined_answer_as_the_whole_statement_does(dataset, form):
    question = forms.question(form, dataset)
    answer = dataset.ask(question, limit=100)
    assert 0 < answer.matched < len(forms.WALLETS)
    assert answer.matched == dataset.ask(question, limit=0).matched
    for limit in (3, 100):
        assert whole(dataset, inline(question), limit) == dataset.ask(question, limit=limit)
    addresses = answer.rows["address"].to_pylist()
    assert (addresses == sorted(addresses)) == (question.order is None)


def whole(dataset, question, limit):
    """What the one statement answers that Spark is sent."""
    statement = Statements("duckdb").returning(question)
    with dataset._connection.cursor() as cursor:
        sql = statement.with_literals((*question.values, limit))
        fetched = cursor.execute("USE generation").execute(sql).to_arrow_table()
    return answer_of(question, statement, fetched)


def test_queries_of_one_name_in_two_subqueries_have_names_apart_on_spark():
    tree = sqlglot.parse_one(
        "WITH t1 AS (SELECT 1 AS a) SELECT * FROM t1 JOIN (WITH t1 AS (SELECT 2 AS a) SELECT * FROM t1 "
        "WHERE t1.a IN (WITH t1 AS (SELECT 3 AS a) SELECT a FROM t1 AS t2)) AS t3 ON t3.a = t1.a",
        dialect="spark",
    )
    name_apart(tree)
    assert tree.sql(dialect="spark") == (
        "WITH t1 AS (SELECT 1 AS a), `t1_1` AS (SELECT 2 AS a), `t1_0` AS (SELECT 3 AS a) SELECT * FROM t1 JOIN "
        "(SELECT * FROM `t1_1` AS `t1` WHERE t1.a IN (SELECT a FROM `t1_0` AS t2)) AS t3 ON t3.a = t1.a"
    )
