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
from IPython.core.interactiveshell import InteractiveShell

import nbext
from nbext.client import frames
from nbext.errors import UsageError
from nbext.notebook.forms.markup import code_html
from nbext.notebook.results.numbers import value_text
from tests.browser.hostile import names

EITHER = (
    '{"token": {"token": "UNI"}, "nft": {"nft": "BAYC"}, "columns": ["firstSeen", "transfers"]}'
)
MOST = 2**256 - 1


def asked(explorer, search="", order=(), **by_name):
    """Have an explorer find the rows of filters, by the names of their columns."""
    places = {column.name: place for place, column in enumerate(explorer.columns)}
    filters = {str(places[name]): value for name, value in by_name.items()}
    explorer.find([(places[name], way) for name, way in order], filters, search)
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
    return [row[place] for row in explorer.shown_rows(0, 1_000)]


def shared(explorer):
    explorer.share()
    assert explorer.background.join(30)
    return explorer.message


def summary(explorer, place=0):
    return explorer.summary(place)


def test_a_segments_table_is_shown_with_each_amount_once_exactly_and_in_its_tokens_unit(shell):
    made = shell.value(f"%segment {EITHER} --operator OR --all --explore -o both")
    table = shell.ip.user_ns["both"]
    described = [(one["name"], one["kind"], one["unit"]) for one in made.table.shown["columns"]]
    assert described == [
        ("address", "address", ""),
        ("UNI_balance", "number", "UNI"),
        ("BAYC_count", "number", ""),
        ("firstSeen", "time", ""),
        ("transfers", "number", ""),
    ]
    assert made.hint.endswith("UNI_balance: exact, from ..._raw.")
    assert made.in_words() == f"{len(table):,} rows"
    assert summary(made) == {"missing": 0, "distinct": len(table), "bars": []}
    units = sum(int(one) for one in table["UNI_balance_raw"])
    assert Decimal(summary(made, 1)["sum"]) == Decimal(units).scaleb(-18)
    assert sum(one["count"] for one in summary(made, 1)["bars"]) == len(table)
    owned = table["BAYC_count"].value_counts().sort_index()
    bars = [(one["name"], one["count"]) for one in summary(made, 2)["bars"]]
    assert bars == [(str(number), count) for number, count in owned.items()]
    # By several columns; ties in the table's order.
    asked(made, order=[("transfers", "descending"), ("firstSeen", "ascending")])
    wanted = table.sort_values(["transfers", "firstSeen"], ascending=[False, True], kind="stable")
    pd.testing.assert_frame_equal(made.frame, wanted)


def test_a_page_is_answered_what_it_asks_under_its_number_and_other_views_are_shown_the_question():
    made = nbext.explore(pd.DataFrame({"n": [3, 1, 2]}))
    sent = []
    made.table.tell = sent.append
    question = {"order": [[0, "ascending"]], "filters": {"0": {"min": "2"}}, "search": ""}
    about = {"from": "view", "number": 7}
    made.do({"op": "ask", **question, **about})
    made.do({"op": "rows", "start": 0, "end": 1, **about})
    made.do({"op": "summary", "at": 0, **about})
    found, answer = {"count": 2, "errors": {}}, {"op": "answer", "to": "view", "number": 7}
    assert sent == [
        {**found, **answer},
        {"op": "show", "by": "view", "changes": {"found": {"asked": question, **found}}},
        {"rows": [("2",)], **answer},
        {"summary": made.summary(0), **answer},
    ]


def test_a_bar_filters_the_rows_that_it_counts(shell):
    table = shell.value(f"%segment {EITHER} --operator OR --all")
    made = nbext.explore(table)
    for place, one in enumerate(made.columns):
        for bar in summary(asked(made), place)["bars"]:
            bounds = {side: bar[side] for side in ("min", "max", "text") if side in bar}
            assert len(asked(made, **{one.name: bounds}).rows) == bar["count"], (one.name, bar)


@given(
    st.lists(
        st.builds(
            lambda whole, least: whole + Decimal(least).scaleb(-18),
            st.integers(0, 2) | st.sampled_from([30, 10**5, 2**63, 10**22]),
            st.integers(-1, 1) | st.integers(0, 10**18),
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=150)
def test_a_bar_counts_what_its_filter_takes_also_of_numbers_between_two_floats(values):
    tables = [
        pd.DataFrame({"UNI_balance_raw": values}),
        amounts([max(0, int(one.scaleb(18))) for one in values], decimals=18),
        pd.DataFrame(
            {"UNI_balance_raw": np.array(list(map(abs, map(int, values))), dtype="uint64")}
        )
        if max(values) < 2**64
        else pd.DataFrame({"UNI_balance_raw": list(map(int, values))}),
    ]
    for table in tables:
        made = nbext.explore(table)
        bars = summary(made)["bars"]
        assert sum(one["count"] for one in bars) == len(table)
        for one in bars:
            bounds = {side: one[side] for side in ("min", "max")}
            assert len(asked(made, UNI_balance_raw=bounds).rows) == one["count"], one


def test_a_column_of_one_float_past_a_hundred_digits_has_a_bar_that_filters():
    made = nbext.explore(pd.DataFrame({"number": [1e300, 1e300]}))
    bar = {"name": "1e+300", "min": "1e+300", "max": "1e+300", "count": 2}
    assert summary(made)["bars"] == [bar]
    assert len(asked(made, number={"min": bar["min"], "max": bar["max"]}).rows) == 2


def test_what_is_inside_of_a_cell_is_shown_as_it_is_and_categories_by_what_they_are():
    long = np.arange(1_100)
    table = pd.DataFrame(
        {
            "record": [{"a": 1}, {"b": 2}, {}],
            "list": [[1, 2], [2.5], (1, None)],
            "array": [long, None, long[:1]],
            "number": pd.Categorical([100, 9, None]),
            "time": pd.Categorical(pd.to_datetime(["2025-01-02", None, "2025-01-01"])),
        }
    )
    made = nbext.explore(table)
    assert column(made, 0) == ["{'a': 1}", "{'b': 2}", "{}"]
    assert column(made, 1) == ["[1, 2]", "[2.5]", "(1, None)"]
    assert column(made, 2) == [str(long.tolist()), None, "[0]"]
    assert [one.kind for one in made.columns[3:]] == ["number", "time"]
    assert column(asked(made, order=[("number", "ascending")]), 3) == ["9", "100", None]


def test_a_text_is_whole_and_found_as_it_is_shown_and_a_year_before_1000_has_four_digits():
    texts = ["US\u200bDC", "x" * 250, "x" * 249 + "y"]
    old = np.array(["0999-12-31", "0001-01-01", "2025-01-01"], dtype="datetime64[s]")
    made = nbext.explore(pd.DataFrame({"name": texts, "old": old}))
    assert column(made) == ["US\\u200bDC", *texts[1:]]
    assert column(asked(made, "\\u200b")) == column(asked(made, name={"text": "=US\\u200bDC"}))
    assert column(asked(made, name={"text": f"={texts[2]}"})) == [texts[2]]
    assert column(asked(made, order=[("old", "ascending")]), 1) == [
        "0001-01-01",
        "0999-12-31",
        "2025-01-01",
    ]


def test_a_filtered_columns_bars_are_those_of_all_that_the_other_filters_take():
    some = pd.DataFrame({"number": [1, 2, 2, None], "kind": ["a", "a", "b", "b"], "at": range(4)})
    made = asked(nbext.explore(some.astype({"number": "Int64"})), number={"min": "2"})
    assert summary(made) == {
        "missing": 0,
        "min": "2",
        "max": "2",
        "sum": "4",
        "bars": [
            {"name": "1", "count": 1, "min": "1", "max": "1"},
            {"name": "2", "count": 2, "min": "2", "max": "2"},
            {"name": "missing", "count": 1},
        ],
    }
    assert [one["count"] for one in summary(made, 2)["bars"]] == [1, 1]
    asked(made, number={"min": "2"}, kind={"text": "=b"})
    assert [one["count"] for one in summary(made)["bars"]] == [1, 1]


def test_the_rows_that_match_are_stored_shared_as_a_page_and_searched(shell, tmp_path, monkeypatch):
    made = nbext.explore(shell.value("%token ethereum UNI USDC WETH"))
    assert column(asked(made, "usd", symbol={"text": "=USDC"}), 6) == column(asked(made, "usd"), 6)
    made.variable.type("found")
    made.store()
    assert made.message == "found = 1 row, 17 columns"
    assert shell.ip.user_ns["found"]["symbol"].tolist() == ["USDC"]
    monkeypatch.chdir(tmp_path)
    assert shared(made) == "found.html: 1 row, 17 columns"
    assert "found</h1>" in (tmp_path / "found.html").read_text("utf-8")


def test_a_page_that_exists_is_replaced_by_a_form_only_when_its_button_is_pressed_again(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "rows.html"
    page.write_text("mine")
    made = nbext.explore(pd.DataFrame({"number": [1, 2]}))
    asked = "rows.html exists. Press Share again to replace it, or give another name."
    assert (shared(made), page.read_text("utf-8")) == (asked, "mine")
    # What is offered is offered for this name alone, and once.
    made.variable.type("other")
    assert shared(made) == "other.html: 2 rows, 1 column"
    made.variable.type("rows")
    assert [shared(made) for _ in range(3)] == [asked, "rows.html: 2 rows, 1 column", asked]


def test_the_segment_of_filters_has_the_wallets_of_the_filtered_rows(shell):
    table = shell.value(f"%segment {EITHER} --operator OR --all")
    for filters in (
        {"UNI_balance": {"min": "1000", "max": "20,000"}},
        {"UNI_balance": {"max": "499.9999999999999999999"}},
        {"UNI_balance": {"max": "< 500"}},
        {"firstSeen": {"max": "< 2025-06-30"}},
        {"UNI_balance": {"max": "500"}, "BAYC_count": {"min": "1"}},
        {"BAYC_count": {"max": "1"}},
        {"BAYC_count": {"min": "0.5", "max": "1.5"}},
        {"firstSeen": {"min": "2024-03-01", "max": "2025-06-30"}},
        {"transfers": {"min": "3", "max": "8"}, "address": {"text": "0x"}},
    ):
        made = asked(nbext.explore(table), **filters)
        mine = sorted(table["address"].iloc[made.rows.to_pylist()])
        assert 0 < len(mine) < len(table), filters
        cell, said = made.segment()
        found = shell.value(cell.replace("\n", " --all\n", 1))
        assert found["address"].tolist() == mine, filters
        note = "No condition asks for the filter of address: it is not part of the segment."
        assert said == (note if "address" in filters else ""), filters


def test_the_segment_of_amounts_whose_exact_column_was_left_out_or_made_floats_has_the_same_wallets(
    shell,
):
    table = shell.value(f"%segment {EITHER} --operator OR --all")
    cut = table.drop(columns="UNI_balance_raw")
    floats = table.drop(columns="UNI_balance").astype({"UNI_balance_raw": float})
    raw = str(5 * 10**17)
    for made, filters in (
        (nbext.explore(cut), {"UNI_balance": {"min": "0.5", "max": "< 500"}}),
        (nbext.explore(floats), {"UNI_balance_raw": {"min": raw, "max": f"< 500{'0' * 18}"}}),
    ):
        asked(made, **filters)
        mine = sorted(table["address"].iloc[made.rows.to_pylist()])
        assert 0 < len(mine) < len(table)
        found = shell.value(made.segment()[0].replace("\n", " --all\n", 1))
        assert found["address"].tolist() == mine
    # Those are as they are shown: no token's unit stands beside them.
    described = {one["name"]: (one["unit"], one["decimals"]) for one in made.table.shown["columns"]}
    assert described["UNI_balance_raw"] == ("", None)


def test_a_time_of_another_zone_or_within_a_second_is_the_same_instant_in_the_segments_cell(shell):
    table = shell.value(f"%segment {EITHER} --operator OR --all")
    made = nbext.explore(table)
    for bounds, condition in (
        ({"min": "2025-01-12T05:30:00+05:30"}, {"after": "2025-01-12T00:00:00Z"}),
        ({"max": "< 2025-01-11T19:00-05:00"}, {"before": "2025-01-11T23:59:59Z"}),
        ({"min": "2025-01-12T00:00:00.25"}, {"after": "2025-01-12T00:00:01Z"}),
        ({"max": "2025-01-12T00:00:00.25"}, {"before": "2025-01-12T00:00:00Z"}),
        ({"min": "2025-01-12"}, {"after": "2025-01-12T00:00:00Z"}),
    ):
        cell, _ = asked(made, firstSeen=bounds).segment()
        added = json.loads(cell.split("\n", 1)[1])["all"][1]["activity"]["first"]
        assert added == condition, bounds
    message = "firstSeen: '0001-01-01T00:00+05:30' is not a time."
    wrong = asked(made, firstSeen={"min": "0001-01-01T00:00+05:30"}).errors
    assert next(iter(wrong.values())).startswith(message)


def test_the_cell_of_the_segment_follows_the_filters_and_so_does_what_is_not_part_of_it(shell):
    made = nbext.explore(shell.value(f"%segment {EITHER} --operator OR --all"))

    def ask(filters):
        made.do({"op": "ask", "order": [], "filters": filters, "search": ""})
        return made.code.value

    balance = str([one.name for one in made.columns].index("UNI_balance"))
    assert ask({balance: {"min": "5"}}) == ""
    made.to_segment()
    for filters in ({balance: {"min": "7"}}, {"0": {"text": "0xa"}}, {}):
        shown = ask(filters)
        cell, said = made.segment()
        assert (shown, made.message) == (code_html(cell), said)
        assert shown in made.still_html()


def test_what_a_bar_filters_is_written_as_it_would_be_typed():
    values = [*[5.0] * 9, 70_000.0, -250.0, 1e-7, 3e20]
    for some in (values[:10], values[:11], [*values[:9], 1e-7], values):
        bars = nbext.explore(pd.DataFrame({"n": some})).summary(0)["bars"]
        bounds = [bar[side].removeprefix("< ") for bar in bars for side in ("min", "max")]
        assert all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", one) for one in bounds), bounds
        assert sum(one["count"] for one in bars) == len(some)


def test_a_filter_that_no_amount_passes_is_no_segment_of_those_that_have_none(shell):
    made = nbext.explore(shell.value(f"%segment {EITHER} --operator OR --all"))
    cell, _ = asked(made, UNI_balance={"min": "-5", "max": "-1"}).segment()
    assert len(made.rows) == 0
    assert '"balance": {"min": "0", "max": "-1"}' in cell
    assert "max" in shell.error(cell)


def test_a_whole_address_is_a_condition_and_a_cut_table_says_that_its_segment_has_more(shell):
    table = shell.value(f"%segment {EITHER} --operator OR --limit 10")
    made = asked(
        nbext.explore(table), address={"text": table["address"][3].upper().replace("0X", "0x")}
    )
    cell, said = made.segment()
    assert json.loads(cell.split("\n", 1)[1])["all"][1] == {"wallet": {"in": [table["address"][3]]}}
    assert said == "The segment finds all wallets that match, not only those among these 10 rows."
    # Of rows that were picked since, too, whether a limit had cut others off or not.
    whole = shell.value(f"%segment {EITHER} --operator OR --all")
    for rows, few in ((table, 10), (whole, len(whole))):
        part = nbext.explore(rows.head(4))
        assert part.segment()[1] == said.replace("10", "4")
        assert f" 4 rows of the {few:,} that were returned." in part.hint
        assert ("Rows here", f"4 (of the {few:,} that were returned)") in nbext.show(
            rows.head(4)
        ).facts
    assert f" 10 rows of the {len(whole):,} that match, cut by the limit." in made.hint
    assert nbext.explore(whole).segment()[1] == ""
    for line in ("%token ethereum UNI USDC", f"%segment {table.attrs['nbext']['segment_id']}"):
        labels = [part.shown.get("label") for part in nbext.explore(shell.value(line)).walk()]
        assert "As a segment" not in labels
    assert "As a segment" in [part.shown.get("label") for part in made.walk()]


@given(
    st.lists(st.none() | st.integers(0, MOST) | st.integers(0, 9), min_size=1, max_size=25),
    st.integers(0, MOST) | st.just(-1),
)
@settings(max_examples=60)
def test_amounts_of_all_sizes_are_sorted_filtered_and_added_up_as_pythons_integers_are(
    values, bound
):
    made = nbext.explore(amounts(values))
    known = [one for one in values if one is not None]
    largest = [str(one) for one in sorted(known, reverse=True)]
    order = [("UNI_balance_raw", "descending")]
    assert column(asked(made, order=order)) == largest + [None] * (len(values) - len(known))
    if known:
        assert summary(made)["sum"] == str(sum(known))
    for bounds, fits in (
        ({"min": str(bound)}, bound.__le__),
        ({"max": str(bound)}, bound.__ge__),
        ({"max": f"< {bound}"}, bound.__gt__),
    ):
        found = asked(made, order=order, UNI_balance_raw=bounds)
        assert column(found) == [one for one in largest if fits(int(one))]


def test_dust_of_eighteen_decimals_is_neither_lost_nor_rounded_past_a_bound():
    made = nbext.explore(amounts([10**18, 10**18 + 1, 10**18 - 1], decimals=18))
    assert column(asked(made, UNI_balance_raw={"min": "1.0000000000000000005"})) == [
        "1.000000000000000001"
    ]
    assert column(asked(made, UNI_balance_raw={"max": "1"})) == ["1", "0.999999999999999999"]
    assert summary(made)["sum"] == "1.999999999999999999"


def test_a_bound_that_cannot_be_read_is_named_at_its_column_and_other_filters_hold():
    made = asked(nbext.explore(amounts([1, 2, 3])), UNI_balance_raw={"min": "many"})
    message = "UNI_balance_raw: 'many' is not a number. Write digits, such as 1000 or 0.5."
    assert (made.errors, column(made)) == ({0: message}, ["1", "2", "3"])
    assert column(asked(made, UNI_balance_raw={"min": "2"})) == ["2", "3"]
    assert made.errors == {}
    assert asked(made, UNI_balance_raw={"min": "9"}).in_words() == "0 of 3 rows"
    times = nbext.explore(
        pd.DataFrame({"day": pd.to_datetime(["2025-01-01T23:00", "2025-01-02T00:00"], utc=True)})
    )
    assert column(asked(times, day={"max": "2025-01-01"})) == ["2025-01-01T23:00:00Z"]
    assert column(asked(times, day={"max": "< 2025-01-02"})) == ["2025-01-01T23:00:00Z"]
    # Of a day in another notation the rest of the day would be left out without a word.
    for other in ("soon", "2025-W01-3", "20250101", "2025-01-01T12"):
        message = f"day: {other!r} is not a time. Write 2025-01-31 or 2025-01-31T12:00:00Z."
        assert asked(times, day={"max": other}).errors == {0: message}


@pytest.mark.parametrize("typed", ["<2", "< 2", "<2025-01-02"])
def test_a_lower_bound_that_says_below_is_no_number_and_no_time(typed):
    days = pd.to_datetime(["2025-01-01", "2025-01-02", "2025-01-03"])
    made = nbext.explore(pd.DataFrame({"whole": [1, 2, 3], "mean": [1.0, 2.0, 3.0], "day": days}))
    asked(made, **{name: {"min": typed} for name in ("whole", "mean", "day")})
    assert (sorted(made.errors), len(made.rows)) == ([0, 1, 2], 3)


def test_differences_of_exact_amounts_are_numbers_that_sort_and_add_up_also_below_zero():
    table = amounts([10**24, 5 * 10**20, 0, None])
    table["delta"] = table["UNI_balance_raw"] - 10**21
    table["wide"] = [10**75, -(2**100), 3, None]
    made = asked(nbext.explore(table), order=[("delta", "ascending")])
    assert column(made, 1) == [str(-(10**21)), str(-5 * 10**20), str(10**24 - 10**21), None]
    assert column(asked(made, wide={"max": "-1"}), 2) == [str(-(2**100))]
    assert [summary(asked(made), place)["sum"] for place in (1, 2)] == [
        str(10**24 - 10**21 - 10**21 - 5 * 10**20),
        str(10**75 - 2**100 + 3),
    ]


def test_a_search_finds_what_contains_it_also_where_it_begins_as_a_filter_of_a_whole_text():
    made = nbext.explore(pd.DataFrame({"name": ["=SUM(A1)", "a =sum", "sum", None], "n": range(4)}))
    assert column(asked(made, "=sum"), 1) == ["0", "1"]
    assert column(asked(made, name={"text": "=sum"}), 1) == ["2"]


@pytest.mark.parametrize("typed", ["0,5", "2,50", "1_0", "1000,000"])
def test_a_comma_that_parts_no_thousands_is_not_passed_over_in_a_bound(typed):
    made = asked(nbext.explore(amounts([1, 2, 3])), UNI_balance_raw={"min": typed})
    message = f"UNI_balance_raw: {typed!r} is not a number. Write digits, such as 1000 or 0.5."
    assert (made.errors, column(made)) == ({0: message}, ["1", "2", "3"])


def test_any_table_of_pandas_is_explored_whatever_its_columns_hold():
    table = pd.DataFrame(
        {
            "mixed": [1, "two", None, [3]],
            "big": [10**40, 2, None, 4],
            "flag": pd.array([True, None, False, True]),
            "share": [0.5, float("nan"), 1e-7, 3.0],
            "kind": pd.Categorical(["a", "b", "a", "a"]),
            7: [1, 2, 3, 4],
            "fine": pd.to_datetime([1, None, 1_700_000_000_123_456_789, 0]),
        }
    )
    made = nbext.explore(table)
    kinds = {one["name"]: one["kind"] for one in made.table.shown["columns"]}
    assert kinds == {
        "mixed": "text",
        "big": "number",
        "flag": "flag",
        "share": "number",
        "kind": "text",
        "7": "number",
        "fine": "time",
    }
    assert column(made, 0) == ["1", "two", None, "[3]"]
    assert column(made, 1) == [str(10**40), "2", None, "4"]
    assert column(made, 3) == ["0.5", None, "1e-07", "3.0"]
    assert summary(made, 4) == {
        "missing": 0,
        "distinct": 2,
        "bars": [{"name": "a", "count": 3, "text": "=a"}, {"name": "b", "count": 1, "text": "=b"}],
    }
    assert column(asked(made, flag={"text": "true"}), 5) == ["1", "4"]
    for nothing in (pd.DataFrame({"x": []}), pd.DataFrame()):
        empty = nbext.explore(nothing)
        assert (empty.in_words(), len(empty.frame)) == ("0 rows", 0)
        assert empty.text().startswith("Table: 0 rows")
    with pytest.raises(UsageError, match=r"explore needs a DataFrame, not list\."):
        nbext.explore([1])


def test_a_filter_of_flags_contains_what_is_typed_and_matches_none_that_does_not():
    made = nbext.explore(pd.DataFrame({"flag": [True, False, None], "n": [1, 2, 3]}))
    found = {
        text: column(asked(made, flag={"text": text}), 1)
        for text in ("true", "TRUE", "=true", "tr", "e", "=false", "yes")
    }
    true, both = ["1"], ["1", "2"]
    assert found == {
        **dict.fromkeys(("true", "TRUE", "=true", "tr"), true),
        "e": both,
        "=false": ["2"],
        "yes": [],
    }


def test_a_bar_finds_the_rows_that_it_counts_where_its_name_ends_in_a_blank():
    made = nbext.explore(pd.DataFrame({"name": ["a ", "a ", "a", "a", "a", "b"]}))
    bars = made.summary(0)["bars"]
    found = [len(asked(made, name={"text": one["text"]}).rows) for one in bars]
    assert found == [one["count"] for one in bars] == [3, 2, 1]


@pytest.mark.parametrize("change", ["cut", "sorted", "written"])
def test_the_rows_of_a_filter_are_of_the_table_as_it_was_opened_whatever_becomes_of_it(change):
    table = pd.DataFrame({"n": [1, 2, 3, 4]})
    made = asked(nbext.explore(table), n={"min": "3"})
    if change == "cut":
        del table["n"]
    elif change == "sorted":
        table[:] = table[::-1].to_numpy()
    else:
        table.loc[2, "n"] = 0
    assert made.frame["n"].tolist() == [3, 4]
    assert made.text().splitlines()[0] == "Table: 2 of 4 rows"


def test_columns_of_pandas_own_kinds_are_explored_each_by_what_it_says(tmp_path):
    hours = pd.to_timedelta([10, 2, None], unit="h")
    table = pd.DataFrame(
        {
            "zone": pd.to_datetime(["2025-01-01", None, "2025-07-01"]).tz_localize("Asia/Tokyo"),
            "period": pd.period_range("2025-01", periods=3, freq="M"),
            "bin": pd.cut([1, 2, 3], [0, 2, 3]),
            "age": hours,
            "few": pd.arrays.SparseArray([0, 0, 7]),
            "half": np.array([0.5, 2.0, 1.0], dtype="float16"),
            "bytes": [b"a", None, b"\xff"],
            "arrays": [np.array([1, 2]), None, np.array([3])],
            "half a pair": pd.Series(["\ud800", None, "b"], dtype=object),
            "endless": [float("inf"), float("-inf"), 1.0],
            "huge": [1e308, 1e308, 1.0],
        }
    )
    made = nbext.explore(table)
    assert list(zip(*made.shown_rows(0, 3), strict=True)) == [
        ("2024-12-31T15:00:00Z", None, "2025-06-30T15:00:00Z"),
        ("2025-01", "2025-02", "2025-03"),
        ("(0, 2]", "(0, 2]", "(2, 3]"),
        ("36000", "7200", None),
        ("0", "0", "7"),
        ("0.5", "2.0", "1.0"),
        ("b'a'", None, "b'\\xff'"),
        ("[1, 2]", None, "[3]"),
        ("\\ud800", None, "b"),
        ("inf", "-inf", "1.0"),
        ("1e+308", "1e+308", "1.0"),
    ]
    assert made.table.shown["columns"][3]["unit"] == "seconds"
    assert [made.summary(place).get("sum") for place in (3, 4, 5, 9, 10)] == [
        "43200",
        "7",
        "about 3.5",
        "nan",
        "inf",
    ]
    longest = asked(made, order=[("age", "descending")], half={"max": "1"}).frame
    assert longest["age"].tolist()[0] == hours[0]
    nbext.page(table, tmp_path / "kinds.html")
    assert (tmp_path / "kinds.html").exists()


def test_times_of_whole_days_alone_are_written_as_days():
    days = pd.to_datetime(["2025-01-01", None, "2025-03-31"])
    table = pd.DataFrame({"day": days, "zoned": days.tz_localize("UTC"), "date": days.date})
    table["time"] = days + pd.Timedelta("1s")
    made = nbext.explore(table)
    day, time = ("2025-01-01", None, "2025-03-31"), "2025-01-01T00:00:01Z"
    assert [column(made, place) for place in range(3)] == [list(day)] * 3
    assert column(made, 3)[0] == time
    assert [made.summary(place)["min"] for place in (0, 3)] == [day[0], time]
    assert column(asked(made, day={"min": "2025-01-02"})) == ["2025-03-31"]


def test_times_of_years_past_those_that_python_has_are_texts():
    times = np.array(["2025-01-01", "12000-05-06", "NaT"], dtype="datetime64[s]")
    made = nbext.explore(pd.DataFrame({"until": times, "n": range(3)}))
    assert made.columns[0].kind == "text"
    assert column(made) == ["2025-01-01 00:00:00", "12000-05-06 00:00:00", None]
    assert column(asked(made, until={"text": "12000"}), 1) == ["1"]


def test_a_bar_of_the_largest_floats_finds_those_that_it_counts():
    made = nbext.explore(pd.DataFrame({"f": [1.7e308, -1.7e308, 5.0]}))
    bars = summary(made)["bars"]
    assert (bars[0]["count"], bars[-1]["count"], bars[-1]["name"]) == (1, 1, "1.5e+308 to inf")
    for bar in bars:
        found = asked(made, f={side: bar[side] for side in ("min", "max")})
        assert (len(found.rows), found.errors) == (bar["count"], {})


def test_days_beyond_which_there_are_none_are_the_ends_of_their_bins(tmp_path):
    ends = pd.Series(["0001-01-01", "2025-01-01", "9999-12-31"]).astype("datetime64[us]")
    made = nbext.explore(pd.DataFrame({"until": ends}))
    bars = summary(made)["bars"]
    assert (bars[0]["min"], bars[-1]["max"]) == ("0001-01-01", "9999-12-31")
    assert [
        len(asked(made, until={"min": one["min"], "max": one["max"]}).rows) for one in bars
    ] == [one["count"] for one in bars]
    nbext.page(pd.DataFrame({"until": ends}), tmp_path / "ends.html")


def test_the_bins_of_some_rows_are_those_of_all_that_have_any():
    numbers = pd.DataFrame({"n": range(0, 1000, 10), "kind": ["few"] * 30 + ["more"] * 70})
    made = nbext.explore(numbers)
    every = {one["name"]: one for one in summary(made)["bars"]}
    assert list(every) == [f"{low} to {low + 100}" for low in range(0, 900, 100)] + ["900 to 1k"]
    few = summary(asked(made, kind={"text": "=few"}))["bars"]
    assert few == [every[f"{low} to {low + 100}"] for low in (0, 100, 200)]


def test_whole_numbers_under_the_name_of_a_share_are_no_percentages_as_in_a_notebooks_table():
    made = nbext.explore(pd.DataFrame({"share": [1, 2], "UNI_share": [1.0, 0.5]}))
    assert [one["share"] for one in made.table.shown["columns"]] == [False, True]
    assert [value_text(1, "share"), value_text(1.0, "UNI_share")] == ["1", "100%"]


def test_the_labels_of_rows_are_columns_and_a_mere_count_of_them_is_not():
    names = ["BAYC", "MAYC"]
    common = pd.DataFrame([[203, 119], [119, 242]], names, names)
    made = nbext.explore(common)
    assert [column.name for column in made.columns] == ["name", *names]
    assert made.shown_rows(0, 2) == [("BAYC", "203", "119"), ("MAYC", "119", "242")]
    months = common.rename_axis("cohort").set_index(pd.Index([7, 8]), append=True)
    assert [one.name for one in nbext.explore(months).columns][:2] == ["cohort", "name"]
    # In Arrow and in files as in the explorer; beside a column of that name under another.
    assert frames.to_arrow(months).column_names == ["cohort", "name", *names]
    named = common.assign(name=["a", "b"])
    assert [one.name for one in nbext.explore(named).columns] == ["name_", *names, "name"]
    assert frames.to_arrow(named).column_names == ["name_", *names, "name"]
    counted = common.reset_index(drop=True)
    assert [one.name for one in nbext.explore(counted[counted["MAYC"] > 200]).columns] == names


@pytest.mark.slow
def test_of_a_million_rows_the_browser_gets_a_page_and_the_last_page_is_the_last_row():
    places = np.arange(1_000_000)
    digits = pc.utf8_lpad(pa.array(places).cast(pa.string()), 40, "0")
    table = frames.arrow_frame(
        pa.table({"address": pc.binary_join_element_wise("0x", digits, ""), "n": places}), {}
    )
    made = nbext.explore(table)
    assert made.shown_rows(999_999, 1_000_099) == [(f"0x{999_999:040}", "999999")]
    assert len(made.shown_rows(0, 1_000_000)) == 1_000
    assert summary(made)["distinct"] == 1_000_000
    assert summary(made, 1)["sum"] == "499999500000"


def test_hostile_names_reach_the_page_as_text_and_the_snapshot_escaped():
    made = nbext.explore(pd.DataFrame({"name": names("http://x"), "<b>head</b>": 1}))
    assert made.table.shown["columns"][1]["name"] == "<b>head</b>"
    assert column(made)[0] == "h0stile00 <script>window.pwned=1</script>"
    made.find([], {}, "<b>")
    assert re.findall(r"[0-9,]+ characters", made.still_html()) == ["20,017 characters"]


def test_rows_are_stored_and_shared_where_there_is_no_ipython_whose_variables_could_be_set(
    tmp_path, monkeypatch
):
    # A test before this one may have left a shell.
    monkeypatch.setattr(InteractiveShell, "_instance", None, raising=False)
    monkeypatch.chdir(tmp_path)
    made = nbext.explore(pd.DataFrame({"number": [1, 2]}))
    made.store()
    assert made.message == "form.frame = 2 rows, 1 column"
    assert shared(made) == "rows.html: 2 rows, 1 column"
    assert (tmp_path / "rows.html").exists()
