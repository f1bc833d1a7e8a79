"""The explorer without a browser: what it sorts, filters and adds up is exact, and its filters mean a segment."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbext
from nbext.client import frames
from nbext.errors import UsageError
from tests.browser.hostile import names

EITHER = (
    '{"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}, "columns": ["firstSeen", "transfers"]}'
)
MOST = 2**256 - 1


def explored(table):
    made = nbext.explore(table)
    assert made.background.join(60)
    return made


def asked(explorer, **by_name):
    """Set the filters of columns."""
    places = {column.name: place for place, column in enumerate(explorer.columns)}
    for name, value in by_name.items():
        explorer.do({"op": "filter", "at": places[name], "value": value})
    assert explorer.background.join(60)
    return explorer


def amounts(values, decimals=0):
    """A table with exact amounts, as a segment's is."""
    texts = [None if one is None else str(one) for one in values]
    table = pd.DataFrame({"UNI_balance_raw": frames.typed_column(texts, "uint256")})
    column = {
        "name": "UNI_balance_raw",
        "type": "uint256",
        "unit": "raw",
        "decimals": decimals,
        "symbol": "UNI",
    }
    table.attrs["nbext"] = {"columns": [column]}
    return table


def column(explorer, place=0):
    return [row[place + 1] for row in explorer.grid.shown["view"]["rows"]]


def test_a_segments_table_is_shown_with_each_amount_once_exactly_and_in_its_tokens_unit(shell):
    made = shell.value(f"%segment {EITHER} --operator OR --all --explore -o both")
    assert made.background.join(60)
    table = shell.ip.user_ns["both"]
    assert made.grid.shown["columns"] == [
        {"name": "address", "kind": "address", "unit": ""},
        {"name": "UNI_balance", "kind": "number", "unit": "UNI"},
        {"name": "BAYC_count", "kind": "number", "unit": ""},
        {"name": "firstSeen", "kind": "time", "unit": ""},
        {"name": "transfers", "kind": "number", "unit": ""},
    ]
    assert made.hint.endswith("UNI_balance: exact, in the token's unit, from the column ..._raw.")
    assert made.in_words() == f"Rows 1 to 25 of {len(table):,}"
    summary = made.grid.shown["summaries"]
    assert summary["stale"] is False
    assert summary["0"] == {"missing": 0, "distinct": len(table), "bars": []}
    units = sum(int(one) for one in table["UNI_balance_raw"])
    assert Decimal(summary["1"]["sum"].replace(",", "")) == Decimal(units).scaleb(-18)
    assert sum(number for _, number in summary["1"]["bars"]) == len(table)
    owned = table["BAYC_count"].value_counts().sort_index()
    assert summary["2"]["bars"] == [(str(number), count) for number, count in owned.items()]
    for place in (3, 4):
        made.do({"op": "sort", "at": place})
        name = made.columns[place].name
        # Times from the first, numbers from the largest; ties in the table's order.
        wanted = table.sort_values(name, ascending=name == "firstSeen", kind="stable")
        assert [row[0] - 1 for row in made.grid.shown["view"]["rows"]] == wanted.index[:25].tolist()


@pytest.mark.parametrize(
    "given",
    [
        {"UNI_balance": {"min": "1000", "max": "20,000"}},
        {"UNI_balance": {"max": "499.9999999999999999999"}},
        {"UNI_balance": {"max": "500"}, "BAYC_count": {"min": "1"}},
        {"BAYC_count": {"max": "1"}},
        {"BAYC_count": {"min": "0.5", "max": "1.5"}},
        {"firstSeen": {"min": "2024-03-01", "max": "2025-06-30"}},
        {"transfers": {"min": "3", "max": "8"}, "address": {"text": "0x"}},
    ],
    ids=str,
)
def test_the_segment_of_filters_has_the_wallets_of_the_filtered_rows(shell, given):
    table = shell.value(f"%segment {EITHER} --operator OR --all")
    made = asked(explored(table), **given)
    mine = sorted(table["address"].iloc[made.rows.to_pylist()])
    assert 0 < len(mine) < len(table)
    made.do({"op": "segment"})
    assert (
        shell.value(made.segment["cell"].replace("\n", " --all\n", 1))["address"].tolist() == mine
    )
    note = "No condition asks for the filter of address: it is not part of the segment."
    assert made.segment["note"] == (note if "address" in given else "")


def test_a_whole_address_is_a_condition_and_a_cut_table_says_that_its_segment_has_more(shell):
    table = shell.value(f"%segment {EITHER} --operator OR --limit 10")
    made = asked(explored(table), address={"text": table["address"][3].upper().replace("0X", "0x")})
    made.do({"op": "segment"})
    filters = json.loads(made.segment["cell"].split("\n", 1)[1])
    assert filters["wallet"] == {"in": [table["address"][3]]}
    assert made.segment["note"] == (
        "The segment finds all wallets that match, not only those among these 10 rows."
    )
    metadata = asked(explored(shell.value("%token ethereum UNI USDC")), symbol={"text": "uni"})
    metadata.do({"op": "segment"})
    note = "This table does not say which segment it is of: only a segment's filters become conditions."
    assert metadata.segment == {"note": note, "cell": ""}


@given(
    st.lists(st.none() | st.integers(0, MOST) | st.integers(0, 9), min_size=1, max_size=25),
    st.integers(0, MOST),
)
@settings(max_examples=60)
def test_amounts_of_all_sizes_are_sorted_filtered_and_added_up_as_pythons_integers_are(
    values, bound
):
    made = explored(amounts(values))
    known = [one for one in values if one is not None]
    made.do({"op": "sort", "at": 0})
    largest = [f"{one:,}" for one in sorted(known, reverse=True)]
    assert column(made) == largest + [None] * (len(values) - len(known))
    if known:
        assert made.grid.shown["summaries"]["0"]["sum"] == f"{sum(known):,}"
    made.do({"op": "filter", "at": 0, "value": {"min": str(bound)}})
    assert column(made) == [f"{one:,}" for one in sorted(known, reverse=True) if one >= bound]
    made.do({"op": "filter", "at": 0, "value": {"max": str(bound)}})
    assert column(made) == [f"{one:,}" for one in sorted(known, reverse=True) if one <= bound]


def test_dust_of_eighteen_decimals_is_neither_lost_nor_rounded_past_a_bound():
    made = explored(amounts([10**18, 10**18 + 1, 10**18 - 1], decimals=18))
    assert column(asked(made, UNI_balance_raw={"min": "1.0000000000000000005"})) == [
        "1.000000000000000001"
    ]
    assert column(asked(made, UNI_balance_raw={"max": "1"})) == ["1", "0.999999999999999999"]
    assert made.grid.shown["summaries"]["0"]["sum"] == "1.999999999999999999"


def test_a_bound_that_cannot_be_read_is_named_at_its_column_and_other_filters_hold():
    made = asked(explored(amounts([1, 2, 3])), UNI_balance_raw={"min": "many"})
    message = "UNI_balance_raw: 'many' is not a number. Write digits, such as 1000 or 0.5."
    assert (made.grid.shown["view"]["errors"], column(made)) == ({"0": message}, ["1", "2", "3"])
    assert (
        column(asked(made, UNI_balance_raw={"min": "2"})),
        made.grid.shown["view"]["errors"],
    ) == (
        ["2", "3"],
        {},
    )
    assert asked(made, UNI_balance_raw={"min": "9"}).in_words() == "No row of 3 matches."
    times = explored(
        pd.DataFrame({"day": pd.to_datetime(["2025-01-01T23:00", "2025-01-02T00:00"], utc=True)})
    )
    assert column(asked(times, day={"max": "2025-01-01"})) == ["2025-01-01T23:00:00Z"]
    message = "day: 'soon' is not a time. Write 2025-01-31 or 2025-01-31T12:00:00Z."
    assert asked(times, day={"max": "soon"}).grid.shown["view"]["errors"] == {"0": message}


def test_any_table_of_pandas_is_explored_whatever_its_columns_hold():
    table = pd.DataFrame(
        {
            "mixed": [1, "two", None, [3]],
            "big": [10**40, 2, None, 4],
            "flag": pd.array([True, None, False, True]),
            "share": [0.5, float("nan"), 1e-7, 3.0],
            "kind": pd.Categorical(["a", "b", "a", "a"]),
            7: [1, 2, 3, 4],
        }
    )
    made = explored(table)
    kinds = {one["name"]: one["kind"] for one in made.grid.shown["columns"]}
    assert kinds == {
        "mixed": "text",
        "big": "number",
        "flag": "flag",
        "share": "number",
        "kind": "text",
        "7": "number",
    }
    assert column(made, 0) == ["1", "two", None, "[3]"]
    assert column(made, 1) == [f"{10**40:,}", "2", None, "4"]
    assert column(made, 3) == ["0.5", None, "0.0000001", "3"]
    assert made.grid.shown["summaries"]["4"] == {
        "missing": 0,
        "distinct": 2,
        "bars": [("a", 3), ("b", 1)],
    }
    assert column(asked(made, flag={"text": "true"}), 5) == ["1", "4"]
    assert explored(pd.DataFrame({"x": []})).in_words() == "No row of 0 matches."
    with pytest.raises(UsageError, match=r"explore needs a DataFrame, not list\."):
        nbext.explore([1])


@pytest.mark.slow
def test_of_a_million_rows_the_browser_gets_a_page_and_the_last_page_is_the_last_row():
    places = np.arange(1_000_000)
    digits = pc.utf8_lpad(pa.array(places).cast(pa.string()), 40, "0")
    table = frames.arrow_frame(
        pa.table({"address": pc.binary_join_element_wise("0x", digits, ""), "n": places}), {}
    )
    made = nbext.explore(table)
    made.do({"op": "page", "page": 10**9, "size": 100})
    assert made.in_words() == "Rows 999,901 to 1,000,000 of 1,000,000"
    assert made.grid.shown["view"]["rows"][-1] == (1_000_000, f"0x{999_999:040}", "999,999")
    assert len(json.dumps([made.grid.shown["view"], made.grid.shown["columns"]])) < 10_000
    assert made.background.join(60)
    assert (
        made.grid.shown["summaries"]["0"]["distinct"],
        made.grid.shown["summaries"]["1"]["sum"],
    ) == (
        1_000_000,
        "499,999,500,000",
    )


def test_hostile_names_reach_the_page_as_text_and_the_snapshot_escaped():
    made = explored(pd.DataFrame({"name": names("http://x"), "<b>head</b>": 1}))
    assert made.grid.shown["columns"][1]["name"] == "<b>head</b>"
    assert column(made)[0] == "h0stile00 <script>window.pwned=1</script>"
    made.do({"op": "page", "page": 0, "size": 50})
    drawn = made.snapshot().html
    assert re.findall(r"[0-9,]+ characters", drawn) == ["20,017 characters"] * 2, (
        "in the cell and in its title"
    )
    assert "h0stile00 &lt;script&gt;" in drawn
    assert "&lt;b&gt;head" in drawn
    assert not any(mark in drawn for mark in ("<script", "<img", "<b>", "<svg", "<iframe"))


def test_explore_is_refused_beside_options_that_return_something_else(shell):
    message = (
        "--to has no effect with --explore, which returns a view of the table. Use one of them."
    )
    assert message in shell.error(f"%segment {EITHER} --explore --to rows.csv")
