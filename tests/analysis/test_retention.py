"""Cohorts through time: each size and share is that of the oracle's sets at the ends of the periods."""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.errors import InvalidSegment, ValidationError
from tests.analysis.test_overlap import EACH, matched, segments
from tests.language.tables import GENESIS
from tests.language.test_against_oracle import LAST

FIRST = datetime.datetime.fromtimestamp(GENESIS, datetime.UTC).date()
DAYS = [FIRST + datetime.timedelta(days=day) for day in range(4)]


@pytest.mark.slow
@EACH
@given(asked=segments(most=1), cohort=st.sampled_from(["held", "seen"]))
def test_each_share_is_that_of_the_oracles_sets(client, oracle, asked, cohort):
    filters = {key: one for key, one in asked[0]["filters"].items() if key != "asOf"}
    asked = {**asked[0], "filters": {**filters, "chain": "eth"}}
    try:
        table = nbext.retention(asked, "day", cohort=cohort, since="3d", client=client)
    except InvalidSegment:
        # Its heldSince lies after some of the days.
        return
    ends = [*map(str, DAYS[:-1]), LAST[1]]
    at = [oracle.wallets({**asked, "filters": {**asked["filters"], "asOf": end}}) for end in ends]
    if cohort == "held":
        cohorts = [one.difference(*at[:place]) for place, one in enumerate(at)]
    else:
        excluded = {"exclude": filters["exclude"]} if "exclude" in filters else {}
        cohorts = [
            oracle.wallets(
                {
                    "filters": {
                        "activity": {"first": {"after": str(day), "before": str(day)}},
                        "chain": "eth",
                        **excluded,
                    }
                }
            )
            for day in DAYS
        ]
    assert table["wallets"].tolist() == list(map(len, cohorts))
    for row, wallets in enumerate(cohorts):
        for step in range(len(DAYS)):
            share = table.iloc[row, 1 + step]
            if not wallets or row + step >= len(DAYS):
                assert math.isnan(share)
            else:
                assert share == len(wallets & at[row + step]) / len(wallets)
    names = [str(day) for day in DAYS]
    assert list(table.index) == [f"until {names[0]}" if cohort == "held" else names[0], *names[1:]]
    assert set(table.segment(table.index[1], "day 1").open(100)["address"]) == cohorts[1] & at[2]
    assert set(table.segment(table.index[2]).open(100)["address"]) == cohorts[2]


def test_the_triangle_is_a_heatmap_with_the_sizes_beside_the_cohorts(client):
    table = nbext.retention("USDC", "day", since="3d", client=client)
    assert list(table.columns) == ["wallets", "day 0", "day 1", "day 2", "day 3"]
    assert table.dtypes.astype(str).tolist() == ["int64", *["float64"] * 4]
    assert table["day 0"].dropna().eq(1).all()
    chart = table.chart()
    shown = chart.spec["vconcat"][0]["vconcat"][0]["encoding"]["y"]["scale"]["domain"]
    assert shown == [f"{name} ({size:,})" for name, size in table["wallets"].items()]
    assert "hold USDC on ethereum" in chart.words
    with pytest.raises(ValidationError, match="counts no wallets"):
        table.segment(table.index[3], "day 1")
    assert matched(table.segment(table.index[0], "wallets")) == table["wallets"].iloc[0]


@pytest.mark.parametrize(
    ("segment", "options", "message"),
    [
        (
            {"token": {"token": "USDC"}, "asOf": 5},
            {},
            "/segment/asOf: retention sets asOf itself. Leave it out.",
        ),
        ("USDC", {"by": "year"}, "/by: 'year' is not allowed. Allowed: day, week, month, quarter."),
        ("USDC", {"cohort": "new"}, "/cohort: 'new' is not allowed. Allowed: held, seen."),
    ],
)
def test_what_cannot_be_asked_is_named(client, segment, options, message):
    with pytest.raises(ValidationError) as caught:
        nbext.retention(segment, client=client, **options)
    assert str(caught.value).startswith(message)
