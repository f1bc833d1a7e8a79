"""``{{expression}}`` means its Python value wherever a word or an option may stand on a magic's line."""

from __future__ import annotations

import pandas as pd
import pytest

from nbext.language.conditions import CONDITIONS
from nbext.language.json_schema import json_schema
from nbext.notebook.run.root import MAGICS


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
    assert named.run("%nbext set chain {{chain}}").printed.startswith(
        "chain = polygon\nnote: Chain of a search"
    )


@pytest.mark.parametrize(
    "file",
    [
        "out_{{token}}.parquet",
        "out_{{ token }}.parquet",
        "'out_{{token}}.parquet'",
        '"out_{{ token }}.parquet"',
        'out_{{by["token"]}}.parquet',
        "out_{{by['token'] + ''}}.parquet",
        "{{'out_' + token}}.parquet",
        "{{folder}}/out_{{token}}.parquet",
        "{{f'out_{token}.parquet'}}",
    ],
)
@pytest.mark.parametrize("to", ["--to ", "--to="])
def test_a_file_is_named_by_variables(named, tmp_path, monkeypatch, to, file):
    monkeypatch.chdir(tmp_path)
    named.value("token, by, folder = 'UNI', {'token': 'UNI'}, '.'")
    ran = named.run("%segment {{question}} " + to + file + " -o rows")
    assert [path.name for path in tmp_path.iterdir()] == ["out_UNI.parquet"], ran
    assert len(pd.read_parquet("out_UNI.parquet")) == 262


def test_an_expression_may_be_a_part_of_a_word(named):
    named.value("stable, by = 'USD', {'USD': 'of another name'}")
    assert named.value("""%token {{'eth'}}ereum {{stable}}C {{stable + 'T'}}""")[
        "symbol"
    ].tolist() == ["USDC", "USDT"]
    assert named.error("""%token ethereum x{{by["stable"]}}""").startswith(
        """UsageError: {{by["stable"]}} failed: KeyError: 'stable'"""
    )


def test_an_option_refuses_a_value_that_it_would_refuse_when_written(named):
    assert named.error("%segment {{question}} --operator {{term}}").startswith(
        "UsageError: %segment: --operator: 'ape' is not allowed. Allowed: AND, OR."
    )


def test_a_name_that_is_not_defined_is_said_with_its_place(named):
    assert named.error("%nft search {{trem}}") == (
        "UsageError: 'trem' is not defined in this notebook. Did you mean 'term'?\n"
        "  line 1, column 8:\n"
        "    search {{trem}}\n"
        "           ^"
    )


# "s" is also a name of the notebook, of another token.
HOLDERS = """
from concurrent.futures import ThreadPoolExecutor
s = "WBTC"
def by_line(s):
    return get_ipython().run_line_magic("segment", '{"token": {"token": {{s}}}} --count')
def by_cell(s):
    return get_ipython().run_cell_magic("segment_query", "--count", '{"token": {"token": {{s}}}}')
def by_word(s):
    %segment {"token": {"token": {{s}}}} --count -o counted
    return counted
def by_assignment(s):
    counted = %segment {"token": {"token": {{[s for _ in range(2)][1]}}}} --count
    return counted
def by_comprehension(symbol):
    return [get_ipython().run_line_magic("segment", '{"token": {"token": {{s}}}} --count') for s in [symbol]][0]
def by_thread(s):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(by_line, [s, "AAVE"]))[0]
"""


@pytest.mark.parametrize(
    "function", ["by_line", "by_cell", "by_word", "by_assignment", "by_comprehension", "by_thread"]
)
def test_a_name_in_a_function_is_the_functions_own_before_the_notebooks(shell, function):
    shell.value(HOLDERS)
    assert shell.value(f"{function}('UNI'), {function}('AAVE')") == (1002, 563)


# The names th, max and s are the notebook's too; each function's own th is 1000.
NESTED = """
from concurrent.futures import ThreadPoolExecutor
th, max, s = '1', 5, 'WBTC'
def by_function(th):
    def one(s):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count
        return found
    return one("UNI")
def by_lambda(th):
    text = '{"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count'
    return (lambda s: get_ipython().run_line_magic("segment", text))("UNI")
def by_generator(th):
    text = '{"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count'
    return list(get_ipython().run_line_magic("segment", text) for s in ["UNI"])[0]
def by_method(th):
    class Asks:
        th = '2'
        def one(self, s="UNI"):
            found = %segment {"token": {"token": {{s}}, "balance": {"min": {{str(th)}}}}} --count
            return found
    return Asks().one()
def by_default(th):
    def one(s, th=th):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count
        return found
    return one
def returned(th):
    def one(s, max=max):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{str(th)}}}}} --count
        return found
    return one
def shadowed(max):
    def one(s):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{max}}}}} --count
        return found
    return one
def by_thread(th):
    def one(s):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count
        return found
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(one, ["UNI"]))[0]
def elsewhere(th, made=None):
    def one(s):
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count
        return found
    return made("UNI") if made else one
def by_closure(th):
    def one(s):
        least = th
        found = %segment {"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count
        return found
    return one
def by_comprehensions(th):
    text = '{"token": {"token": {{s}}, "balance": {"min": {{th}}}}} --count'
    return [[get_ipython().run_line_magic("segment", text) for s in [one]][0] for one in ["UNI"]][0]
"""


def test_an_inner_function_uses_the_variables_of_the_functions_around_it_that_python_keeps(shell):
    shell.value(NESTED)
    calls = ("by_default('1000')('UNI')", "by_closure('1000')('UNI')", "by_comprehensions('1000')")
    assert shell.value(", ".join(calls)) == (262, 262, 262)
    text = '{"token": {"token": {{name}}}} --count'
    shell.value(f"text = {text!r}; ask = get_ipython().run_line_magic")
    assert shell.value("[ask('segment', text) for name in ['UNI', 'AAVE']]") == [1002, 563]
    assert shell.value("list(ask('segment', text) for name in ['UNI'])") == [1002]


@pytest.mark.parametrize(
    ("call", "function", "name"),
    [
        ("returned('1000')('UNI')", "returned", "th"),
        ("shadowed('1000')('UNI')", "shadowed", "max"),
        ("by_thread('1000')", "by_thread", "th"),
        ("by_function('1000')", "by_function", "th"),
        ("by_lambda('1000')", "by_lambda", "th"),
        ("by_generator('1000')", "by_generator", "th"),
        ("by_method('1000')", "by_method", "th"),
        # Whoever calls a function need not be who made it: this one was made with 1000.
        ("elsewhere('5', elsewhere('1000'))", "elsewhere", "th"),
    ],
)
def test_a_variable_of_an_outer_function_that_is_lost_is_never_the_notebooks(
    shell, call, function, name
):
    shell.value(NESTED)
    assert shell.error(call).splitlines()[0] == (
        f"UsageError: {name!r} is a variable of {function}, and its value is not known inside of another function. "
        f"Pass it to that function as an argument, such as the default {name}={name}."
    )


def test_a_variable_that_its_function_has_not_assigned_is_an_error_and_never_the_notebooks(shell):
    shell.value(
        """s = 'UNI'
def unassigned(given):
    if given: s = given
    found = %segment {"token": {"token": {{s}}}} --count
    return found
def deleted():
    s = 'LINK'
    del s
    %segment {"token": {"token": {{s}}}} --count
"""
    )
    for call, function in (("unassigned(None)", "unassigned"), ("deleted()", "deleted")):
        assert shell.error(call).splitlines()[0] == (
            f"UsageError: 's' is a variable of {function}, which has given it no value."
        )
    assert shell.value("unassigned('UNI')") == 1002


def test_a_function_of_an_imported_module_uses_the_names_of_its_module(
    shell, tmp_path, monkeypatch
):
    (tmp_path / "asking_elsewhere.py").write_text(
        """least = '1000'
def many(shell, name):
    cell = '{"token": {"token": "UNI", "balance": {"min": {{%s}}}}} --count' % name
    return shell.run_line_magic("segment", cell)
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    shell.value("import asking_elsewhere; least = '1'; only_here = '1'")
    assert shell.value("asking_elsewhere.many(get_ipython(), 'least')") == 262
    assert shell.error("asking_elsewhere.many(get_ipython(), 'only_here')").startswith(
        "UsageError: 'only_here' is not defined"
    )


def test_each_key_of_a_request_and_of_its_filters_beside_the_conditions_is_an_option(shell):
    request = json_schema()["properties"]
    keys = [*request, *request["filters"]["properties"]]
    beside = [name for name in keys if name not in (*CONDITIONS, "all", "any", "not", "filters")]
    names = {"fileType": "type", "orderBy": "by", "asOf": "as-of"}
    flags = MAGICS["segment"][0].flags
    assert [name for name in beside if f"--{names.get(name, name)}" not in flags] == []
    assert len(beside) == 8
    assert shell.error('%segment {"token": {"token": "UNI"}} --since 30d').startswith(
        "UsageError: %segment: unknown option '--since'. --changes TIME returns who joined and left since then; "
        '"heldSince" and "after" are fields of conditions.'
    )


def test_keys_beside_the_conditions_may_stand_on_the_line(shell):
    by_hand = shell.value(
        '%segment {"token": {"token": "USDC"}, "chain": "polygon", "asOf": 80900000, '
        '"columns": ["firstSeen", "lastSeen"]}'
    )
    on_line = shell.value(
        '%segment {"token": {"token": "USDC"}} --chain polygon --as-of 80,900,000 --columns firstSeen,lastSeen'
    )
    pd.testing.assert_frame_equal(on_line, by_hand)
    assert on_line.attrs["nbext"]["filters"] == by_hand.attrs["nbext"]["filters"]


def test_a_function_uses_the_notebooks_names_where_it_has_none_of_its_own(shell):
    shell.value(
        """least = '1000'
def many(s):
    return %s
    """.replace(
            "%s",
            "get_ipython().run_line_magic('segment', "
            '\'{"token": {"token": {{s}}, "balance": {"min": {{least}}}}} --count\')',
        )
    )
    assert shell.value("many('UNI')") == 262


def test_a_builtin_is_never_suggested_for_an_unknown_name(shell):
    for name in ("opne", "exti", "lsit", "get_ipyton"):
        assert "Did you mean" not in shell.error(f"%nft search {{{{{name}}}}}")
