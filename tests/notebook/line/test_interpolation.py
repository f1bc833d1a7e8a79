"""``{{expression}}`` means its Python value wherever a word or an option may stand on a magic's line."""

from __future__ import annotations

import pytest


@pytest.fixture
def named(shell):
    shell.value("chain, term, few = 'polygon', 'ape', 2")
    shell.value("question = {'token': {'token': 'UNI', 'balance': {'min': '1000'}}}")
    return shell


def test_a_search_takes_its_term_and_its_options_from_variables(named):
    by_hand = named.value('%nft search "ape" --chain ethereum --limit 2')
    found = named.value("%nft search {{term}} --chain {{'eth' + 'ereum'}} --limit {{few}}")
    assert found["address"].tolist() == by_hand["address"].tolist() != []


def test_a_question_in_a_variable_runs_on_one_line(named):
    assert named.value("%segment {{question}} --count") == 262


def test_a_setting_takes_a_python_value(named):
    assert named.run("%nbext set chain {{chain}}").printed == "chain = polygon\n"


def test_an_option_refuses_a_value_that_it_would_refuse_when_written(named):
    assert named.error("%segment {{question}} --operator {{term}}").startswith(
        "UsageError: %segment: --operator takes AND or OR, not 'ape'."
    )


def test_a_name_that_is_not_defined_is_said_with_its_place(named):
    assert named.error("%nft search {{trem}}") == (
        "UsageError: 'trem' is not defined in this notebook. Did you mean 'term'?\n"
        "  line 1, column 8:\n"
        "    search {{trem}}\n"
        "           ^"
    )
