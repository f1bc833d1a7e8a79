"""Cohorts through time: each size and share is that of the oracle's sets at the ends of the periods."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext import Client
from nbext.engine.duckdb.dataset import CursorEngine
from nbext.errors import InvalidSegment, ValidationError
from nbext.settings import Settings
from tests.analysis.test_overlap import EACH, matched, segments
from tests.engine import forms
from tests.language.tables import GENESIS, ZERO, Transfer, World
from tests.language.test_against_oracle import CONTRACTS, LAST
from tests.oracle.meaning import One
from tests.service.conftest import KEY, Running

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
        # Where no condition is about Ethereum, wallets are seen where the conditions are.
        own = One(oracle, asked).own_chains()
        chain = 1 if 1 in own else min(own)
        cohorts = [
            oracle.wallets(
                {
                    "filters": {
                        "activity": {
                            "first": {"after": str(day), "before": str(day)},
                            "chain": chain,
                        },
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
        ("USDC", {"since": "2030-01-01"}, "/since: '2030-01-01' is after the end of the data: "),
        ("USDC", {"cohort": "new"}, "/cohort: 'new' is not allowed. Allowed: held, seen."),
    ],
)
def test_what_cannot_be_asked_is_named(client, segment, options, message):
    with pytest.raises(ValidationError) as caught:
        nbext.retention(segment, client=client, **options)
    assert str(caught.value).startswith(message)


# A block every six hours, for a year.
STEP, YEAR = 6 * 3600, 4 * 365


def held_for(wallets):
    """Return a chain on which each wallet gets a token in a week of the year, and sends it on some weeks later."""
    moves, held = [], {}
    for number in range(wallets):
        wallet = f"0x{number + 1:040x}"
        begin = (number % 53) * 27 + 5
        end = begin + number % 13 * 28
        held[wallet] = (begin, end)
        moves.append(Transfer(0, begin, 0, ZERO, wallet, 1))
        if end <= YEAR:
            moves.append(Transfer(0, end, 0, wallet, ZERO, 1))
    moves.sort(key=lambda one: one.block)
    moves = [replace(one, log_index=number) for number, one in enumerate(moves)]
    return World(CONTRACTS[:1], moves, {1: YEAR}, {1: STEP}), held


@pytest.mark.slow
def test_of_thousands_of_wallets_by_week_no_more_statements_are_asked_than_of_a_few(
    tmp_path, monkeypatch
):
    asked = []
    relation = CursorEngine._relation
    monkeypatch.setattr(
        CursorEngine, "_relation", lambda self, sql: (asked.append(sql), relation(self, sql))[1]
    )
    (tmp_path / "pyproject.toml").write_text("")
    numbers = []
    for wallets in (80, 8_000):
        world, held = held_for(wallets)
        folder = tmp_path / str(wallets)
        folder.mkdir()
        forms.generation(folder, world)
        service = Running(folder, folder / "state")
        asked.clear()
        try:
            settings = Settings(environ={}, folder=tmp_path)
            with Client(service.url, KEY, settings=settings) as client:
                table = nbext.retention("USDC", "week", since="1y", client=client)
        finally:
            service.stop()
        numbers.append(len(asked))
        days = [datetime.date.fromisoformat(name[-10:]) for name in table.index]
        midnights = [datetime.datetime.combine(day, datetime.time(), datetime.UTC) for day in days]
        ends = [(int(one.timestamp()) + 86_399 - GENESIS) // STEP for one in midnights[:-1]]
        at = [{one for one, (a, b) in held.items() if a <= end < b} for end in (*ends, YEAR)]
        cohorts = [one.difference(*at[:place]) for place, one in enumerate(at)]
        assert table["wallets"].tolist() == list(map(len, cohorts))
        shares = [
            [len(one & later) / len(one) if one else math.nan for later in at[row:]]
            + [math.nan] * row
            for row, one in enumerate(cohorts)
        ]
        pd.testing.assert_frame_equal(
            table.drop(columns="wallets").reset_index(drop=True),
            pd.DataFrame(shares, columns=table.columns[1:], dtype="float64"),
            check_exact=True,
        )
    # A few read what all weeks are counted of; those that look their ends up differ by one.
    assert (len(at), max(numbers) < 12) == (53, True)


@pytest.mark.parametrize("cohort", ["held", "seen"])
def test_cohorts_of_a_segment_on_another_chain_are_of_that_chains_days_and_wallets(client, cohort):
    there = {"nft": {"nft": "QUEST", "chain": "optimism"}}
    asked, named = (
        nbext.retention(one, "day", cohort=cohort, since="2d", client=client)
        for one in (there, {**there, "chain": "optimism"})
    )
    pd.testing.assert_frame_equal(asked, named)
    assert asked.attrs["nbext"]["as_of"]["block"] == LAST[10]
