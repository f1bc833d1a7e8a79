"""Exports for people are read exactly: amounts in units, contracts in file names, batches, all standards together."""

from __future__ import annotations

import csv
import json
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbext.engine import storage
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.open import open_dataset
from nbext.errors import IngestError
from nbext.language import language
from tests import slow
from tests.engine.ingest.reading_back import Tables, everything, take, transaction, wallet
from tests.engine.ingest.test_files import etherscan

TOKEN = wallet(1000)
WEB = ["Transaction Hash", "Blockno", "UnixTimestamp", "DateTime (UTC)", "From", "To"]
OF_AN_ADDRESS = [
    *WEB,
    "TokenValue",
    "USDValueDayOfTx",
    "ContractAddress",
    "TokenName",
    "TokenSymbol",
]
OF_A_TOKEN = [*WEB, "Quantity", "Method"]
NFTS = [*WEB, "ContractAddress", "TokenName", "TokenSymbol", "Token ID", "Type", "Quantity"]


def web(path, header, *rows):
    """Write an export as Etherscan's pages do: every field is quoted."""
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return path


def start(n, sender, recipient, block=100):
    return [
        transaction(n),
        block,
        1_600_000_000 + block,
        "2020-09-13 12:28:20",
        wallet(sender),
        wallet(recipient),
    ]


@pytest.fixture
def tokens_file(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(f"address,symbol,name,decimals\n{TOKEN},A,A,6\n{wallet(1001)},B,B,18\n")
    return path


def balances(data):
    with Tables(data) as tables:
        return tables.balances()


def test_an_addresss_erc20_transfers_are_read_exactly_in_each_tokens_unit(
    data, tmp_path, tokens_file
):
    path = web(
        tmp_path / "export-address-token-0x1.csv",
        OF_AN_ADDRESS,
        [*start(1, 0, 1), "1,234,567.000001", "$1,234,567.00", TOKEN, "A token", "A"],
        [*start(2, 1, 2), "0.5", "N/A", wallet(1001), "B token", "B"],
        [*start(3, 1, 2), "1E-18", "", wallet(1001), "B token", "B"],
    )
    report = take(data, path, tokens_file)
    assert next((file.kind.name, file.rows) for file in report.files) == (
        "ERC20 transfers (Etherscan's CSV export)",
        3,
    )
    half = 5 * 10**17 + 1
    assert balances(data) == {
        (TOKEN, wallet(0)): -1_234_567_000_001,
        (TOKEN, wallet(1)): 1_234_567_000_001,
        (wallet(1001), wallet(1)): -half,
        (wallet(1001), wallet(2)): half,
    }
    assert (
        "  3 rows without a log index: identified by their transactions, addresses and amounts; where two files "
        "have equal ones, as many count as one file has"
    ) in report.lines()


def test_a_row_without_an_amount_and_one_of_no_contract_are_bad_and_the_others_are_read(
    data, tmp_path, tokens_file
):
    bad = [[*start(2, 1, 2), None, "", TOKEN, "A", "A"], [*start(3, 1, 2), "2", "", "0x1", "", ""]]
    rows = [[*start(1, 0, 1), "1", "", TOKEN, "A", "A"], *bad]
    columns = (
        [None if one is None else str(one) for one in column] for column in zip(*rows, strict=True)
    )
    table = pa.table(dict(zip(OF_AN_ADDRESS, map(pa.array, columns), strict=True)))
    path = tmp_path / "export-address-token-0x1.parquet"
    pq.write_table(table, path)
    report = take(data, path, tokens_file)
    assert [(row.row, row.why, row.value) for row in report.bad] == [
        (2, "value is not a whole number from 0 to 2**256-1", None),
        (3, "token address is not an address", "0x1"),
    ]
    assert balances(data)[TOKEN, wallet(1)] == 1_000_000


def test_the_decimals_of_a_token_are_asked_for_and_what_is_given_is_learnt_listed_and_replaced(
    data, tmp_path
):
    path = web(
        tmp_path / f"export-token-{TOKEN}.csv", OF_A_TOKEN, [*start(1, 0, 1), "1,000.5", "Mint"]
    )
    with pytest.raises(IngestError) as caught:
        take(data, path)
    assert str(caught.value) == (
        f"{path}: the decimals of {TOKEN} are unknown, so its amounts cannot be read. Ingest a token list or tokens "
        "file that has them, or give --decimals N."
    )
    take(data, path, options=SnapshotOptions(decimals=3))
    with Tables(data) as tables:
        assert tables.balances()[TOKEN, wallet(1)] == 1_000_500
        known = tables.contract(TOKEN)
    assert (known["standard"], known["decimals"]) == ("ERC20", 3)
    assert storage.current_generation(data).manifest["files"][0]["options"] == {"decimals": 3}
    assert take(data, path).skipped == {str(path): None}
    report = take(data, path, options=SnapshotOptions(decimals=6))
    assert (
        report.lines()[1]
        == f"replaced: {path}: transfers of one token (Etherscan's CSV export), 1 row"
    )
    assert balances(data)[TOKEN, wallet(1)] == 1_000_500_000


def test_a_tokens_transfers_need_its_address_and_take_it_from_an_option(
    data, tmp_path, tokens_file
):
    path = web(tmp_path / "transfers.csv", OF_A_TOKEN, [*start(1, 0, 1), "2", "Mint"])
    for tokens in ({}, {"uni": TOKEN}):
        with pytest.raises(IngestError) as caught:
            take(data, path, options=SnapshotOptions(tokens=tokens))
        assert str(caught.value) == (
            f"{path}: which token are these transfers of? No column says it, nor does the file's "
            "name. Give its address alone, without a symbol: --token 0x..."
        )
    take(data, path, tokens_file, options=SnapshotOptions(tokens={"": TOKEN}))
    assert balances(data)[TOKEN, wallet(1)] == 2_000_000


def test_amounts_that_are_none_are_bad_rows_and_a_file_of_them_is_refused(
    data, tmp_path, tokens_file
):
    good = [*start(1, 0, 1), "2", "Mint"]
    bad = [[*start(2, 0, 1), text, "Mint"] for text in ("1,00", "0.0000001", "-1", "", "many")]
    name = f"export-token-{TOKEN}.csv"
    report = take(data, web(tmp_path / name, OF_A_TOKEN, good, *bad), tokens_file)
    assert [(row.row, row.why, row.value) for row in report.bad] == [
        (2, "is not a number", "1,00"),
        (3, "has more than 6 decimals", "0.0000001"),
        (4, "is below zero", "-1"),
        (5, "is not a number", ""),
        (6, "is not a number", "many"),
    ]
    assert balances(data)[TOKEN, wallet(1)] == 2_000_000
    with pytest.raises(
        IngestError, match=r"row 1: is not a number: '1,00'\. No row of the file is usable"
    ):
        take(
            tmp_path / "other",
            web(tmp_path / f"b-{name}", OF_A_TOKEN, bad[0]),
            options=SnapshotOptions(decimals=6),
        )


def test_amounts_of_transfers_with_commas_of_both_sorts_refuse_their_file(
    data, tmp_path, tokens_file
):
    rows = [[*start(n, 0, 1), text, "Mint"] for n, text in enumerate(("0,5", "1,500"), 1)]
    path = web(tmp_path / f"export-token-{TOKEN}.csv", OF_A_TOKEN, *rows)
    says = "a comma is before decimals in '0,5', and '1,500' would be read as of thousands"
    with pytest.raises(IngestError, match=says):
        take(data, path, options=SnapshotOptions(decimals=6))


def test_a_count_of_pieces_has_commas_between_thousands_alone(data, tmp_path):
    rows = [
        [*start(n, 0, 1), wallet(3000), "N", "N", n, "ERC-1155", count]
        for n, count in enumerate(("1,234,000", "1,5", "12,34", ",7"), 1)
    ]
    report = take(data, web(tmp_path / "nfts.csv", NFTS, *rows))
    assert [(bad.row, bad.value) for bad in report.bad] == [(2, "1,5"), (3, "12,34"), (4, ",7")]
    assert balances(data)[wallet(3000), wallet(1)] == 1_234_000


def test_several_pieces_of_what_is_read_as_a_collection_are_said_until_a_file_says_what_it_is(
    data, tmp_path
):
    names = [name for name in NFTS if name != "Type"]
    path = web(tmp_path / "nfts.csv", names, [*start(1, 0, 1), wallet(3000), "N", "N", 7, 5])
    report = take(data, path)
    assert [line for line in report.lines() if "more than one" in line] == [
        "  1 ERC721 transfer of more than one: counted as one; if its contract is an ERC1155, ingest a file with its "
        "address and standard"
    ]
    assert balances(data)[wallet(3000), wallet(1)] == 1
    said = tmp_path / "tokens.csv"
    said.write_text(f"address,symbol,name,decimals,standard\n{wallet(3000)},N,N,,ERC1155\n")
    take(data, said)
    assert balances(data)[wallet(3000), wallet(1)] == 5


@pytest.mark.slow
def test_the_same_transfers_in_three_of_etherscans_forms_are_counted_once(data, tmp_path, log):
    made = [log(0, 1, 9 * 10**18, tx=5), log(0, 1, 9 * 10**18, tx=5), log(1, 2, 4)]
    etherscan(tmp_path / "api.csv", made)
    rows = [
        [
            log.transaction_hash,
            log.block_number,
            1_622_447_001,
            "",
            log.from_address,
            log.to_address,
            "9.00" if log.value > 9 else "4e-18",
        ]
        for log in made
    ]
    one = web(
        tmp_path / f"export-token-{TOKEN}.csv",
        OF_A_TOKEN,
        *([*row, "Transfer"] for row in reversed(rows)),
    )
    other = web(
        tmp_path / "export-address-token.csv",
        OF_AN_ADDRESS,
        *([*row, "", TOKEN.upper().replace("X", "x"), "SuperFarm", "SUPER"] for row in rows),
    )
    take(data, tmp_path / "api.csv")
    before = everything(data)
    for path in (one, other):
        report = take(data, path)
        assert (report.new, report.odd["duplicates"]) == (0, 3)
    assert everything(data)[0] == before[0]


def test_pages_that_overlap_are_counted_once_each_in_its_file_and_said_of_one_made_of_them(
    data, tmp_path, log
):
    made = [log(0, 1, 9, tx=5), log(1, 2, 4, tx=6), log(1, 3, 5, tx=7), log(2, 3, 1, tx=8)]
    etherscan(tmp_path / "1.csv", made[:3])
    etherscan(tmp_path / "2.csv", made[1:])
    report = take(data, tmp_path / "1.csv", tmp_path / "2.csv")
    assert (report.new, report.odd["duplicates"], report.odd["unindexed"]) == (4, 2, 6)
    assert "unindexed_alike" not in report.odd
    etherscan(tmp_path / "one.csv", [*made[:3], *made[1:]])
    report = take(tmp_path / "other", tmp_path / "one.csv")
    assert (report.new, report.odd["duplicates"]) == (6, 0)
    [said] = [line for line in report.lines() if "pages that overlap" in line]
    assert said == (
        "  2 of these count beside their equals in a file: if that is made of pages that overlap, give "
        "each its own file"
    )


def test_a_newest_first_export_of_nfts_ends_with_their_last_owners(data, tmp_path):
    rows = [
        [*start(n, n, n + 1, block), wallet(2000), "Apes", "APE", "7", "721", "1"]
        for n, block in enumerate([100, 100, 101, 101])
    ]
    take(data, web(tmp_path / "nfts.csv", NFTS, *reversed(rows)))
    with Tables(data) as tables:
        assert tables.owners() == {(wallet(2000), 7): wallet(4)}
        assert tables.contract(wallet(2000))["standard"] == "ERC721"


@pytest.mark.parametrize("column", ["Value_IN(ETH)", "ParentTxFrom", "TxnFee(BNB)"])
def test_transactions_of_the_chains_coin_are_refused_by_name(data, tmp_path, column):
    header = [*WEB, "ContractAddress", column, "Quantity"]
    path = web(tmp_path / "export-0x1.csv", header, [*start(1, 0, 1), "", "1", "2"])
    with pytest.raises(IngestError) as caught:
        take(data, path)
    assert str(caught.value) == (
        f"{path}: these are transactions of the chain's own coin, not transfers of tokens. On the address's page, "
        'download those of the tab "Token Transfers".'
    )


def test_holders_with_thousands_separators_are_read(data, tmp_path, tokens_file):
    path = web(
        tmp_path / f"export-tokenholders-for-contract-{TOKEN}.csv",
        ["HolderAddress", "Balance", "PendingBalanceUpdate"],
        [wallet(1), "1,234.5", "No"],
    )
    take(data, path, tokens_file, options=SnapshotOptions(block=100))
    assert balances(data) == {(TOKEN, wallet(1)): 1_234_500_000}


# Mint 10 of an id and 2 of another, send 3 and 1 of the first, burn the second: (tx, log, from, to, ids, counts)
MOVES = [
    (1, 5, 0, 1, ["7", "8"], ["10", "2"]),
    (2, 6, 1, 2, ["7"], ["3"]),
    (3, 7, 1, 3, ["7"], ["1"]),
    (4, 8, 1, 0, ["8"], ["2"]),
]
EVENT = ["contract_address", "evt_tx_hash", "evt_index", "evt_block_time", "evt_block_number"]
LISTS = {"batch.csv": "[{}]", "batch-quoted.csv": '["{}"]', "batch-braces.csv": "{{{}}}"}


def each_id():
    return [
        (n, index, a, b, *piece)
        for n, index, a, b, ids, counts in MOVES
        for piece in zip(ids, counts, strict=True)
    ]


def tx(contract, n):
    return transaction(10_000 * n + int(contract, 16))


def event(contract, n, index):
    return [contract, tx(contract, n), index, f"2024-01-31 00:00:0{n}.000 UTC", 100 + n]


def batches(contract):
    return [
        [*event(contract, n, index), wallet(a), wallet(b), ids, counts]
        for n, index, a, b, ids, counts in MOVES
    ]


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def as_batches(path, name, contract):
    batch = [*EVENT, "from", "to", "ids", "values"]
    if name in LISTS:
        between = {"batch.csv": " ", "batch-quoted.csv": '","', "batch-braces.csv": ", "}[name]
        return write(
            path,
            batch,
            [
                [*row, *(LISTS[name].format(between.join(one)) for one in lists)]
                for *row, ids, counts in batches(contract)
                for lists in [(ids, counts)]
            ],
        )
    if name == "batch.json":
        path.write_text(
            json.dumps(
                {
                    "result": {
                        "rows": [dict(zip(batch, row, strict=True)) for row in batches(contract)]
                    }
                }
            )
        )
        return path
    rows = [
        [*row, list(map(int, ids)), list(map(int, counts))]
        for *row, ids, counts in batches(contract)
    ]
    pq.write_table(
        pa.table(dict(zip(batch, map(list, zip(*rows, strict=True)), strict=True))), path
    )
    return path


def pieces(folder, name, contract):
    """Write MOVES of an ERC1155 as one of its sources does, which the file's name tells."""
    path = folder / name
    if name.startswith("batch"):
        return as_batches(path, name, contract)
    if name == "single.csv":
        return write(
            path,
            [*EVENT, "from", "to", "operator", "id", "value"],
            [
                [*event(contract, n, index), wallet(a), wallet(b), wallet(9), one, many]
                for n, index, a, b, one, many in each_id()
            ],
        )
    if name == "nft_transfers.csv":
        header = [
            "blockchain",
            "block_time",
            "block_number",
            "token_standard",
            "transfer_type",
            "evt_index",
            "contract_address",
            "token_id",
            "amount",
            "from",
            "to",
            "executed_by",
            "tx_hash",
        ]
        return write(
            path,
            header,
            [
                [
                    "ethereum",
                    f"2024-01-31 00:00:0{n}.000 UTC",
                    100 + n,
                    "erc1155",
                    "batch",
                    index,
                    contract,
                    one,
                    many,
                    wallet(a),
                    wallet(b),
                    wallet(9),
                    tx(contract, n),
                ]
                for n, index, a, b, one, many in each_id()
            ],
        )
    if name == "export.csv":
        return web(
            path,
            NFTS,
            *(
                [
                    tx(contract, n),
                    100 + n,
                    1_706_659_200 + n,
                    f"2024-01-31 00:00:0{n}",
                    wallet(a),
                    wallet(b),
                    contract,
                    "P",
                    "P",
                    one,
                    "1155",
                    many,
                ]
                for n, _, a, b, one, many in each_id()
            ),
        )
    header = [
        "blockNumber",
        "timeStamp",
        "hash",
        "from",
        "to",
        "contractAddress",
        "tokenID",
        "tokenValue",
        "tokenName",
        "tokenSymbol",
        "transactionIndex",
    ]
    return write(
        path,
        header,
        [
            [
                100 + n,
                1_706_659_200 + n,
                tx(contract, n),
                wallet(a),
                wallet(b),
                contract,
                one,
                many,
                "P",
                "P",
                n,
            ]
            for n, _, a, b, one, many in each_id()
        ],
    )


SOURCES = (
    "single.csv",
    *LISTS,
    "batch.json",
    "batch.parquet",
    "nft_transfers.csv",
    "export.csv",
    "token1155tx.csv",
)


def held(dataset, contract, **nft):
    """The wallets of a segment of a contract's pieces, with their counts."""
    asked = {"operator": "AND", "filters": {"nft": {"nft": contract, **nft}}}
    answer = dataset.ask(
        language.compile(language.resolve(language.parse(asked), dataset)), limit=100
    )
    with closing(answer.stored):
        return [tuple(row.values()) for row in answer.rows.to_pylist()]


@pytest.mark.slow
def test_of_ten_minted_pieces_of_which_three_and_one_are_sent_three_wallets_hold_some_in_every_format(
    data, tmp_path
):
    contracts = {wallet(3000 + n): name for n, name in enumerate(SOURCES)}
    report = take(data, *(pieces(tmp_path, name, contract) for contract, name in contracts.items()))
    assert (report.new, report.bad_rows, report.refused) == (5 * len(SOURCES), 0, [])
    now = [(wallet(1), 6), (wallet(2), 3), (wallet(3), 1)]
    with closing(open_dataset(data)) as dataset:
        for contract, name in contracts.items():
            found = [
                held(dataset, contract, **nft)
                for nft in (
                    {},
                    {"count": {"min": 3, "max": 5}},
                    {"count": {"min": 6}, "heldSince": 101},
                    {"count": {"min": 1}, "heldSince": 102},
                    {"tokenIds": ["7"]},
                    {"tokenIds": ["8"]},
                )
            ]
            # Whoever burned the second id holds none of it, and nobody else does.
            assert found == [now, now[1:2], now[:1], now[:2], now, []], name


@pytest.mark.slow
def test_pieces_of_every_format_are_counted_once(data, tmp_path):
    for n, names in enumerate((SOURCES[:3], SOURCES[3:6], SOURCES[6:])):
        report = take(data, *(pieces(tmp_path, name, wallet(3000)) for name in names))
        assert (report.new, report.odd["duplicates"]) == ((5, 10) if n == 0 else (0, 15))
    with Tables(data) as tables:
        assert tables.balances() == {
            (wallet(3000), wallet(n)): held for n, held in enumerate((2, 6, 3, 1))
        }


def test_a_batch_that_names_an_id_twice_gives_both_and_one_of_other_lengths_is_bad(data, tmp_path):
    rows = [
        [*event(wallet(3000), n, n), wallet(0), wallet(1), ids, counts]
        for n, (ids, counts) in enumerate(
            [
                ("[7 7]", "[1 2]"),
                ("[8 9]", "[1]"),
                ("[8 9]", "[1 x]"),
                ("[]", "[]"),
                ("[8]", "[1.5]"),
                ("[7 7]", "[1 1.5]"),
            ]
        )
    ]
    path = write(tmp_path / "batch.csv", [*EVENT, "from", "to", "ids", "values"], rows)
    report = take(data, path)
    assert [(row.row, row.why, row.value) for row in report.bad] == [
        (2, "ids and values are not as many", "[8 9] [1]"),
        (3, "token value is not a whole number below 2**63", "x"),
        (5, "token value is not a whole number below 2**63", "1.5"),
        (6, "token value is not a whole number below 2**63", "1 1.5"),
    ]
    assert balances(data) == {(wallet(3000), wallet(1)): 4}


def test_a_row_of_a_standard_that_leaves_its_amount_unknown_is_bad_and_blanks_around_one_are_not(
    data, tmp_path
):
    header = ["token_address", "value", "token_id", "token_standard", "from_address", "to_address"]
    header += ["transaction_hash", "log_index", "block_number"]
    standards = (" ERC-1155 ", "ERC-404", "", "BEP20", "erc721")
    rows = [
        [wallet(3000 + n), 5, 7, given, wallet(0), wallet(1), f"0x{n:064x}", n, n]
        for n, given in enumerate(standards)
    ]
    report = take(data, write(tmp_path / "forked.csv", header, rows))
    why = "the standard is none of ERC20, ERC721 and ERC1155"
    assert [(row.row, row.why, row.value) for row in report.bad] == [
        (2, why, "ERC-404"),
        (3, why, ""),
    ]
    assert balances(data) == {
        (wallet(3000), wallet(1)): 5,
        (wallet(3003), wallet(0)): -5,
        (wallet(3003), wallet(1)): 5,
        (wallet(3004), wallet(1)): 1,
    }
    path = write(tmp_path / "none.csv", header, rows[1:3])
    with pytest.raises(IngestError, match=f"{why}: 'ERC-404'. No row of the file is usable."):
        take(data, path)


@pytest.mark.parametrize("step", [1, -1])
def test_a_contract_of_two_standards_is_refused_since_ids_would_be_amounts(data, tmp_path, step):
    header = ["token_address", "value", "token_id", "token_standard", "from_address", "to_address"]
    header += ["transaction_hash", "log_index", "block_number"]
    rows = [
        [wallet(3000), value, token, standard, wallet(0), wallet(1), f"0x{n:064x}", n, n]
        for n, (value, token, standard) in enumerate([(1, 6, "ERC721"), (9, "", "ERC20")])
    ]
    path = write(tmp_path / "mixed.csv", header, rows[::step])
    with pytest.raises(IngestError) as caught:
        take(data, path)
    assert str(caught.value) == (
        f"{path}: its rows of {wallet(3000)} are ERC20 and ERC721, and a contract has one standard. Leave out those "
        "that are wrong."
    )


def test_a_curated_table_gives_the_transfers_of_tokens_and_counts_those_of_the_coin(data, tmp_path):
    header = [
        "blockchain",
        "block_time",
        "block_number",
        "tx_hash",
        "evt_index",
        "token_standard",
        "from",
        "to",
        "contract_address",
        "symbol",
        "amount_raw",
        "amount",
        "amount_usd",
    ]
    rows = [
        [
            "ethereum",
            "2024-01-31 00:00:01.000 UTC",
            100,
            transaction(n),
            index,
            standard,
            wallet(0),
            wallet(1),
            contract,
            "T",
            raw,
            "1.5",
            "2.5",
        ]
        for n, (index, standard, contract, raw) in enumerate(
            [(5, "erc20", TOKEN, 2**200), ("", "native", wallet(0), 10**18)]
        )
    ]
    report = take(data, write(tmp_path / "tokens_transfers.csv", header, rows), chain=None)
    assert (report.new, report.bad_rows, report.odd["coins"]) == (1, 0, 1)
    assert balances(data) == {(TOKEN, wallet(0)): -(2**200), (TOKEN, wallet(1)): 2**200}
    coin = write(tmp_path / "coin.csv", header, rows[1:])
    with pytest.raises(
        IngestError, match="its rows are transfers of the chain's own coin, not of tokens"
    ):
        take(data, coin, chain=None)


def test_blockscouts_answers_are_read_with_amounts_token_ids_and_counts(data, tmp_path):
    def item(n, kind, total):
        return {
            "block_number": 100 + n,
            "log_index": n,
            "tx_hash": transaction(n),
            "type": "token_transfer",
            "timestamp": "2024-01-31T00:00:00.000000Z",
            "from": {"hash": wallet(0), "name": None},
            "to": {"hash": wallet(1)},
            "total": total,
            "token": {
                "address": wallet(3000 + n),
                "type": kind,
                "symbol": f"T{n}",
                "decimals": None,
            },
        }

    items = [
        item(1, "ERC-20", {"decimals": "6", "value": "1500000"}),
        item(2, "ERC-721", {"token_id": "7"}),
        item(3, "ERC-1155", {"token_id": "8", "value": "10", "decimals": None}),
    ]
    (tmp_path / "page.json").write_text(
        json.dumps({"items": items, "next_page_params": {"index": 3}})
    )
    report = take(data, tmp_path / "page.json")
    assert ([file.kind.name for file in report.files], report.new) == (
        ["token transfers (Blockscout's API)"],
        3,
    )
    with Tables(data) as tables:
        assert tables.balances() == {
            (wallet(3001), wallet(0)): -1_500_000,
            (wallet(3001), wallet(1)): 1_500_000,
            (wallet(3002), wallet(1)): 1,
            (wallet(3003), wallet(1)): 10,
        }
        assert tables.owners() == {(wallet(3002), 7): wallet(1), (wallet(3003), 8): wallet(1)}
        assert [
            (
                tables.contract(wallet(3000 + n))["standard"],
                tables.contract(wallet(3000 + n))["decimals"],
            )
            for n in (1, 2, 3)
        ] == [("ERC20", 6), ("ERC721", None), ("ERC1155", None)]


def test_forks_of_ethereum_etl_are_read_by_the_standard_of_each_row(data, tmp_path):
    header = [
        "token_address",
        "from_address",
        "to_address",
        "value",
        "token_id",
        "erc_standard",
        "transaction_hash",
        "log_index",
        "block_number",
        "chain_id",
    ]
    rows = [
        [wallet(3000 + n), wallet(0), wallet(1), value, token, standard, transaction(n), n, 100, 10]
        for n, (value, token, standard) in enumerate(
            [(10**20, "", "ERC20"), ("", 7, "ERC721"), (5, 8, "ERC1155")]
        )
    ]
    forked = write(tmp_path / "forked.csv", header, rows)
    header = [
        "network",
        "chain_id",
        "block_timestamp",
        "block_number",
        "transaction_hash",
        "log_index",
        "contract_address",
        "amount",
        "amount_lossless",
        "from_address",
        "to_address",
    ]
    row = [
        "op",
        10,
        1_600_000_000,
        101,
        transaction(9),
        1,
        wallet(3000),
        1e20,
        10**20,
        wallet(0),
        wallet(1),
    ]
    lossless = write(tmp_path / "op.csv", header, [row])
    assert take(data, forked, lossless, chain=None).new == 4
    assert balances(data) == {
        (wallet(3000), wallet(0)): -2 * 10**20,
        (wallet(3000), wallet(1)): 2 * 10**20,
        (wallet(3001), wallet(1)): 1,
        (wallet(3002), wallet(1)): 5,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", slow.but_the_first(["single.csv", "batch.csv", "token1155tx.csv"]))
def test_a_token_id_is_the_same_in_hex_and_with_zeros_before_it_and_a_hash_in_capitals(
    data, tmp_path, name
):
    path = pieces(tmp_path, name, wallet(3000))
    take(data, path)
    before = everything(data)
    for number, change in enumerate([("7", "0x7"), ("7", "007"), (tx(wallet(3000), 2), None)]):
        old, new = change[0], change[1] or "0x" + change[0][2:].upper()
        with path.open(newline="") as file:
            rows = [
                [
                    new if field == old else field.replace("[7", f"[{new}") if old == "7" else field
                    for field in row
                ]
                for row in csv.reader(file)
            ]
        report = take(data, write(tmp_path / f"{number}-{name}", rows[0], rows[1:]))
        assert (report.new, report.odd["duplicates"]) == (0, 5)
    assert everything(data)[0] == before[0]


def test_bnbs_standards_are_those_of_ethereum_by_another_name(data, tmp_path):
    header = [
        "blockchain",
        "block_time",
        "block_number",
        "token_standard",
        "evt_index",
        "contract_address",
        "token_id",
        "amount",
        "from",
        "to",
        "tx_hash",
    ]
    rows = [
        [
            "bnb",
            "2024-01-31 00:00:01.000 UTC",
            100,
            standard,
            5,
            wallet(contract),
            token,
            many,
            wallet(0),
            wallet(1),
            transaction(contract),
        ]
        for standard, contract, token, many in [
            ("bep721", 2000, 7, 1),
            ("bep1155", 3000, 7, 10),
            ("bep1155", 3000, 8, 2),
        ]
    ]
    take(data, write(tmp_path / "nft_transfers.csv", header, rows), chain=None)
    assert balances(data) == {(wallet(2000), wallet(1)): 1, (wallet(3000), wallet(1)): 12}


def test_etherscans_older_name_of_an_amount_is_read_in_the_tokens_unit(data, tmp_path, tokens_file):
    header = [
        "Txhash",
        "Blockno",
        "UnixTimestamp",
        "DateTime",
        "From",
        "To",
        "Value",
        "ContractAddress",
        "TokenName",
        "TokenSymbol",
    ]
    take(
        data,
        web(tmp_path / "export.csv", header, [*start(1, 0, 1), "1,234.5", TOKEN, "A", "A"]),
        tokens_file,
    )
    assert balances(data)[TOKEN, wallet(1)] == 1_234_500_000
