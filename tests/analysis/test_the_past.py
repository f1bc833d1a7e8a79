"""The past in each analysis, from files: as of the last block it is now, as of a block what an ingest of then says."""

from __future__ import annotations

import pytest

import nbext
from nbext import Client
from nbext.settings import Settings
from tests.engine.ingest.conftest import ERC20, ERC721, ERC1155, WIDE
from tests.engine.ingest.reading_back import wallet
from tests.language.test_the_past import LAST, a_world, open_data
from tests.service.conftest import KEY, Running

# Blocks at which an ingest of its own is made; a block is a day.
EARLIER = (5, 8)
RAW = {"unit": "raw"}
WALLETS = [wallet(one) for one in range(1, 13)]
SEGMENTS = [
    {"token": {"token": wallet(ERC20), **RAW}},
    {"token": {"token": wallet(WIDE), **RAW}},
    {"nft": {"nft": wallet(ERC721)}},
    {"nft": {"nft": wallet(ERC1155), "count": {"min": 2}}},
    {"nft": {"nft": wallet(ERC1155), "tokenIds": ["1", "3"]}},
    {"collections": {"distinct": {"min": 2}}},
    {"activity": {"transfers": {"min": 3}}},
    {"activity": {"last": {"after": 4}, "activeDays": {"min": 2}}},
    {"transfer": {"direction": "in", "count": {"min": 2}}},
    {
        "token": {"token": wallet(WIDE), **RAW},
        "nft": {"nft": wallet(ERC721)},
        "not": {"transfer": {"direction": "out", "nft": wallet(ERC1155)}},
    },
]
HELD = SEGMENTS[:4]


# Three services over three ingests: the law of conditions and columns is in the README's command.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[5, 6])
def clients(request, tmp_path_factory):
    """A client for the data as it was at the end of each block, and of all of it."""
    folder, made, ends = tmp_path_factory.mktemp("past"), a_world(request.param), []
    found = {}
    for last in (*EARLIER, LAST):
        dataset = open_data(folder / str(last), *made, last=last)
        (folder / str(last) / "pyproject.toml").write_text("")
        running = Running(folder / str(last), folder / str(last) / "state", dataset=dataset)
        found[last] = Client(
            running.url, KEY, settings=Settings(environ={}, folder=folder / str(last))
        )
        ends += [found[last].close, running.stop]
    yield found
    for end in ends:
        end()


def everyone(filters):
    """Return a segment that leaves nobody out."""
    return {**filters, "exclude": []}


def said(table):
    """Return the numbers of a table, and what it says of itself in numbers: its words name the block."""
    about = table.attrs["nbext"]
    activity = [(one["wallets"], one["base"]) for one in about.get("activity", ())]
    more = [about.get(name) for name in ("gini", "wallets", "base")]
    # As text: a missing number is not equal to itself.
    return repr((table.drop(columns="condition", errors="ignore").to_dict("split"), activity, more))


def one_by_one(client, at):
    """Return what the analyses say that take ``asOf`` in their segment, or a time beside it; None: now."""
    then = {} if at is None else {"asOf": at}
    asked = [{**everyone(one), **then} for one in SEGMENTS]
    found = {
        "overlap": nbext.overlap(dict(enumerate(asked)), client=client),
        "lift": nbext.overlap(dict(enumerate(asked)), lift=True, client=client),
        # What most wallets hold today is first of a wallet's holdings, whatever the time.
        "wallet": nbext.wallet(WALLETS, as_of=at, client=client).sort_values(
            ["address", "contract"], ignore_index=True
        ),
    }
    for number, one in enumerate(asked):
        found["funnel", number] = nbext.funnel(one, client=client)
        found["profile", number] = nbext.profile(one, least=1, client=client)
        if number < len(HELD):
            found["concentration", number] = nbext.concentration(one, client=client)
    return {name: said(table) for name, table in found.items()}


def test_as_of_the_last_block_is_now(clients):
    now, then = (one_by_one(clients[LAST], at) for at in (None, LAST))
    assert {name: (now[name], then[name]) for name in now if now[name] != then[name]} == {}


@pytest.mark.parametrize("block", EARLIER)
def test_as_of_a_block_is_what_an_ingest_of_what_had_come_by_then_says(clients, block):
    fresh, then = one_by_one(clients[block], None), one_by_one(clients[LAST], block)
    assert {name: (fresh[name], then[name]) for name in fresh if fresh[name] != then[name]} == {}


def test_each_point_of_a_trend_is_what_the_trend_said_that_ended_there(clients):
    for asked in map(everyone, SEGMENTS):
        whole, fresh = (
            nbext.trend(asked, every="1d", since=f"{last - EARLIER[0]}d", client=clients[last])
            for last in (LAST, EARLIER[1])
        )
        assert repr(whole.head(len(fresh)).to_dict("list")) == repr(fresh.to_dict("list"))
        ends = [{**asked, "asOf": EARLIER[0]}, asked]
        counts = nbext.overlap(ends, client=clients[LAST]).to_numpy().diagonal()
        assert whole["count"].iloc[[0, -1]].tolist() == counts.tolist()


def test_changes_are_those_between_what_two_ingests_say(clients):
    for asked in map(everyone, SEGMENTS):
        assert set(nbext.changes(asked, LAST, client=clients[LAST])["status"]) <= {"stayed"}
        for since, last in ((5, 8), (5, LAST), (8, LAST)):
            changed = nbext.changes(asked, since, client=clients[last]).set_index("address")
            for block, when, moved in ((since, "then", "left"), (last, "now", "joined")):
                rows = clients[block].execute_segment(asked, limit=1000).set_index("address")
                matched = changed[changed["status"].isin(["stayed", moved])]
                assert list(matched.index) == list(rows.index)
                for name in rows.columns:
                    assert matched[f"{name}_{when}"].tolist() == rows[name].tolist()


@pytest.mark.parametrize("cohort", ["held", "seen"])
def test_each_cell_of_a_retention_is_what_the_one_said_that_ended_there(clients, cohort):
    for asked in map(everyone, SEGMENTS):
        whole, fresh = (
            nbext.retention(
                asked, "day", cohort=cohort, since=f"{last - EARLIER[0]}d", client=clients[last]
            )
            for last in (LAST, EARLIER[1])
        )
        number = len(fresh)
        assert number == EARLIER[1] - EARLIER[0] + 1
        assert whole["wallets"].tolist()[:number] == fresh["wallets"].tolist()
        for step in range(number):
            said_of = [one[f"day {step}"].tolist()[: number - step] for one in (whole, fresh)]
            assert repr(said_of[0]) == repr(said_of[1])
