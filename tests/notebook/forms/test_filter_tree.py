"""Opening a query in the builder and writing it out again keeps what it means, and knows where each part stands."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbext.errors import UsageError
from nbext.language.json_schema import json_schema
from nbext.notebook.completion.schema import Grammar, grammar_of
from nbext.notebook.forms import filter_tree
from nbext.notebook.forms.editors import GroupEditor, TextEditor

GRAMMAR: Grammar = grammar_of(json_schema())
LEAVES = ("s1", "s2", "s3")


@st.composite
def filters(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A map of the grammar, its conditions being saved segments that may be true or false."""
    leaf = st.sampled_from(LEAVES).map(lambda name: {"id": name})
    keys: dict[str, Any] = {"segment": leaf | st.lists(leaf, min_size=1, max_size=3)}
    if depth:
        inner = filters(depth - 1)
        several = st.lists(inner, min_size=1, max_size=2)
        keys |= {"all": several, "any": several}
        keys["not"] = inner | several | several.map(lambda maps: {"any": maps})
    chosen = draw(st.sets(st.sampled_from(sorted(keys)), min_size=1, max_size=2))
    return {key: draw(keys[key]) for key in sorted(chosen)}


def opened(given: dict[str, Any]) -> GroupEditor:
    top = GroupEditor("all", GRAMMAR, lambda: None, lambda _: None, top=True)
    for key, value in filter_tree.split(given):
        top.add(key, value)
    return top


def written(given: dict[str, Any], operator: str) -> dict[str, Any]:
    return filter_tree.joined(opened(given).children, operator, "/filters")


def holds(given: dict[str, Any], true: set[str], join: Any = all) -> bool:
    """What filters mean: each key is a child, and so is each member of a list of conditions or of ``not``."""
    return join([one for key, value in given.items() for one in children(key, value, true)])


def children(key: str, value: Any, true: set[str]) -> list[bool]:
    listed = value if isinstance(value, list) else [value]
    if key == "all":
        return [all(holds(one, true) for one in listed)]
    if key == "any":
        return [any(holds(one, true) for one in listed)]
    if key == "not":
        return [not holds(one, true) for one in listed]
    return [one["id"] in true for one in listed]


@given(filters(), st.sampled_from([("AND", all), ("OR", any)]))
@example({"not": {"any": [{"segment": {"id": "s1"}}, {"segment": {"id": "s2"}}]}}, ("AND", all))
@example({"not": [{"segment": {"id": "s1"}}, {"segment": {"id": "s2"}}]}, ("OR", any))
@settings(max_examples=12, deadline=None)
def test_a_query_that_is_opened_and_written_means_the_same(given, operator):
    word, join = operator
    again = written(given, word)
    for size in range(len(LEAVES) + 1):
        for true in itertools.combinations(LEAVES, size):
            assert holds(again, set(true), join) == holds(given, set(true), join)


@given(filters(), st.sampled_from(["AND", "OR"]))
@settings(max_examples=12, deadline=None)
def test_every_part_knows_the_pointer_of_its_value(given, operator):
    top = opened(given)
    made = filter_tree.joined(top.children, operator, "/filters")
    for editor in itertools.islice(top.walk(), 1, None):
        value: Any = {"filters": made}
        for step in editor.pointer.strip("/").split("/"):
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert value == editor.value()


EXAMPLES = [(name, example) for name in GRAMMAR.conditions for example in json_schema()["$defs"][name]["examples"]]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=str)
def test_the_grammars_own_examples_open_as_cards_and_are_written_as_they_were(name, example):
    top = opened({name: example})
    assert not isinstance(top.children[0], TextEditor)
    assert json.loads(json.dumps(top.children[0].value()), parse_int=str) == json.loads(
        json.dumps(example), parse_int=str
    )


@pytest.mark.parametrize(
    "strange",
    [
        {"token": {"token": "UNI", "novel": 1}},
        {"token": {"token": ["UNI"]}},
        {"token": {"token": "UNI", "balance": {"min": 1.5}}},
        {"wallet": {"contract": "yes"}},
        {"novel": {"x": [1, {"y": None}]}},
        {"token": "UNI"},
    ],
    ids=str,
)
def test_what_no_card_fits_is_kept_as_the_json_that_it_is(strange):
    assert written(strange, "AND") == strange


def test_two_groups_of_one_name_stand_in_a_list():
    one, two = {"any": [{"segment": {"id": "s1"}}]}, {"any": [{"segment": {"id": "s2"}}]}
    top = opened({"all": [one]})
    top.children.extend(opened({"all": [two]}).children)
    assert filter_tree.joined(top.children, "OR", "") == {
        "any": [{"all": [one]}, {"all": [two]}]
    } or filter_tree.joined(top.children, "OR", "") == {"any": [{"any": one["any"]}, {"any": two["any"]}]}


def test_a_cell_hides_nothing_and_holds_no_placeholder():
    filters = {"token": {"token": "{{secret}}\u202e\x1b é 🚀"}}
    text = filter_tree.json_text(filters)
    assert text == '{"token": {"token": "{\\u007bsecret}}\\u202e\\u001b é 🚀"}}'
    assert json.loads(text) == filters


def test_a_cell_says_only_what_differs_from_the_defaults():
    filters = {"token": {"token": "UNI"}}
    assert filter_tree.cell_text("", filters, "AND", None) == '%%segment_query\n{"token": {"token": "UNI"}}'
    assert filter_tree.cell_text("whales", filters, "OR", 5) == (
        '%%segment_query whales --operator OR --limit 5\n{"token": {"token": "UNI"}}'
    )


def test_long_json_is_laid_out_and_short_parts_stand_on_one_line():
    filters = {"token": {"token": "UNI", "balance": {"min": "1000"}}, "any": [{"nft": {"nft": "BAYC"}}] * 2}
    assert filter_tree.json_text(filters) == (
        '{\n  "token": {"token": "UNI", "balance": {"min": "1000"}},\n'
        '  "any": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "BAYC"}}]\n}'
    )


def test_a_query_is_read_from_filters_a_body_or_json_text():
    filters = {"token": {"token": "UNI"}}
    body = {"filters": filters, "operator": "OR", "limit": 3}
    assert filter_tree.parsed(filters) == (filters, "AND", None)
    assert filter_tree.parsed(body) == (filters, "OR", 3)
    assert filter_tree.parsed(json.dumps(body)) == (filters, "OR", 3)
    assert filter_tree.parsed({**body, "operator": "or", "limit": 0}) == (filters, "OR", None)
    for nonsense in (7, "{", "[]", {**body, "operator": "XOR"}):
        with pytest.raises(UsageError):
            filter_tree.parsed(nonsense)
