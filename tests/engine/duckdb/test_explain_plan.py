"""A plan is lines that fit a notebook, indented as steps are inputs of others."""

from __future__ import annotations

import json

from nbext.engine.duckdb.dataset import drawn

SCAN = {
    "name": "SEQ_SCAN ",
    "children": [],
    "extra_info": {"Table": "balances", "Estimated Cardinality": "1"},
}


def test_each_step_is_a_line_and_its_inputs_stand_below_it():
    facts = {
        "Conditions": "wallet = wallet",
        "Filters": ["a>1", "b=2"],
        "Empty": "",
        "Estimated Cardinality": "2899",
    }
    top = {
        "name": "TOP_N",
        "children": [{"name": "HASH_JOIN", "children": [SCAN, SCAN], "extra_info": facts}, SCAN],
    }
    assert drawn(json.dumps([top])).splitlines() == [
        "TOP_N",
        "  HASH_JOIN  Conditions: wallet = wallet; Filters: a>1, b=2; ~2,899 rows",
        "    SEQ_SCAN  Table: balances; ~1 row",
        "    SEQ_SCAN  Table: balances; ~1 row",
        "  SEQ_SCAN  Table: balances; ~1 row",
    ]


def test_a_step_that_does_not_fit_goes_on_below_itself():
    long = {
        "name": "PROJECTION",
        "children": [SCAN],
        "extra_info": {"Projections": ["column"] * 40, "Word": "x" * 200},
    }
    lines = drawn(json.dumps([{"name": "TOP", "children": [long, SCAN]}])).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("  PROJECTION  Projections: column,")
    assert lines[2].startswith("        column,")
    assert lines[-2:] == [
        "    SEQ_SCAN  Table: balances; ~1 row",
        "  SEQ_SCAN  Table: balances; ~1 row",
    ]
