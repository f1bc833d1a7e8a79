"""Numbers are written in Python as in the browser: both are held to one table of cases; bins are Python's alone."""

from __future__ import annotations

import json
import operator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbext.core import uint256
from nbext.notebook.results import numbers
from tests.notebook.forms.shown_bars import bars_of

CASES = json.loads((Path(__file__).parents[2] / "views" / "numbers.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["six_digits", "share_text", "short_text"])
def test_each_number_is_written_as_in_the_browser(name):
    write = getattr(uint256, name)
    assert [[value, write(value)] for value, _ in CASES[name]] == CASES[name]


def test_a_number_that_says_which_one_is_written_without_commas_whatever_pandas_made_of_it():
    written = [
        numbers.value_text(value, column)
        for column in ("token_id", "projectId", "transfers")
        for value in (1_234_567, 1_234_567.0, Decimal(1_234_567), 10**18, float("inf"))
    ]
    which = [*["1234567"] * 3, "1000000000000000000", "inf"]
    assert written == [*which, *which, *["1,234,567"] * 3, "1,000,000,000,000,000,000", "inf"]


def test_times_are_written_to_the_second_in_utc_also_of_years_that_python_has_no_dates_of():
    # Milliseconds that were read as seconds.
    far = pd.Series(np.array([1_700_000_000_000], dtype="datetime64[s]"))
    times = [*far, *far.dt.tz_localize("UTC"), pd.Timestamp("2025-01-01T01:00:00.5+09:00")]
    assert list(map(numbers.value_text, [*times, datetime(999, 1, 2)])) == [
        "55840-11-08 22:13:20",
        "55840-11-08 22:13:20Z",
        "2024-12-31 16:00:00Z",
        "0999-01-02 00:00:00",
    ]


def test_bins_are_by_the_numbers_and_what_each_filters_holds_what_it_counts():
    made = [
        [values, [[one["name"], one["count"]] for one in bars_of(values)]]
        for values, _ in CASES["bins"]
    ]
    assert made == CASES["bins"]
    for values, _ in CASES["bins"]:
        for one in bars_of(values):
            low, high = float(one["min"]), float(one["max"].lstrip("< "))
            within = operator.lt if one["max"].startswith("<") else operator.le
            held = [value for value in values if low <= value and within(value, high)]
            assert len(held) == one["count"], (values, one)
