"""Opening a query in the builder and writing it out again keeps what it means; edits of the tree, undo and redo."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbext.errors import NbextError, UsageError
from nbext.language.json_schema import json_schema
from nbext.notebook.forms.builder import fields, filters
from nbext.notebook.forms.builder.filters import Edits, FilterGroup, FilterPart, Tree

GRAMMAR = fields.grammar_of(json_schema())
LEAVES = ("s1", "s2", "s3")


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A map of the grammar, its conditions being saved segments that may be true or false."""
    leaf = st.sampled_from(LEAVES).map(lambda name: {"id": name})
    keys: dict[str, Any] = {"segment": leaf | st.lists(leaf, min_size=1, max_size=3)}
    if depth:
        inner = queries(depth - 1)
        several = st.lists(inner, min_size=1, max_size=2)
        keys |= {"all": several, "any": several}
        keys["not"] = inner | several | several.map(lambda maps: {"any": maps})
    chosen = draw(st.sets(st.sampled_from(sorted(keys)), min_size=1, max_size=2))
    return {key: draw(keys[key]) for key in sorted(chosen)}


def opened(given: dict[str, Any], operator: str = "AND") -> Tree:
    return filters.read(given, operator, GRAMMAR.scope.names)


def written(given: dict[str, Any], operator: str) -> dict[str, Any]:
    return filters.written(opened(given, operator))[0]


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


@given(queries(), st.sampled_from([("AND", all), ("OR", any)]))
@example({"not": {"any": [{"segment": {"id": "s1"}}, {"segment": {"id": "s2"}}]}}, ("AND", all))
@example({"not": [{"segment": {"id": "s1"}}, {"segment": {"id": "s2"}}]}, ("OR", any))
@settings(max_examples=12)
def test_a_query_that_is_opened_and_written_means_the_same(given, operator):
    word, join = operator
    again = written(given, word)
    for size in range(len(LEAVES) + 1):
        for true in itertools.combinations(LEAVES, size):
            assert holds(again, set(true), join) == holds(given, set(true), join)


@given(queries(), st.sampled_from(["AND", "OR"]))
@settings(max_examples=12)
def test_every_part_knows_the_pointer_of_its_value(given, operator):
    tree = opened(given, operator)
    made, places = filters.written(tree)
    assert set(places.values()) == {part.id for part in tree.root.walk()} - {tree.root.id}
    for pointer, wanted in places.items():
        value: Any = {"filters": made}
        for step in pointer.strip("/").split("/"):
            value = value[int(step)] if isinstance(value, list) else value[step]
        part = tree.find(wanted)
        if not isinstance(part, FilterGroup) and not part.negated:
            assert value == part.value


EXAMPLES = [
    (name, example)
    for name in GRAMMAR.conditions
    for example in json_schema()["$defs"][name]["examples"]
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=str)
def test_the_grammars_own_examples_have_inputs_that_give_them_back(name, example):
    spec = GRAMMAR.conditions[name]
    shown = fields.inputs_of(spec.fields, example)
    assert shown is not None
    known = {one.name: one for one in spec.fields}
    again = {field: fields.typed(known[field], text) for field, text in shown.items()}
    assert json.loads(json.dumps(again), parse_int=str) == json.loads(
        json.dumps(example), parse_int=str
    )
    assert fields.in_words(spec, example)


def test_amounts_and_durations_are_taken_as_a_line_shows_them_and_names_as_they_are():
    spec = GRAMMAR.conditions["token"]
    known = {one.name: one for one in spec.fields}
    for field, typed, value in [
        ("balance", {"min": "1,000", "max": "1,234,567.5"}, {"min": "1000", "max": "1234567.5"}),
        ("balance", {"min": "1,00", "max": ""}, {"min": "1,00"}),
        ("heldSince", "3 months", "90d"),
        ("heldSince", "1 Year", "365d"),
        ("heldSince", "12 hours ago", "12h"),
        ("heldSince", "2024-01-01", "2024-01-01"),
        ("heldSince", "3 moons", "3 moons"),
        ("token", "1,000", "1,000"),
        ("token", "3 months", "3 months"),
    ]:
        assert fields.typed(known[field], typed) == value, typed
    held = {"token": "UNI", "balance": {"min": "1000"}, "heldSince": "180d"}
    assert fields.in_words(spec, held) == "UNI · balance >= 1,000 · held for 180 days"
    assert fields.typed(known["heldSince"], "180 days") == "180d"


@pytest.mark.parametrize(
    "strange",
    [
        {"token": {"token": "UNI", "novel": 1}},
        {"token": {"token": ["UNI"]}},
        {"token": {"token": "UNI", "balance": {"min": 1.5}}},
        {"token": {"token": "UNI", "balance": "1000"}},
        {"token": {"token": {"min": "1"}}},
        {"token": {"token": " UNI"}},
        {"token": {"token": True}},
        {"nft": {"nft": "BAYC", "heldSince": None}},
        {"nft": {"nft": "BAYC", "tokenIds": [["1"]]}},
        {"collections": {"of": ["Bored Apes", "MAYC"]}},
        {"wallet": {"contract": "yes"}},
        {"novel": {"x": [1, {"y": None}]}},
        {"token": "UNI"},
    ],
    ids=str,
)
def test_what_no_input_fits_is_kept_as_the_json_that_it_is(strange):
    assert written(strange, "AND") == strange
    (line,) = opened(strange).root.members
    assert line.key not in GRAMMAR.conditions or not fields.inputs_of(
        GRAMMAR.conditions[line.key].fields, line.value
    )


@pytest.mark.parametrize(
    ("condition", "value", "inputs"),
    [
        ("token", {"token": "UNI", "chain": 8453}, {"token": "UNI", "chain": "8453"}),
        ("nft", {"nft": "A", "count": {"min": 2}}, {"nft": "A", "count": {"min": "2"}}),
        ("nft", {"nft": "A", "tokenIds": [2**255, "1"]}, {"nft": "A", "tokenIds": f"{2**255}, 1"}),
        ("wallet", {"in": "sg_x"}, {"in": "sg_x"}),
        ("wallet", {"in": []}, {"in": ""}),
        ("wallet", {"contract": False}, {"contract": "false"}),
    ],
)
def test_what_inputs_show_is_what_they_would_be_read_as(condition, value, inputs):
    assert fields.inputs_of(GRAMMAR.conditions[condition].fields, value) == inputs


def test_two_groups_of_one_name_stand_in_a_list():
    one, two = (
        {"any": [{"segment": {"id": name}}, {"segment": {"id": "s3"}}]} for name in LEAVES[:2]
    )
    members = [*opened(one).root.members, *opened(two).root.members]
    assert filters.written(Tree(FilterGroup("any", members)))[0] == {"any": [one, two]}
    assert filters.written(Tree(FilterGroup("all", members)))[0] == {"all": [one, two]}


def names(tree: Tree) -> Any:
    def of(part: FilterPart) -> Any:
        text = [*map(of, part.members)] if isinstance(part, FilterGroup) else part.value
        return ["not", text] if part.negated else text

    return of(tree.root)


def parts() -> list[FilterPart]:
    return [FilterPart("segment", name) for name in "abc"]


def test_a_line_moves_past_lines_into_groups_and_out_of_them():
    a, b, c = parts()
    tree = Tree(FilterGroup("all", [a, FilterGroup("any", [b, c])]))
    seen = []
    for _ in range(4):
        seen.append(names(tree))
        tree.move(a.id, 1)
    assert seen == [["a", ["b", "c"]], [["a", "b", "c"]], [["b", "a", "c"]], [["b", "c", "a"]]]
    assert names(tree) == [["b", "c"], "a"]
    tree.move(a.id, 1)
    assert names(tree) == [["b", "c"], "a"]
    for wanted in (
        [["b", "c", "a"]],
        [["b", "a", "c"]],
        [["a", "b", "c"]],
        *[["a", ["b", "c"]]] * 2,
    ):
        tree.move(a.id, -1)
        assert names(tree) == wanted


def test_a_group_moves_past_lines_and_a_line_past_another_up_and_down():
    a, b, c = parts()
    group = FilterGroup("any", [b])
    tree = Tree(FilterGroup("all", [a, group, c]))
    tree.move(group.id, -1)
    assert names(tree) == [["b"], "a", "c"]
    tree.move(c.id, -1)
    assert names(tree) == [["b"], "c", "a"]
    tree.move(c.id, 1)
    assert names(tree) == [["b"], "a", "c"]


def test_lines_are_added_to_a_group_and_copied():
    a, b, c = parts()
    group = FilterGroup("any", [b])
    tree = Tree(FilterGroup("all", [a, group]))
    tree.add(c)
    assert names(tree) == ["a", ["b"], "c"]
    twin = group.copied()
    assert twin == group
    assert {part.id for part in twin.walk()}.isdisjoint(part.id for part in group.walk())
    tree.add(twin, group.id)
    assert names(tree) == ["a", ["b", ["b"]], "c"]
    for gone in (tree.find, tree.around):
        with pytest.raises(UsageError, match="gone already"):
            gone(parts()[0].id)


def test_undo_and_redo_go_through_every_step_and_what_is_typed_into_one_field_is_one():
    a, b, c = parts()
    edits = Edits(Tree(FilterGroup("all", [a])))

    def added(part: FilterPart, of: object = None) -> bool:
        edits.now.add(part)
        return edits.settle(of)

    def gone_to(by: int) -> Any:
        edits.go(by)
        return names(edits.now)

    assert (edits.settle(), len(edits.steps)) == (False, 1)
    assert (added(b, "field"), added(c, "field"), len(edits.steps)) == (True, True, 2)
    assert [gone_to(by) for by in (-1, -1, 1, 1)] == [["a"], ["a"], [*"abc"], [*"abc"]]
    # What comes back is the same parts.
    assert [part.id for part in edits.now.root.members] == [a.id, b.id, c.id]
    assert gone_to(-1) == ["a"]
    assert added(b)
    assert [gone_to(by) for by in (1, -1, 1)] == [["a", "b"], ["a"], ["a", "b"]]
    # After undo the same field begins a step of its own.
    assert added(c, "field")
    assert [gone_to(by) for by in (-1, 1)] == [["a", "b"], [*"abc"]]
    assert added(parts()[0], "field")
    assert gone_to(-1) == [*"abc"]


@pytest.mark.slow
def test_undo_goes_back_500_steps_and_no_further():
    edits = Edits(Tree(FilterGroup("all", [])))
    for number in range(600):
        edits.now.add(FilterPart("segment", {"id": number}))
        edits.settle()
    # What did not change is there once.
    first, second = (step.root.members[0] for step in edits.steps[-2:])
    assert (first.value is second.value, first is second) == (True, False)
    for _ in range(600):
        edits.go(-1)
    assert len(edits.now.root.members) == 100


@pytest.mark.parametrize(
    ("condition", "value", "words"),
    [
        (
            "token",
            {"token": "UNI", "balance": {"min": "1000"}, "heldSince": "180d"},
            "UNI · balance >= 1,000 · held for 180 days",
        ),
        (
            "nft",
            {"nft": "BAYC", "count": {"min": 2, "max": 5}, "chain": "base"},
            "BAYC · chain base · count 2 to 5",
        ),
        (
            "nft",
            {"nft": "BAYC", "tokenIds": [1, 2, 3, 4, 5]},
            "BAYC · token IDs 1, 2, 3 and 2 more",
        ),
        ("activity", {"last": {"before": "180d"}}, "last before 180 days ago"),
        (
            "transfer",
            {"direction": "in", "token": "USDC", "after": "1d"},
            "direction in · USDC · after 1 day ago",
        ),
        ("wallet", {"contract": False}, "no contract"),
        ("wallet", {"in": []}, "in none"),
    ],
)
def test_a_condition_is_one_line_of_words(condition, value, words):
    assert fields.in_words(GRAMMAR.conditions[condition], value) == words


def test_a_field_offers_what_its_schema_says_that_it_takes():
    offers = {
        f"{spec.name}.{one.name}": one.picks
        for spec in (GRAMMAR.scope, *GRAMMAR.conditions.values())
        for one in spec.fields
    }
    assert {name: kind for name, kind in offers.items() if kind} == {
        ".asOf": "time",
        ".orderBy": "column",
        "token.token": "token",
        "token.heldSince": "time",
        "nft.nft": "collection",
        "nft.heldSince": "time",
        "collections.of": "collection",
        "transfer.token": "token",
        "transfer.nft": "collection",
        "transfer.after": "time",
        "transfer.before": "time",
        "activity.first": "time",
        "activity.last": "time",
        "wallet.in": "segment",
        "wallet.list": "list",
        "segment.id": "segment",
    }


def test_a_cell_hides_nothing_and_holds_no_placeholder():
    asked = {"token": {"token": "{{secret}}\u202e\x1b é 🚀"}}
    text = filters.json_text(asked)
    assert text == '{"token": {"token": "{\\u007bsecret}}\\u202e\\u001b é 🚀"}}'
    assert json.loads(text) == asked


def test_a_cell_says_only_what_differs_from_the_defaults():
    asked = {"token": {"token": "UNI"}}
    assert (
        filters.cell_text("", asked, "AND", None) == '%%segment_query\n{"token": {"token": "UNI"}}'
    )
    assert filters.cell_text("whales", asked, "OR", 5) == (
        '%%segment_query whales --operator OR --limit 5\n{"token": {"token": "UNI"}}'
    )


def test_long_json_is_laid_out_and_short_parts_stand_on_one_line():
    asked = {
        "token": {"token": "UNI", "balance": {"min": "1000"}},
        "any": [{"nft": {"nft": "BAYC"}}] * 2,
    }
    assert filters.json_text(asked) == (
        '{\n  "token": {"token": "UNI", "balance": {"min": "1000"}},\n'
        '  "any": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "BAYC"}}]\n}'
    )


def test_a_query_is_read_from_filters_a_body_or_json_text():
    asked = {"token": {"token": "UNI"}}
    body = {"filters": asked, "operator": "OR", "limit": 3}
    assert filters.parsed(asked) == (asked, "AND", None)
    assert filters.parsed(body) == (asked, "OR", 3)
    assert filters.parsed(json.dumps(body)) == (asked, "OR", 3)
    assert filters.parsed({**body, "operator": "or", "limit": 0}) == (asked, "OR", None)
    exact = '{"token": {"token": "UNI", "balance": {"min": 12345678901234567890.05}}}'
    assert filters.parsed(exact)[0]["token"]["balance"] == {"min": "12345678901234567890.05"}
    for nonsense, message in (
        (7, "Expected filters, a request body, or a segment's table"),
        ("{", "The query is not JSON"),
        ("[]", "Expected filters"),
        ('{"token": {"token": "UNI"}, "token": {"token": "USDC"}}', "'token' appears twice"),
        (
            {**body, "operator": "XOR"},
            "/operator: 'XOR' is not allowed. Did you mean 'OR'? Allowed: AND, OR.",
        ),
        ({**body, "limt": 3}, "/limt: 'limt' is not allowed. Did you mean 'limit'? Allowed: "),
        (
            {**body, "limit": "5"},
            "/limit: '5' is not allowed. Allowed: a whole number from 0 to 10,000,000.",
        ),
    ):
        with pytest.raises(NbextError, match=re.escape(message)):
            filters.parsed(nonsense)
