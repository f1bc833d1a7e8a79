"""The past, from files: as of the last block it is now, and as of any block what an ingest of that day would say."""

from __future__ import annotations

import random

import pytest

from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.open import open_dataset
from nbext.language import language
from tests.engine.ingest.conftest import ERC20, ERC721, ERC1155, FACTS, WIDE
from tests.engine.ingest.reading_back import take, transaction, wallet

LAST, DAY, BEGIN = 12, 86_400, 1_600_000_000
HEADER = "blockNumber,timeStamp,hash,from,to,contractAddress,tokenID,tokenValue,logIndex"


def open_data(folder, moved=(), snapshots=(), tokens=(), last=LAST):
    """Ingest what had come by a block, and open it.

    ``moved``: (block, sender, recipient, contract, id, count), ``tokens``: the same with an amount and no count, and
    ``snapshots``: (block, contract, {wallet: balance} or {id: wallet}).
    """
    folder.mkdir()
    (folder / "facts.csv").write_text(FACTS)
    blocks = [f"{block},{BEGIN + block * DAY}" for block in range(last + 1)]
    (folder / "blocks.csv").write_text("\n".join(["number,timestamp", *blocks]) + "\n")
    lines = [
        f"{block},{BEGIN + block * DAY},{transaction(n)},{wallet(sender)},{wallet(recipient)},{wallet(contract)},"
        f"{token},{count},{n}"
        for n, (block, sender, recipient, contract, token, count) in enumerate(moved, 1)
        if block <= last
    ]
    amounts = [
        f"{wallet(contract)},{wallet(sender)},{wallet(recipient)},{amount},{transaction(n)},{n},{block}"
        for n, (block, sender, recipient, contract, amount) in enumerate(tokens, 1001)
        if block <= last
    ]
    head = "token_address,from_address,to_address,value,transaction_hash,log_index,block_number"
    paths = [folder / "facts.csv", folder / "blocks.csv"]
    for name, header, rows in (("nfts.csv", HEADER, lines), ("tokens.csv", head, amounts)):
        if rows:
            (folder / name).write_text("\n".join([header, *rows]) + "\n")
            paths.append(folder / name)
    take(folder / "data", *paths)
    for number, (block, contract, held) in enumerate(snapshots):
        if block <= last:
            path = folder / f"snapshot-{number}.csv"
            by_id = contract in (ERC721, ERC1155)
            path.write_text(
                f"contract_address,{'token_id,address' if by_id else 'address,balance'}\n"
                + "".join(
                    f"{wallet(contract)},{one if by_id else wallet(one)},{wallet(other) if by_id else other}\n"
                    for one, other in held.items()
                )
            )
            take(folder / "data", path, options=SnapshotOptions(unit="raw", block=block))
    return open_dataset(folder / "data")


def answer(dataset, filters):
    """Return every row of a segment."""
    plan = language.resolve(
        language.parse({"filters": {"exclude": [], **filters}, "limit": 1000}), dataset
    )
    return dataset.ask(language.compile(plan), limit=1000).rows.to_pylist()


def wallets(dataset, filters):
    return [int(row["address"], 16) for row in answer(dataset, filters)]


def _seconds(value):
    return value if isinstance(value, int) else int(value.timestamp())


def of_ids(contract, *ids, **more):
    return {"nft": wallet(contract), "tokenIds": [str(one) for one in ids], **more}


@pytest.mark.slow
def test_the_ids_of_a_snapshot_are_owned_at_every_block_from_its_own_on(tmp_path):
    dataset = open_data(
        tmp_path / "w", [(14, 5, 8, ERC721, 1, 1)], [(12, ERC721, {1: 5, 2: 6, 3: 7})], last=14
    )
    ids = of_ids(ERC721, 1, 2, 3)
    assert [wallets(dataset, {"nft": ids, "asOf": block}) for block in (12, 13, 14)] == [
        [5, 6, 7],
        [5, 6, 7],
        [6, 7, 8],
    ]
    assert wallets(dataset, {"nft": of_ids(ERC721, 1, 2, 3, heldSince=12)}) == [6, 7]
    dataset.close()


def test_ids_below_and_above_one_limb_are_asked_together_at_a_block(tmp_path):
    high = 2**256 - 1
    dataset = open_data(
        tmp_path / "w",
        [
            (1, 0, 5, ERC721, high, 1),
            (2, 0, 7, ERC721, 1, 1),
            (2, 0, 7, ERC721, 10**26, 1),
            (3, 5, 6, ERC721, high, 1),
        ],
    )
    ids = of_ids(ERC721, high, 1, 10**26)
    assert wallets(dataset, {"nft": ids, "asOf": 2}) == [5, 7]
    assert wallets(dataset, {"nft": {**ids, "count": {"min": 2}}, "asOf": 2}) == [7]
    assert wallets(dataset, {"nft": {**ids, "heldSince": 2}, "asOf": 2}) == [5, 7]
    assert wallets(dataset, {"nft": ids}) == wallets(dataset, {"nft": ids, "asOf": LAST}) == [6, 7]
    dataset.close()


def test_who_had_some_of_an_erc1155s_id_from_the_beginning_owned_it_and_was_seen_then(tmp_path):
    dataset = open_data(
        tmp_path / "w",
        [(1, 0, 7, ERC1155, 1, 1), (4, 5, 6, ERC1155, 1, 2), (4, 5, 6, ERC1155, 2, 1)],
    )
    owns, seen = {"nft": {"nft": wallet(ERC1155)}}, {"wallet": {"in": [wallet(5), wallet(6)]}}
    assert wallets(dataset, {**owns, "asOf": 2}) == [5, 7]
    assert wallets(dataset, {"any": [owns, seen], "asOf": 2}) == [5, 7]
    assert wallets(dataset, {"not": seen, "asOf": 2}) == [0, 7]
    assert wallets(dataset, {"nft": of_ids(ERC1155, 1, count={"min": 2}), "asOf": 2}) == [5]
    assert wallets(dataset, {"nft": of_ids(ERC1155, 1, heldSince=2), "asOf": 3}) == [5, 7]
    dataset.close()


@pytest.mark.slow
def test_who_sends_an_id_that_a_snapshot_does_not_name_had_it_from_the_snapshots_block_on(tmp_path):
    dataset = open_data(
        tmp_path / "w",
        [(1, 0, 9, ERC721, 1, 1), (11, 4, 8, ERC721, 2, 1), (11, 5, 8, ERC1155, 1, 2)],
        [(7, ERC721, {1: 6}), (7, ERC1155, {1: 6})],
    )
    seen = [
        wallets(dataset, {"not": {"wallet": {"in": [wallet(1)]}}, "asOf": block})
        for block in (0, 1, 6, 7, 10, 11)
    ]
    assert seen == [[], [0, 9], [0, 9], [0, 4, 5, 6, 9], [0, 4, 5, 6, 9], [0, 4, 5, 6, 8, 9]]
    owned = [{"nft": wallet(ERC721)}, {"nft": wallet(ERC1155)}, of_ids(ERC721, 2, heldSince=7)]
    assert [wallets(dataset, {"nft": one, "asOf": 10}) for one in owned] == [[4, 6], [5, 6], [4]]
    # Nobody was seen to receive what 4 sent, nor what 5 did.
    contracts = [dataset.catalog.contract(1, wallet(one)) for one in (ERC721, ERC1155)]
    assert [one.unseen for one in contracts] == [1, 1]
    dataset.close()


def test_an_erc1155_that_is_sent_to_oneself_moves_nothing_wherever_it_is_counted(tmp_path):
    dataset = open_data(
        tmp_path / "w",
        [(1, 0, 5, ERC1155, 7, 3), (2, 0, 0, ERC1155, 7, 4), (3, 5, 5, ERC1155, 7, 2)],
    )
    asked = [
        {"nft": one, **scope}
        for one in ({"nft": wallet(ERC1155)}, of_ids(ERC1155, 7))
        for scope in ({}, {"asOf": LAST}, {"asOf": 2})
    ]
    assert [wallets(dataset, one) for one in asked] == [[5]] * len(asked)
    dataset.close()


def test_who_sends_an_erc1155s_id_to_oneself_that_did_not_come_before_owned_it_from_the_beginning(
    tmp_path,
):
    dataset = open_data(
        tmp_path / "w",
        [
            (1, 0, 5, ERC1155, 7, 3),
            (3, 5, 5, ERC1155, 7, 4),
            (9, 6, 6, ERC1155, 1, 1),
            (9, 6, 6, ERC1155, 1, 2),
            (9, 6, 8, ERC1155, 1, 1),
        ],
    )
    owns, counts = {"nft": {"nft": wallet(ERC1155)}}, {}
    for scope in ({}, {"asOf": LAST}, {"asOf": 8}, {"asOf": 0}):
        found = answer(dataset, {**owns, **scope})
        counts[scope.get("asOf")] = {int(one["address"], 16): one["D_count"] for one in found}
        assert wallets(dataset, {**owns, "nft": of_ids(ERC1155, 1, 7), **scope}) == list(
            counts[scope.get("asOf")]
        )
    assert counts == {
        None: {5: 4, 6: 1, 8: 1},
        LAST: {5: 4, 6: 1, 8: 1},
        8: {5: 4, 6: 2},
        0: {5: 1, 6: 2},
    }
    assert wallets(dataset, {"not": {"wallet": {"in": [wallet(9)]}}, "asOf": 0}) == [5, 6]
    dataset.close()


def test_counts_that_no_float_holds_are_compared_ordered_and_returned_exactly(tmp_path):
    most = 2**63 - 1
    dataset = open_data(
        tmp_path / "w",
        [
            (1, 0, 5, ERC1155, 7, most - 1),
            (2, 0, 6, ERC1155, 7, most),
            (3, 0, 7, ERC1155, 7, 10**17),
        ],
    )
    for scope in ({}, {"asOf": LAST}):
        for low, found in ((10**17, [5, 6, 7]), (10**17 + 1, [5, 6]), (most, [6])):
            for one in ({"nft": wallet(ERC1155)}, of_ids(ERC1155, 7)):
                assert wallets(dataset, {"nft": {**one, "count": {"min": low}}, **scope}) == found
        held = {"nft": {"nft": wallet(ERC1155)}, "orderBy": "-D_count", **scope}
        assert [(int(row["address"], 16), row["D_count"]) for row in answer(dataset, held)] == [
            (6, most),
            (5, most - 1),
            (7, 10**17),
        ]
    dataset.close()


@pytest.mark.slow
def test_whom_a_snapshot_shows_was_seen_from_its_block_on_whatever_the_time(tmp_path):
    snapshots = [(3, ERC20, {5: 10, 6: 10}), (6, ERC20, {5: 4})]
    dataset = open_data(
        tmp_path / "w", [(8, 0, 6, ERC721, 1, 1), (8, 6, 9, ERC721, 1, 1)], snapshots
    )
    first = {"activity": {"first": {"before": 3}}}
    columns = ["firstSeen", "lastSeen", "transfers", "activeDays"]
    for scope in ({}, {"asOf": LAST}, {"asOf": 7}):
        assert wallets(dataset, {**first, **scope}) == [5, 6]
    assert wallets(dataset, {"activity": {"first": {"after": 8}}, "asOf": 9}) == [0, 9]
    assert wallets(dataset, {"activity": {"transfers": {"min": 0, "max": 0}}, "asOf": 7}) == [5, 6]
    assert wallets(dataset, {"not": {"wallet": {"in": [wallet(9)]}}, "asOf": 4}) == [5, 6]
    shown = [list(row.values()) for row in answer(dataset, {**first, "columns": columns})]
    assert [(int(one, 16), *map(_seconds, rest)) for one, *rest in shown] == [
        (5, BEGIN + 3 * DAY, BEGIN + 6 * DAY, 0, 0),
        (6, BEGIN + 3 * DAY, BEGIN + 8 * DAY, 2, 1),
    ]
    dataset.close()


def test_counts_beyond_64_bits_are_compared_ordered_summed_and_returned_exactly(tmp_path):
    most = 2**63 - 1
    moved = [
        *((1, 0, 5, ERC1155, token, most) for token in (7, 8, 9)),
        (2, 0, 6, ERC1155, 7, 2),
        (3, 5, 6, ERC1155, 8, most),
        (3, 5, 6, ERC1155, 9, most),
    ]
    dataset = open_data(tmp_path / "w", moved)
    held = {"nft": {"nft": wallet(ERC1155)}}
    for scope, five, six in (
        ({}, most, 2 * most + 2),
        ({"asOf": LAST}, most, 2 * most + 2),
        ({"asOf": 2}, 3 * most, 2),
    ):
        for order in ("D_count", "-D_count"):
            rows = answer(dataset, {**held, **scope, "orderBy": order})
            assert [(int(row["address"], 16), int(row["D_count"])) for row in rows] == sorted(
                [(5, five), (6, six)], key=lambda one: one[1], reverse=order[0] == "-"
            )
        above = {"nft": {**held["nft"], "count": {"min": most}}, **scope}
        assert wallets(dataset, above) == ([5] if scope == {"asOf": 2} else [5, 6])
    dataset.close()


def a_world(seed):
    """Return transfers of all standards of which no id is sent that its sender did not get, and snapshots."""
    draw = random.Random(seed)
    moved, tokens, owner, held = [], [], {}, {}
    for n in range(90):
        block = 1 + n * (LAST - 1) // 90
        token, to = draw.choice([1, 2, 3, 10**26, 2**256 - 1]), draw.randrange(1, 9)
        if draw.random() < 0.4:
            moved.append((block, owner.get(token, 0), to, ERC721, token, 1))
            owner[token] = to
        elif draw.random() < 0.6:
            having = [who for (who, one), count in held.items() if one == token and count]
            sender = draw.choice([0, *having])
            count = (
                draw.randrange(1, 4) if sender == 0 else draw.randrange(1, held[sender, token] + 1)
            )
            moved.append((block, sender, to, ERC1155, token, count))
            held[sender, token] = held.get((sender, token), 0) - count if sender else 0
            held[to, token] = held.get((to, token), 0) + count
        else:
            contract = draw.choice([ERC20, WIDE])
            tokens.append(
                (block, draw.randrange(0, 9), to, contract, draw.choice([0, 1, 5, 10**27]))
            )
    return moved, [(3, WIDE, {5: 7, 11: 10**27, 12: 1}), (5, WIDE, {6: 1, 11: 10**26})], tokens


def asked_at(block):
    """Return questions of every condition, with columns, about what had happened by a block."""
    columns = ["firstSeen", "lastSeen", "transfers", "activeDays"]
    since, nft, multi = max(block - 3, 5), {"nft": wallet(ERC721)}, {"nft": wallet(ERC1155)}
    raw = {"unit": "raw"}
    some = [
        {"token": {"token": wallet(ERC20), **raw}},
        {"token": {"token": wallet(WIDE), "balance": {"min": "0", "max": "5"}, **raw}},
        {"token": {"token": wallet(WIDE), "heldSince": since, **raw}},
        {"nft": nft},
        {"nft": {**multi, "count": {"min": 2}, "heldSince": since}},
        {"nft": of_ids(ERC721, 1, 2, 10**26)},
        {"nft": of_ids(ERC1155, 1, 3, 2**256 - 1, count={"min": 2})},
        {"nft": of_ids(ERC721, 3, 2**256 - 1, heldSince=since)},
        {"nft": of_ids(ERC1155, 1, 2, 10**26, heldSince=since, count={"min": 1, "max": 4})},
        {"nft": of_ids(ERC1155, 1, count={"min": 0, "max": 0})},
        {"collections": {"of": [wallet(ERC721), wallet(ERC1155)], "atLeast": 2}},
        {"collections": {"distinct": {"min": 1}}},
        {"transfer": {"direction": "in", "count": {"min": 2}}},
        {"transfer": {**multi, "direction": "any", "total": {"min": 3}}},
        {"activity": {"first": {"before": 5}}},
        {"activity": {"last": {"after": since}, "activeDays": {"min": 2}}},
        {"activity": {"transfers": {"min": 0, "max": 0}}},
        # Spans count back from then, too.
        {"token": {"token": wallet(ERC20), "heldSince": "2d", **raw}},
        {"nft": {**nft, "heldSince": "1d"}},
        {"transfer": {"direction": "in", "after": "2d"}},
        {"activity": {"first": {"after": "4d"}, "last": {"before": "1d"}}},
        {"wallet": {"contract": False}},
        {"not": {"token": {"token": wallet(ERC20), **raw}}},
        {"any": [{"nft": nft}, {"not": {"transfer": {"direction": "out"}}}]},
    ]
    return [
        {**one, "columns": columns, **({"orderBy": "-transfers"} if n % 3 else {})}
        for n, one in enumerate(some)
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("past"), a_world(5)
    datasets = {last: open_data(folder / str(last), *made, last=last) for last in (5, 8, LAST)}
    yield datasets
    for one in datasets.values():
        one.close()


@pytest.mark.slow
def test_as_of_the_last_block_is_now(world):
    differ = [
        one
        for one in asked_at(LAST)
        if answer(world[LAST], one) != answer(world[LAST], {**one, "asOf": LAST})
    ]
    assert differ == []


@pytest.mark.slow
def test_as_of_a_block_is_what_an_ingest_of_what_had_come_by_then_says(world):
    differ = [
        (block, one)
        for block in (5, 8)
        for one in asked_at(block)
        if answer(world[block], one) != answer(world[LAST], {**one, "asOf": block})
    ]
    assert differ == []
