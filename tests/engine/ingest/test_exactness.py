"""Balances, owners and history are those of a replay with Python's integers, over all of uint256."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext.engine.query.amounts import sort_key
from tests.engine.ingest.conftest import write_parquet
from tests.engine.ingest.reading_back import OWNERS, Tables, take, transaction, wallet
from tests.engine.ingest.replay import Log, collections, tokens

UINT256 = 2**256 - 1
EDGES = [
    0,
    1,
    10**17,
    10**26 - 1,
    10**26,
    2**127 - 1,
    2**127,
    10**52 - 1,
    10**52,
    2**255,
    UINT256 - 1,
    UINT256,
]
VALUES = st.one_of(st.sampled_from(EDGES), st.integers(0, UINT256), st.integers(0, 10**20))
TOKEN, COLLECTION = 1000, 2000


@st.composite
def logs(draw):
    """Some transfers of an ERC20 and of an ERC721, several in one block, with repeated ids."""
    made = []
    for n in range(draw(st.integers(1, 12))):
        contract = draw(st.sampled_from([TOKEN, COLLECTION]))
        value = draw(VALUES if contract == TOKEN else st.sampled_from([0, 1, 7, UINT256]))
        made.append(
            Log(
                wallet(contract),
                wallet(draw(st.integers(0, 3))),
                wallet(draw(st.integers(0, 3))),
                value,
                transaction(n),
                n,
                draw(st.integers(100, 103)),
            )
        )
    return made


def in_order(rows):
    return sorted(rows, key=lambda row: row[:3])


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(made=logs())
def test_every_table_is_what_a_replay_with_python_integers_makes(made, contracts_file):
    fungible = tokens([log for log in made if log.token_address == wallet(TOKEN)])
    first = min(log.block_number for log in made)
    unique = collections([log for log in made if log.token_address == wallet(COLLECTION)], first)
    with tempfile.TemporaryDirectory() as folder:
        path = write_parquet(Path(folder) / "transfers.parquet", made)
        take(Path(folder) / "data", path, contracts_file)
        with Tables(Path(folder) / "data") as tables:
            assert tables.balances() == fungible.balances | unique.balances
            assert tables.owners() == unique.owners
            assert tables.history() == in_order(fungible.history + unique.history)
            assert [row[-1] for row in tables.transfers()] == [
                log.value
                for log in sorted(
                    made, key=lambda log: (log.token_address, log.block_number, log.log_index)
                )
            ]
            sizes = tables.rows("SELECT hi, mid, lo, sort_key FROM history")
            assert [row[3] for row in sizes] == [
                sort_key(int(hi) * 10**52 + int(mid) * 10**26 + int(lo)) for hi, mid, lo, _ in sizes
            ]


def test_all_contracts_of_a_wide_bucket_keep_their_digits(data, tmp_path, log, contracts_file):
    made = [
        log(0, 1, UINT256),
        log(1, 2, UINT256 - 1),
        log(2, 3, 1),
        log(0, 4, 10**30, contract=1001),
        log(4, 5, 3, contract=1001),
    ]
    take(data, write_parquet(tmp_path / "t.parquet", made), contracts_file)
    with Tables(data) as tables:
        assert tables.balances() == tokens(made).balances


@pytest.mark.parametrize("doubled", [False, True])
def test_an_id_belongs_to_its_last_recipient_though_a_log_is_missing_or_doubled(
    data, tmp_path, log, contracts_file, doubled
):
    made = [
        log(0, 1, 7, contract=COLLECTION),
        log(1, 2, 7, contract=COLLECTION),
        # 2 -> 3 is missing here.
        log(3, 4, 7, contract=COLLECTION),
    ]
    if doubled:
        made.append(log(3, 4, 7, contract=COLLECTION))
    take(data, write_parquet(tmp_path / "t.parquet", made), contracts_file)
    with Tables(data) as tables:
        assert tables.owners() == {(wallet(COLLECTION), 7): wallet(4)}
        assert tables.balances() == {(wallet(COLLECTION), wallet(4)): 1}


def test_who_sends_an_id_first_had_it_from_the_first_block_on(data, tmp_path, log, contracts_file):
    made = [log(0, 9, 1, block=50), log(1, 2, 7, contract=COLLECTION, block=60)]
    take(data, write_parquet(tmp_path / "t.parquet", made), contracts_file)
    with Tables(data) as tables:
        held = [row[1:] for row in tables.history() if row[0] == wallet(COLLECTION)]
    assert held == [(wallet(1), 50, 60, 1), (wallet(1), 60, 2**62, 0), (wallet(2), 60, 2**62, 1)]


def test_wallets_are_ranked_by_address_and_rows_sorted_by_contract(data, tmp_path, log):
    made = [log(5, 3, contract=1002), log(4, 9, contract=1001), log(9, 5, contract=1002)]
    take(data, write_parquet(tmp_path / "t.parquet", made))
    with Tables(data) as tables:
        wallets = tables.rows("SELECT wallet, address FROM wallets ORDER BY rowid")
        assert wallets == [(rank, wallet(n)) for rank, n in enumerate((3, 4, 5, 9))]
        for table in ("balances", "history", "transfers"):
            order = [row[0] for row in tables.rows(f"SELECT contract FROM {table} ORDER BY rowid")]
            assert order == sorted(order)


def test_activity_counts_each_transfer_once_and_days_where_blocks_have_times(data, tmp_path, log):
    made = [log(1, 2, block=100), log(1, 1, block=101), log(2, 1, block=102)]
    noon = 1_036_843_200
    times = [noon, noon + 100, noon + 86_400]
    take(data, write_parquet(tmp_path / "t.parquet", made, block_timestamp=times))
    with Tables(data) as tables:
        rows = tables.rows(
            "SELECT chain_id, address, first_block, last_block, transfers, active_days"
            " FROM activity JOIN wallets USING (wallet) ORDER BY address"
        )
        assert rows == [(1, wallet(1), 100, 102, 3, 2), (1, wallet(2), 100, 102, 2, 2)]
        assert tables.rows("SELECT * FROM blocks") == [
            (1, block, time, None) for block, time in zip((100, 101, 102), times, strict=True)
        ]


def test_a_day_counts_once_however_far_apart_days_are(data, tmp_path, log):
    days = sorted([*range(65), 1, 60, 119, 120, 120, 179, 180, 181, 400, 18_500, 18_519, 18_519])
    made = [log(1, 2 + day % 2, block=100 + n) for n, day in enumerate(days)]
    times = [86_400 * (12_000 + day) + 1_000 * n for n, day in enumerate(days)]
    take(data, write_parquet(tmp_path / "t.parquet", made, block_timestamp=times))
    with Tables(data) as tables:
        counted = tables.rows(
            "SELECT address, active_days FROM activity JOIN wallets USING (wallet) ORDER BY address"
        )
    even, odd = (len({day for day in days if day % 2 == rest}) for rest in (0, 1))
    assert counted == [(wallet(1), even + odd), (wallet(2), even), (wallet(3), odd)]


def test_active_days_are_unknown_where_a_block_has_no_time(data, tmp_path, log):
    take(data, write_parquet(tmp_path / "t.parquet", [log()]))
    with Tables(data) as tables:
        assert tables.rows("SELECT DISTINCT active_days FROM activity") == [(None,)]


def test_holders_and_transfers_are_counted_and_supply_only_from_the_deployment_on(
    data, tmp_path, log, contracts_file
):
    made = [
        log(0, 1, 100, block=5),
        log(1, 2, 40, block=6),
        log(2, 0, 10, block=7),
        log(0, 1, 9, contract=1001),
    ]
    take(data, write_parquet(tmp_path / "t.parquet", made), contracts_file)
    with Tables(data) as tables:
        known, unknown = tables.contract(wallet(1000)), tables.contract(wallet(1001))
    assert (known["holders"], known["transfers"], known["total_supply"]) == (2, 3, "90")
    assert (unknown["holders"], unknown["transfers"], unknown["total_supply"]) == (1, 1, None)


def test_an_erc1155_is_counted_and_who_gives_more_than_came_had_the_rest_before(data, tmp_path):
    rows = [(0, 1, 7, 5, 1), (1, 2, 7, 2, 2), (3, 2, 7, 4, 3), (3, 1, 8, 1, 4)]
    path = tmp_path / "t.csv"
    lines = [
        f"{100 + n},1600000000,{transaction(n)},{wallet(s)},{wallet(r)},{wallet(3000)},{token_id},{count}"
        for s, r, token_id, count, n in rows
    ]
    path.write_text(
        "\n".join(["blockNumber,timeStamp,hash,from,to,contractAddress,tokenID,tokenValue", *lines])
        + "\n"
    )
    take(data, path)
    with Tables(data) as tables:
        assert tables.contract(wallet(3000))["standard"] == "ERC1155"
        assert tables.balances() == {(wallet(3000), wallet(1)): 4, (wallet(3000), wallet(2)): 6}
        owners = f"SELECT id_lo::INTEGER, address, count FROM {OWNERS} JOIN wallets USING (wallet) ORDER BY ALL"
        assert tables.rows(owners) == [(7, wallet(1), 3), (7, wallet(2), 6), (8, wallet(1), 1)]
        assert [row[2:] for row in tables.history() if row[1] == wallet(3)] == [
            (101, 103, 5),
            (103, 104, 1),
            (104, 2**62, 0),
        ]
        assert [row[5] for row in tables.transfers()] == [5, 2, 4, 1]


def test_a_wallet_counts_as_below_zero_where_it_was_so_at_the_end_of_any_block(data, tmp_path, log):
    logs = [
        # The zero address pays for every mint.
        log(0, 1, 9, block=1),
        # 2 has more than it had at last, 3 is below zero in two blocks, 4 within a block only.
        log(2, 1, 1, block=2),
        log(1, 2, 4, block=5),
        log(3, 1, 10**30, block=3),
        log(3, 1, 10**31, block=4),
        log(4, 1, 7, block=4, index=1),
        log(1, 4, 14, block=4, index=2),
    ]
    report = take(data, write_parquet(tmp_path / "t.parquet", logs))
    assert report.odd["below_zero"] == 2
    with Tables(data) as tables:
        counted = "SELECT standard, below_zero FROM contracts WHERE transfers > 0"
        assert tables.rows(counted) == [("ERC20", 2)]


def test_a_supply_below_zero_is_unknown(data, tmp_path, log, contracts_file):
    """The data misses mints of the only contract whose deployment it reaches back to: more was burned than came."""
    take(data, write_parquet(tmp_path / "t.parquet", [log(1, 0, 10**20, block=4)]), contracts_file)
    with Tables(data) as tables:
        assert tables.contract(wallet(1000))["total_supply"] is None


@pytest.mark.parametrize(
    "wide",
    [
        (2**29, 1),
        (1, 2**33),
        *(pytest.param(wide, marks=pytest.mark.slow) for wide in ((2**62, 1), (1, 2**62))),
    ],
)
def test_blocks_and_log_indexes_of_any_size_keep_the_order_of_an_nft(tmp_path, wide):
    """Its last owner is that of the last block, and there that of the last log."""
    block, index = wide
    places = [(1, 0), (1, index), (1, index + 1), (block + 1, 0), (block + 1, 1)]
    made = [
        Log(wallet(COLLECTION), wallet(n), wallet(n + 1), 7, transaction(n), log, at)
        for n, (at, log) in enumerate(places)
    ]
    path = write_parquet(tmp_path / "a.parquet", made[::-1])
    facts = tmp_path / "tokens.csv"
    facts.write_text(f"address,symbol,name,decimals,standard\n{wallet(COLLECTION)},C,C,,ERC721\n")
    take(tmp_path / "data", path, facts)
    with Tables(tmp_path / "data") as tables:
        assert tables.owners() == {(wallet(COLLECTION), 7): wallet(5)}
