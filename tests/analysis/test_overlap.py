"""What segments have in common: each number is that of the oracle's sets, and each cell is a segment of that many."""

from __future__ import annotations

import json
import math
import pickle

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import nbext
from nbext import Client
from nbext.analysis.compare import exactly
from nbext.analysis.segments import Segment, all_of, scope_of
from nbext.core.provenance import Provenance
from nbext.errors import ConfigError, ValidationError
from nbext.settings import Settings
from tests.engine.ingest.conftest import ERC20, WIDE
from tests.language.test_against_oracle import PHASES, requests
from tests.language.test_the_past import open_data
from tests.oracle.meaning import One
from tests.service.conftest import KEY, Running

EACH = settings(max_examples=2, phases=PHASES, suppress_health_check=list(HealthCheck))


@st.composite
def segments(draw, most=4):
    asked = draw(st.lists(requests(saved=False), min_size=1, max_size=most))
    # A list of wallets has to be stored first, and rows are not asked for here.
    assume('"list"' not in json.dumps(asked))
    return [
        {
            "operator": one["operator"],
            "filters": {
                key: value
                for key, value in one["filters"].items()
                if key not in ("orderBy", "columns")
            },
        }
        for one in asked
    ]


def seen_on(chains):
    """Return the filter of all wallets that were seen on chains."""
    anything = {"transfers": {"min": 0}}
    return {"any": [{"activity": {**anything, "chain": str(one)}} for one in sorted(chains)]}


def matched(segment):
    return segment.open(0).attrs["nbext"]["matched"]


@EACH
@given(asked=segments())
def test_each_cell_is_the_oracles_and_opens_as_that_many_wallets(client, oracle, asked):
    sets = [oracle.wallets(one) for one in asked]
    table = nbext.overlap({f"s{place}": one for place, one in enumerate(asked)}, client=client)
    names = [f"s{place}" for place in range(len(asked))]
    assert (list(table.index), list(table.columns)) == (names, names)
    assert table.to_numpy().tolist() == [[len(one & other) for other in sets] for one in sets]
    assert set(table.dtypes.astype(str)) == {"int64"}
    for row, one in zip(names, sets, strict=True):
        for column, other in zip(names, sets, strict=True):
            found = table.segment(row, column).open(100)
            assert set(found["address"]) == one & other


@EACH
@given(asked=segments())
def test_shares_and_lifts_are_made_of_the_same_numbers(client, oracle, asked):
    sets = [oracle.wallets(one) for one in asked]
    chains = set().union(*(One(oracle, one).own_chains() for one in asked))
    # Whichever comes first: each sees others, at its own time and without those that it leaves out.
    scopes = [scope_of(one["filters"]) for one in asked]
    everyone = len(
        set().union(*(oracle.wallets({"filters": {**seen_on(chains), **one}}) for one in scopes))
    )
    share, lift = (nbext.overlap(asked, client=client, **{how: True}) for how in ("share", "lift"))
    for row, one in enumerate(sets):
        for column, other in enumerate(sets):
            both = len(one & other)
            assert (
                share.iat[row, column] == both / len(one)
                if one
                else math.isnan(share.iat[row, column])
            )
            expected = both * everyone / (len(one) * len(other)) if one and other else math.nan
            assert lift.iat[row, column] == expected or (
                math.isnan(expected) and math.isnan(lift.iat[row, column])
            )


@EACH
@given(asked=segments(most=5))
def test_the_groups_of_an_upset_plot_are_each_wallet_once(client, oracle, asked):
    sets = [oracle.wallets(one) for one in asked]
    given = [Segment(one["filters"], one["operator"], client=client) for one in asked]
    only = dict(enumerate(exactly(given).counts, 1))
    for group, number in only.items():
        inside = set.intersection(*(one for place, one in enumerate(sets) if group >> place & 1))
        outside = set().union(*(one for place, one in enumerate(sets) if not group >> place & 1))
        assert number == len(inside - outside)
    assert sum(only.values()) == len(set().union(*sets))


@EACH
@given(asked=segments(most=2))
def test_segments_are_joined_and_taken_from_one_another_whatever_their_times_and_chains(
    client, oracle, asked
):
    asked = [*asked, *asked][:2]
    one, other = (Segment(each["filters"], each["operator"], client=client) for each in asked)
    sets = [oracle.wallets(each) for each in asked]
    assert set(all_of([one, other]).open(100)["address"]) == sets[0] & sets[1]
    assert set(all_of([one], but=[other]).open(100)["address"]) == sets[0] - sets[1]


def test_a_segment_is_a_symbol_a_table_an_id_or_filters(client, oracle):
    filters = {"nft": {"nft": "BAYC"}}
    run = client.execute_segment(filters)
    size = len(oracle.wallets({"filters": filters}))
    given = [
        "BAYC",
        run,
        run.attrs["nbext"]["segment_id"],
        filters,
        {"operator": "OR", "filters": filters},
    ]
    table = nbext.overlap(given, client=client)
    assert table.to_numpy().tolist() == [[size] * 5] * 5
    name = "own BAYC on ethereum"
    assert list(table.index) == [
        "BAYC",
        name,
        run.attrs["nbext"]["segment_id"],
        f"{name} (2)",
        f"{name} (3)",
    ]
    assert matched(table.segment("BAYC", name)) == size
    about = table.attrs["nbext"]
    assert (about["operation"], about["as_of"]["block"], len(about["segments"])) == (
        "overlap",
        12,
        5,
    )


QUEST = ({"nft": {"nft": "QUEST"}, "chain": "optimism"}, {"nft": {"nft": "QUEST", "chain": "10"}})
BY_ID = {
    "overlap": lambda one, client: nbext.overlap({"it": one, "BAYC": "BAYC"}, client=client),
    "lift": lambda one, client: nbext.overlap({"it": one}, lift=True, client=client),
    "funnel": lambda one, client: nbext.funnel(one, client=client),
    "concentration": lambda one, client: nbext.concentration(one, client=client),
    "changes": lambda one, client: nbext.changes(one, "1d", client=client),
    "profile": lambda one, client: nbext.profile(one, least=1, client=client),
    "retention": lambda one, client: nbext.retention(
        one, "day", cohort="seen", since="3d", client=client
    ),
    "trend": lambda one, client: nbext.trend(
        one, every="1d", since="2d", amounts=True, client=client
    ),
}


@pytest.mark.parametrize("analysis", BY_ID.values(), ids=BY_ID)
@pytest.mark.parametrize("filters", QUEST)
def test_the_id_of_a_segment_is_answered_as_its_filters_are(client, analysis, filters):
    run = client.execute_segment(filters, limit=1)
    expected = analysis(filters, client)
    for one in (run, run.attrs["nbext"]["segment_id"]):
        pd.testing.assert_frame_equal(pd.DataFrame(analysis(one, client)), pd.DataFrame(expected))
    assert len(expected)


@pytest.mark.parametrize("analysis", BY_ID.values(), ids=BY_ID)
def test_it_is_said_that_the_limit_with_which_a_segment_was_saved_does_not_count(client, analysis):
    table = client.execute_segment(QUEST[0], limit=2)
    run = table.attrs["nbext"]
    note = f"{run['segment_id']} was saved with limit 2: all {run['matched']} wallets that match are taken."
    for one in (run["segment_id"], table):
        assert analysis(one, client).attrs["nbext"]["warnings"].count(note) == 1
    for limit in (0, "all"):
        whole = client.execute_segment(QUEST[0], limit=limit)
        for one in (whole.attrs["nbext"]["segment_id"], whole):
            assert "was saved" not in str(analysis(one, client).attrs["nbext"]["warnings"])


@pytest.mark.parametrize("analysis", BY_ID.values(), ids=BY_ID)
def test_it_is_said_that_the_limit_of_a_request_does_not_count(client, analysis):
    expected = analysis(QUEST[0], client)
    found = analysis({"filters": QUEST[0], "limit": 2}, client)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))
    said, before = (one.attrs["nbext"]["warnings"] for one in (found, expected))
    note = "limit 2 is not used: all wallets that match are taken."
    assert [one for one in said if one not in before] == [note]
    for limit in (0, "all"):
        found = analysis({"filters": QUEST[0], "limit": limit}, client)
        assert found.attrs["nbext"]["warnings"] == before


@pytest.mark.parametrize("analysis", BY_ID.values(), ids=BY_ID)
def test_a_misspelt_key_of_a_request_is_refused(client, analysis):
    with pytest.raises(ValidationError, match="'operater' is not allowed"):
        analysis({"filters": QUEST[0], "operater": "OR"}, client)


def test_the_id_of_a_segment_with_a_time_is_refused_as_its_table_is(client):
    run = client.execute_segment({"nft": {"nft": "BAYC"}, "asOf": 5})
    for one in (run, run.attrs["nbext"]["segment_id"]):
        with pytest.raises(ValidationError, match="A trend sets asOf itself"):
            nbext.trend(one, every="1d", client=client)


@pytest.mark.parametrize("what", ["cohorts", "activity"])
def test_a_chain_that_the_conditions_name_is_the_one_that_a_segment_names(client, what):
    answers = {
        "cohorts": lambda one: nbext.retention(
            one, "day", cohort="seen", since="3d", client=client
        )[["wallets"]],
        "activity": lambda one: pd.DataFrame(
            nbext.profile(one, client=client).attrs["nbext"]["activity"]
        )[["words", "wallets", "base"]],
    }
    found = [answers[what](one) for one in QUEST]
    pd.testing.assert_frame_equal(*map(pd.DataFrame, found))


def test_a_saved_segment_is_of_the_chain_that_its_conditions_name(client):
    table = nbext.retention(QUEST[1], "day", since="3d", client=client)
    opened = nbext.retention(QUEST[0], "day", since="3d", client=client).segment(table.index[1])
    assert table["wallets"].iloc[1] == matched(opened) == matched(table.segment(table.index[1]))
    assert matched(opened) > 0
    # Stored before the one of the same id, whose filters name it themselves.
    several = {"nft": {"nft": "QUEST", "chain": "optimism", "count": {"max": 77}}}
    named = client.execute_segment(several).attrs["nbext"]["segment_id"]
    run = client.execute_segment({"segment": {"id": named}, "asOf": 5}).attrs["nbext"]
    assert (run["chain"], run["as_of"]["block"]) == ("optimism", 5)
    assert run["matched"] == matched(Segment({**several, "asOf": 5}, client=client))


def test_a_block_is_of_the_segments_own_chain_wherever_all_wallets_are_looked_at(client, oracle):
    own = {"chain": "optimism", "asOf": 1}
    both = [{**QUEST[1], "asOf": 1}, {**QUEST[0], "asOf": 1}]
    bare, named = (nbext.overlap({"A": one, "B": "BAYC"}, lift=True, client=client) for one in both)
    pd.testing.assert_frame_equal(pd.DataFrame(bare), pd.DataFrame(named))
    # Those whom the other one sees, which ends with the data, are all.
    everyone = len(oracle.wallets({"filters": seen_on([1, 10])}))
    size = len(oracle.wallets({"filters": {**QUEST[0], **own}}))
    assert bare.loc["A", "A"] == everyone / size
    # Its conditions are on another chain than the one whose block its own end is.
    seen = {"activity": {"transfers": {"min": 1}, "chain": "optimism"}, "chain": "ethereum"}
    by_id = {"segment": {"id": client.execute_segment(seen).attrs["nbext"]["segment_id"]}}
    cohorts = [
        nbext.retention(one, "day", cohort="seen", since="3d", client=client)
        for one in (by_id, seen)
    ]
    pd.testing.assert_frame_equal(*map(pd.DataFrame, cohorts))
    assert cohorts[0]["wallets"].sum() > 0


def test_cells_of_segments_on_unlike_chains_have_the_wallets_that_they_count(client):
    owners = client.execute_segment(QUEST[0], limit="all")["address"]
    asked = {
        "without": {"not": {"token": {"token": "USDC"}}},
        "quest": QUEST[1],
        "owners": {"wallet": {"in": owners}},
        "two of them": {"wallet": {"in": owners[:2]}, "exclude": []},
    }
    table = nbext.overlap(asked, client=client)
    opened = [[matched(table.segment(one, other)) for other in asked] for one in asked]
    assert opened == table.to_numpy().tolist()
    drawn = table.chart("upset")
    groups = [matched(drawn.of_cell(*cell)) for cell in drawn.cells]
    assert groups == [number for _, number, _ in drawn.values]
    assert len(groups) > 2


def test_an_operator_in_small_letters_joins_a_segments_conditions_as_it_is_asked(client):
    several = {"nft": {"nft": "BAYC"}, "token": {"token": "USDC"}}
    for operator in ("and", "or"):
        one = Segment(several, operator, client=client)
        assert matched(all_of([one, one])) == matched(one) > 0
    assert matched(Segment(several, "or", client=client)) != matched(
        Segment(several, client=client)
    )
    with pytest.raises(ValidationError, match="/operator: 'xor' is not allowed"):
        Segment(several, "xor", client=client).member()


def test_changes_which_have_the_wallets_of_two_times_are_no_segment(client):
    changed = client.segment_changes({"nft": {"nft": "BAYC"}}, since=5)
    for one in (changed, changed.attrs["nbext"]["segment_id"]):
        with pytest.raises(ValidationError, match="Changes have the wallets of two times"):
            nbext.overlap([one], client=client)


@pytest.mark.slow
def test_wallets_that_only_a_snapshot_shows_are_seen_where_shares_are_compared(tmp_path):
    snapshots = [(3, ERC20, {5: 10, 6: 10}), (6, WIDE, {6: 4, 7: 4, 8: 4})]
    dataset = open_data(tmp_path / "w", snapshots=snapshots)
    running = Running(tmp_path / "w", tmp_path / "state", dataset=dataset)
    with Client(running.url, KEY) as client:
        lift = nbext.overlap(["A", "B"], lift=True, client=client)
        profile = nbext.profile("A", least=1, client=client)
    running.stop()
    # Of four wallets two hold A, three hold B, and one both.
    assert lift.to_numpy().tolist() == [[2, 2 / 3], [2 / 3, 4 / 3]]
    assert profile[["symbol", "base_share", "lift"]].to_numpy().tolist() == [
        ["A", 0.5, 2],
        ["B", 0.75, 2 / 3],
    ]


def test_what_pandas_makes_of_the_table_is_a_plain_table(client):
    table = nbext.overlap(["BAYC", "USDC"], client=client)
    for plain in (table.copy(), table.iloc[:1], table * 2, pickle.loads(pickle.dumps(table))):
        assert type(plain) is pd.DataFrame
        assert plain.attrs == table.attrs


def test_the_table_says_of_a_column_of_wallets_what_a_file_can_hold(client, tmp_path):
    wallets = client.execute_segment({"nft": {"nft": "BAYC"}}, limit=3)["address"]
    for some in (wallets, set(wallets), list(wallets)):
        table = nbext.overlap([{"wallet": {"in": some}}, "BAYC"], client=client)
        first, _ = table.attrs["nbext"]["segments"]
        assert first == {"operator": "AND", "filters": {"wallet": {"in": sorted(wallets)}}}
        assert pd.concat([table, table]).attrs == table.attrs
        table.to_parquet(tmp_path / "table.parquet")
        assert pd.read_parquet(tmp_path / "table.parquet").attrs == table.attrs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "/segments: There is no segment to compare."),
        (None, "/segments: Give a list of segments, or a dict of them by name."),
        ("BAYC", "/segments: Give a list of segments, or a dict of them by name."),
        (
            ["BAYC", 5],
            "/segments/1: A segment is given as filters, as the table of one, as its id, or as a symbol or an"
            ' address; wallets of your own as {"wallet": {"in": [...]}}.',
        ),
        (["NOPE"], "/segments/0: There is no token and no collection 'NOPE' on ethereum."),
    ],
)
def test_what_is_no_segment_is_named(client, given, message):
    with pytest.raises(ValidationError) as caught:
        nbext.overlap(given, client=client)
    assert str(caught.value) == message


def test_the_description_of_a_segment_is_no_table_of_it(client):
    run = client.execute_segment({"nft": {"nft": "BAYC"}}, limit=2)
    name = run.attrs["nbext"]["segment_id"]
    described = client.segment(name)
    # That its segment was cut is in the row, and nothing is cut off here.
    assert Provenance.of(described).cut() is None
    with pytest.raises(ValidationError, match=r"^/segments/1: A segment is given as filters, "):
        nbext.overlap([name, described], client=client)


def test_a_cell_and_a_chart_that_are_not_there_are_named(client):
    table = nbext.overlap(["BAYC"], client=client)
    with pytest.raises(ValidationError, match="The table has no cell 'MAYC', 'BAYC'"):
        table.segment("MAYC", "BAYC")
    with pytest.raises(ValidationError, match=r"'pie' is not allowed\. Allowed: heatmap, upset"):
        table.chart("pie")
    with pytest.raises(ValidationError, match="Ask for share or for lift"):
        nbext.overlap(["BAYC"], share=True, lift=True, client=client)
    many = nbext.overlap(
        {f"s{place}": {"token": {"token": "USDC"}} for place in range(31)}, client=client
    )
    for kind, most in (("heatmap", 30), ("upset", 12)):
        with pytest.raises(
            ValidationError, match=f"has room for {most} segments, and the table has 31"
        ):
            many.chart(kind)


@pytest.mark.slow
def test_more_segments_than_one_request_takes_are_asked_in_several(client, oracle):
    table = nbext.overlap(
        {f"s{place}": {"activity": {"transfers": {"min": place}}} for place in range(1, 131)},
        client=client,
    )
    sizes = [
        len(oracle.wallets({"filters": {"activity": {"transfers": {"min": place}}}}))
        for place in range(1, 131)
    ]
    assert table.to_numpy().tolist() == [[min(one, other) for other in sizes] for one in sizes]


def test_only_our_own_service_is_known_to_join_conditions_and_to_take_another_time(stranger):
    bayc = {"nft": {"nft": "BAYC"}}
    asked = {
        "compares segments": lambda: nbext.overlap([bayc], client=stranger),
        "counts conditions": lambda: nbext.funnel(bayc, client=stranger),
        "counts through time": lambda: nbext.trend(bayc, client=stranger),
        "compares times": lambda: nbext.changes(bayc, client=stranger),
        "compares cohorts": lambda: nbext.retention(bayc, client=stranger),
        "profiles a segment": lambda: nbext.profile(bayc, client=stranger),
        "lists what a wallet holds": lambda: nbext.wallet("0x" + "1" * 40, client=stranger),
    }
    for does, ask in asked.items():
        with pytest.raises(ConfigError) as caught:
            ask()
        assert str(caught.value) == (
            f"{stranger.base_url} is not nbext's own service, the only one that {does}."
        )


def test_segments_are_a_list_or_are_named_one_after_the_other(client):
    both = nbext.overlap(["BAYC", "USDC"], client=client)
    pd.testing.assert_frame_equal(
        pd.DataFrame(nbext.overlap("BAYC", "USDC", client=client)), pd.DataFrame(both)
    )


def test_a_segment_is_asked_of_its_own_service_whichever_one_is_set(client, monkeypatch):
    # Nobody listens there.
    monkeypatch.setenv("NBEXT_BASE_URL", "http://127.0.0.1:9")
    usdc = Segment({"token": {"token": "USDC"}}, client=client)
    for made in (
        nbext.overlap([usdc]),
        nbext.overlap({"those": usdc}),
        nbext.funnel(usdc),
        nbext.concentration(usdc),
        nbext.trend(usdc, every="1d", since="1d"),
        nbext.changes(usdc, "1d"),
        nbext.retention(usdc, "day", since="1d"),
        nbext.profile(usdc, least=1),
    ):
        about = made.attrs["nbext"]
        assert about["service"] == client.base_url, about["operation"]


def test_segments_of_several_services_are_not_compared_as_those_of_one(client):
    bayc = {"nft": {"nft": "BAYC"}}
    one, other = (
        Segment(bayc, client=client),
        Segment(bayc, client=nbext.Client("http://127.0.0.1:9", KEY)),
    )
    words = f"It is of http://127.0.0.1:9, and {client.base_url} is asked"
    with pytest.raises(ValidationError, match=words):
        nbext.overlap([one, other])
    with pytest.raises(ValidationError, match=words):
        nbext.trend(other, client=client)


def test_a_cell_opens_as_all_of_its_wallets_and_needs_a_column(service, tmp_path):
    # Fewer than a segment has here, as the default of 1,000 is elsewhere.
    few = Settings(environ={}, folder=tmp_path, arguments={"limit": 2})
    with nbext.Client(service.url, KEY, settings=few) as client:
        table = nbext.overlap({"bored": {"nft": {"nft": "BAYC"}}}, client=client)
        assert len(table.segment("bored", "bored").open()) == table.loc["bored", "bored"] > 2
        with pytest.raises(ValidationError, match="Name the column, too: 'bored'"):
            table.segment("bored")


def test_what_is_noted_of_several_segments_is_said_once():
    with nbext.connect() as sample:
        notes = nbext.overlap(["BAYC", "MAYC", "AZUKI"], client=sample).attrs["nbext"]["warnings"]
    assert notes == [
        'BAYC, MAYC, AZUKI: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.'
    ]


def test_a_part_of_a_table_is_not_taken_for_its_segment(client):
    rows = client.execute_segment({"token": {"token": "USDC"}}, limit="all")
    again = nbext.overlap(rows.sort_values("address"), "USDC", client=client)
    assert set(again.to_numpy().ravel()) == {len(rows)}
    with pytest.raises(ValidationError) as caught:
        nbext.overlap(rows.head(2), "USDC", client=client)
    assert caught.value.errors == [
        {
            "pointer": "/segments/0",
            "code": "rows",
            "detail": f"The table has 2 rows, and its segment's had {len(rows):,}. Give its id for the segment, or "
            '{"wallet": {"in": table}} for the wallets in the table.',
        }
    ]
    of_two = {"wallet": {"in": rows.head(2)}, "exclude": []}
    assert nbext.overlap([of_two], client=client).to_numpy().tolist() == [[2]]


def test_what_a_file_was_written_with_stands_for_its_segment(client, tmp_path):
    rows = client.execute_segment({"token": {"token": "USDC"}}, limit="all")
    written = client.execute_segment(
        {"token": {"token": "USDC"}}, limit="all", to=tmp_path / "rows.csv"
    )
    table = nbext.overlap([written, rows], client=client)
    assert set(table.to_numpy().ravel()) == {len(rows)}


def test_an_operator_in_small_letters_is_the_same_operator(client):
    both = {"token": {"token": "USDC"}, "activity": {"transfers": {"min": 3}}}
    for operator in ("and", "or"):
        small, large = ({"operator": one, "filters": both} for one in (operator, operator.upper()))
        table = nbext.overlap([small, "USDC"], client=client)
        first, second = table.columns
        found = matched(table.segment(first, second))
        assert found == table.loc[first, second]
        assert found == nbext.overlap([large, "USDC"], client=client).iloc[0, 1]
    with pytest.raises(ValidationError, match="/segments/0/operator: 'XOR' is not allowed"):
        nbext.overlap([{"operator": "XOR", "filters": both}, "USDC"], client=client)


# Newer pandas deprecate it.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_a_row_of_a_table_that_was_sorted_in_place_opens_its_own_wallets(client):
    few, many = ({"activity": {"transfers": {"min": least}}} for least in (2, 0))
    table = nbext.overlap({"few": few, "many": many}, client=client)
    opened = [table.segment(name, "few").filters for name in ("few", "many")]
    table.sort_index(ascending=False, inplace=True)
    assert list(table.index) == ["many", "few"]
    assert [table.segment(name, "few").filters for name in ("few", "many")] == opened
