"""The JSON Schema: it is one, it takes its own examples, and it agrees with the parser."""

from __future__ import annotations

import copy
import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from nbext import cli
from nbext.errors import InvalidSegment
from nbext.language.conditions import CONDITIONS, GROUPS, SCOPE
from nbext.language.fields import FIELD_TYPES
from nbext.language.json_schema import json_schema
from nbext.language.parse import parse
from tests.language.test_against_oracle import requests

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
# What a schema can see. The rest needs keccak, the data, or arithmetic.
STRUCTURE = {
    "unknown-key",
    "empty-group",
    "empty",
    "exclusive",
    "needs",
    "required",
    "choice",
    "type",
}


def codes(request):
    try:
        parse(json.loads(json.dumps(request), parse_float=Decimal))
    except InvalidSegment as error:
        return {one["code"] for one in error.errors}
    return set()


def test_it_is_a_schema_of_draft_2020_12():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=lambda condition: condition.name)
def test_a_conditions_examples_are_taken_by_the_schema_and_by_the_parser(condition):
    for example in condition.examples:
        request = {"filters": {condition.name: example}}
        assert codes(request) == set()
        VALIDATOR.validate(request)


FIELDS = [(condition, field) for condition in CONDITIONS.values() for field in condition.fields]


@pytest.mark.parametrize(("condition", "field"), FIELDS, ids=lambda one: one.name)
def test_a_fields_examples_are_values_it_takes(condition, field):
    schema = Draft202012Validator(SCHEMA["$defs"][condition.name]["properties"][field.name])
    assert field.help.endswith(".")
    assert field.examples
    for example in field.examples:
        schema.validate(example)
        companions = {
            name: other
            for one, others in condition.needs
            if one == field.name
            for name in others[:1]
            for other in next(one for one in condition.fields if one.name == name).examples[:1]
        }
        required = {one.name: one.examples[0] for one in condition.fields if one.required}
        idle = {} if required or field.name not in condition.idle else condition.examples[0]
        assert (
            codes(
                {
                    "filters": {
                        condition.name: {**idle, **required, **companions, field.name: example}
                    }
                }
            )
            == set()
        )


@pytest.mark.parametrize("key", [*GROUPS, *SCOPE], ids=lambda key: key.name)
def test_the_examples_of_groups_and_scope_keys_are_taken(key):
    for example in key.examples:
        request = {"filters": {"wallet": {"contract": False}, key.name: example}}
        VALIDATOR.validate(request)
        assert codes(request) == set()


def test_every_kind_is_used_and_every_field_has_a_kind():
    used = {field.kind for _, field in FIELDS} | {field.kind for field in SCOPE}
    assert used == set(FIELD_TYPES)


def test_every_object_and_field_has_a_title_and_a_description():
    for name, schema in SCHEMA["$defs"].items():
        assert {"title", "description"} <= schema.keys(), name
    for condition in CONDITIONS:
        for name, schema in SCHEMA["$defs"][condition]["properties"].items():
            assert {"title", "description", "examples"} <= schema.keys(), name


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(requests())
def test_what_the_parser_takes_the_schema_takes(request):
    assert codes(request) == set()
    VALIDATOR.validate(request)


def places(value, path=()):
    """Every place in a JSON value, as a path."""
    yield path
    for key, one in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(one, (*path, key))


def damaged(request, path, damage):
    request = copy.deepcopy(request)
    *parents, last = path
    place = request
    for key in parents:
        place = place[key]
    damage(place, last)
    return request


DAMAGES = {
    "null": lambda place, key: place.__setitem__(key, None),
    "true": lambda place, key: place.__setitem__(key, True),
    "text": lambda place, key: place.__setitem__(key, "#"),
    "object": lambda place, key: place.__setitem__(key, {}),
    "list": lambda place, key: place.__setitem__(key, []),
    "removed": lambda place, key: place.pop(key),
    "unknown": lambda place, key: place.__setitem__(
        *(("zzz", 1) if isinstance(place, dict) else (key, {"zzz": 1}))
    ),
    "alone": lambda place, key: place.__setitem__(key, {"chain": "base"}),
}


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_schema_and_parser_refuse_the_same_structures(data):
    request = data.draw(requests())
    path = data.draw(st.sampled_from([path for path in places(request) if path]))
    wrong = damaged(request, path, DAMAGES[data.draw(st.sampled_from(sorted(DAMAGES)))])
    found = codes(wrong)
    if not VALIDATOR.is_valid(wrong):
        assert found, "the schema is stricter than the parser"
    elif found & STRUCTURE:
        raise AssertionError(f"the parser is stricter than the schema: {found} of {wrong}")


def test_the_command_prints_the_schema_or_one_condition(capsys):
    assert cli.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert cli.main(["schema", "nft"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"$schema": SCHEMA["$schema"], **SCHEMA["$defs"]["nft"]}
    assert cli.main(["schema", "nfts"]) == 2
    assert capsys.readouterr().err == (
        "ValidationError: nbext schema: 'nfts' is not allowed. Did you mean 'nft'? "
        f"Allowed: {', '.join(CONDITIONS)}.\n"
    )


def test_the_command_prints_the_schema_of_all_and_of_one_condition(capsys):
    assert cli.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert cli.main(["schema", "wallet"]) == 0
    assert set(json.loads(capsys.readouterr().out)["properties"]) == {"in", "list", "contract"}
