"""Statements are the same text for every value, and name no value that they do not read."""

from __future__ import annotations

import pytest

from nbext.engine.dataset import Order
from nbext.engine.open import open_dataset
from nbext.engine.query.set_tree import Sql, formula_of
from nbext.engine.query.sql import SqlBuilder
from nbext.language import language
from tests.engine import forms


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("forms")
    forms.generation(data_dir)
    opened = open_dataset(data_dir)
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_limit_returns_the_first_rows_of_every_form_in_order(dataset):
    for form in forms.FORMS:
        question = forms.question(form, dataset)
        answer = dataset.ask(question, limit=100)
        assert 0 < answer.matched < len(forms.WALLETS), form
        assert answer.matched == dataset.ask(question, limit=0).matched, form
        assert dataset.ask(question, limit=3).rows == answer.rows.slice(0, 3), form
        addresses = answer.rows["address"].to_pylist()
        assert (addresses == sorted(addresses)) == (question.order == Order()), form


def leaves(tree):
    """Return what a tree has fetched, in the order in which it is combined."""
    found = {}
    formula_of(tree, found)
    return [leaf for _, leaf in found.values()]


def test_conditions_that_differ_in_their_values_are_the_same_text(dataset):
    def texts(condition):
        request = {"operator": "AND", "filters": condition}
        plan = language.resolve(language.parse(request), dataset)
        sets = language.compile(plan).wallets(SqlBuilder()).tree
        return [leaf.text for leaf in leaves(sets)]

    for one, other in (
        (
            {"token": {"token": "USDC", "balance": {"min": "5"}}},
            {"token": {"token": "UNI", "balance": {"min": "7"}}},
        ),
        ({"nft": {"nft": "BAYC", "tokenIds": [1]}}, {"nft": {"nft": "PUNK", "tokenIds": [2, 3]}}),
        ({"wallet": {"in": forms.WALLETS[:1]}}, {"wallet": {"in": forms.WALLETS[1:5]}}),
        ({"activity": {"first": {"after": 5}}}, {"activity": {"first": {"after": 9}}}),
    ):
        assert texts(one) == texts(other)


def test_a_statement_has_the_values_that_its_text_names_numbered_from_the_first():
    sql = SqlBuilder()
    unused, first, large = sql.value(1), sql.value("a"), sql.value(2**64)
    assert unused == "$v0"
    statement = sql.statement(
        f"SELECT wallet FROM t WHERE {large} < x AND {first} = y AND {first} = z"
    )
    assert statement.text == (
        "SELECT wallet FROM t WHERE CAST($v0 AS DECIMAL(38,0)) < x AND $v1 = y AND $v1 = z"
    )
    assert statement.values == {"v0": 2**64, "v1": "a"}


def test_rows_that_stood_in_a_series_say_between_which_blocks_and_counts_of_them_are_not_covered():
    sql = SqlBuilder(span=(5, 9))
    rows = sql.held(7, contract=3)
    leaf = sql.statement(f"SELECT {sql.wallet(7)} FROM {rows}")
    assert leaf == Sql(
        "SELECT wallet, enters, leaves FROM (SELECT *, from_block AS enters, to_block AS leaves "
        "FROM (SELECT * FROM history WHERE contract = $v0) WHERE from_block <= $v1 AND to_block > $v2)",
        {"v0": 3, "v1": 9, "v2": 5},
    )
    assert (leaf.timed, sql.moments, sql.covered) == (True, {7}, True)
    sql.leaf(f"SELECT wallet FROM {rows} GROUP BY wallet HAVING count(*) > 1")
    assert not sql.covered
