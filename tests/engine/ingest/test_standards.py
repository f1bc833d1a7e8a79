"""Which standard a contract has where no file says it, and what is said of ids that were never seen to arrive."""

from __future__ import annotations

import random

import pytest

from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from tests import slow
from tests.engine.ingest.conftest import write_csv
from tests.engine.ingest.reading_back import Tables, take, wallet
from tests.engine.ingest.test_append import HERE

CONTRACT = 1000
COUNTED = "SELECT standard, inferred, unseen FROM contracts WHERE transfers > 0"


def coin(log, many, seed):
    """A coin without decimals, from its first mint on: no wallet sends more than it has."""
    draw, has = random.Random(seed), {1: 500, 2: 300}
    logs = [log(0, holder, amount, block=100) for holder, amount in has.items()]
    while len(logs) < many + 2:
        sender = draw.choice([holder for holder, amount in has.items() if amount])
        amount, recipient = draw.randint(1, has[sender]), draw.randint(1, 9)
        has[sender] -= amount
        has[recipient] = has.get(recipient, 0) + amount
        # All of a block may be in another order than it happened in, where rows have no log index.
        logs.append(log(sender, recipient, amount, block=101 + len(logs) // 3))
    return logs


def collection(log, ids, minted, seed):
    """A collection's ids, of which some were minted before the data begins, sold on at random."""
    draw, owners = random.Random(seed), {}
    logs = []
    for number in ids:
        if draw.random() < minted:
            owners[number] = draw.randint(1, 9)
            logs.append(log(0, owners[number], number, block=100))
        else:
            owners[number] = draw.randint(1, 9)
    for block in range(101, 101 + 2 * len(ids)):
        number = draw.choice(ids)
        sender, owners[number] = owners[number], draw.randint(1, 9)
        logs.append(log(sender, owners[number], number, block=block))
    return logs


@pytest.mark.parametrize("seed", range(3))
def test_a_coin_without_decimals_is_an_erc20_and_marked_as_inferred(data, tmp_path, log, seed):
    report = take(data, write_csv(tmp_path / "t.csv", coin(log, 40, seed)))
    assert report.odd["inferred"] == 1
    with Tables(data) as tables:
        assert tables.rows(COUNTED) == [("ERC20", True, 0)]
        assert sum(tables.balances().values()) == 0


@pytest.mark.slow
def test_a_collection_is_one_though_most_of_its_mints_are_missing(tmp_path, log):
    for seed in range(4):
        ids = random.Random(seed).sample(range(1, 10_000), 40)
        data = tmp_path / str(seed)
        logs = collection(log, ids, 0.2, seed)
        report = take(data, write_csv(tmp_path / f"{seed}.csv", logs))
        first = {}
        for each in logs:
            first.setdefault(each.value, each.from_address)
        unseen = sum(sender != wallet(0) for sender in first.values())
        assert report.odd["unseen"] == unseen
        says = (
            f"  {unseen} token ids left wallets that never received them: their mints are missing"
        )
        assert says in report.lines()
        with Tables(data) as tables:
            assert tables.rows(COUNTED) == [("ERC721", True, unseen)]
            assert set(tables.owners()) == {(wallet(CONTRACT), number) for number in first}


def test_a_collection_whose_mints_are_all_there_has_seen_all(data, tmp_path, log):
    report = take(data, write_csv(tmp_path / "t.csv", collection(log, range(1, 40), 1, 7)))
    assert report.odd["unseen"] == 0
    with Tables(data) as tables:
        assert tables.rows(COUNTED) == [("ERC721", True, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("amounts", "stated", "standard"),
    slow.but_the_first(
        [
            ((9, 8, 7, 5), None, "ERC721"),
            ((9, 8, 7, 5, 3), None, "ERC20"),
            ((7, 5), None, "ERC721"),
            ((7, 5), 0, "ERC20"),
            ((), 0, "ERC721"),
        ],
        2,
    ),
)
def test_few_rows_are_a_coins_only_where_enough_was_sent_that_nobody_received(
    data, tmp_path, log, amounts, stated, standard
):
    """Each sends a part of what it was minted, as no NFT can be; as a collection their mints would be missing."""
    logs = [log(0, n, 20 + n, block=100) for n in range(1, 6)]
    logs += [log(n, 9, amount, block=101) for n, amount in enumerate(amounts, 1)]
    facts = tmp_path / "tokens.csv"
    facts.write_text(
        f"address,symbol,name,decimals\n{wallet(CONTRACT)},A,A,{'' if stated is None else stated}\n"
    )
    take(data, write_csv(tmp_path / "t.csv", logs), facts)
    with Tables(data) as tables:
        assert tables.rows(COUNTED) == [
            (standard, True, 0 if standard == "ERC20" else len(amounts))
        ]


def test_what_a_file_says_is_not_marked(data, tmp_path, log, contracts_file):
    logs = [*collection(log, range(1, 9), 0.5, 1), log(0, 1, 5, contract=2000)]
    take(data, write_csv(tmp_path / "t.csv", logs), contracts_file)
    with Tables(data) as tables:
        assert tables.rows(COUNTED) == [("ERC20", False, 0), ("ERC721", False, 0)]


@pytest.mark.slow
def test_a_day_is_marked_and_counted_as_if_all_had_come_at_once(added, tmp_path, log):
    logs = collection(log, range(1, 30), 0.5, 3) + [
        one._replace(token_address=wallet(1001)) for one in coin(log, 60, 5)
    ]
    logs.sort(key=lambda one: one.block_number)
    days = [[one for one in logs if low <= one.block_number < low + 25] for low in (100, 125, 150)]
    for number, day in enumerate(days):
        path = write_csv(tmp_path / f"{number}.csv", day)
        assert take(added, path).rebuilt is None
    take(tmp_path / "once", *(tmp_path / f"{number}.csv" for number in range(len(days))))
    found = []
    for data in (added, tmp_path / "once"):
        with Tables(data) as tables:
            found.append(tables.rows(f"SELECT address, {COUNTED[7:]} AND {HERE} ORDER BY 1"))
    assert found[0] == found[1]
    assert [row[1:3] for row in found[0]] == [("ERC721", True), ("ERC20", True)]


def test_a_snapshot_of_token_ids_says_what_its_contract_is(data, tmp_path):
    path = tmp_path / "h.csv"
    path.write_text(f"contract_address,holder,token_id\n{wallet(CONTRACT)},{wallet(1)},5\n")
    take(data, path, options=SnapshotOptions(block=100))
    with Tables(data) as tables:
        assert tables.rows("SELECT standard, inferred FROM contracts WHERE holders > 0") == [
            ("ERC721", False)
        ]
