"""Numbers and bins are written in Python as in the browser: both are held to one table of cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbext.notebook.forms.distribution import ranges
from nbext.notebook.results import numbers

CASES = json.loads((Path(__file__).parents[2] / "views" / "numbers.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["six_digits", "share_text", "short_text"])
def test_each_number_is_written_as_in_the_browser(name):
    write = getattr(numbers, name)
    assert [[value, write(value)] for value, _ in CASES[name]] == CASES[name]


def test_bins_are_those_of_the_browser():
    made = [
        [values, [[one["name"], one["count"]] for one in ranges(values)]]
        for values, _ in CASES["bins"]
    ]
    assert made == CASES["bins"]
