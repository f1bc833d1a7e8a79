"""Holder snapshots: exact balances in any unit, token ids, and transfers that came after."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.engine.ingest import remove
from nbext.engine.ingest.derive import snapshots
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.run import compact
from nbext.engine.open import open_dataset
from nbext.errors import IngestError, InvalidSegment, ValidationError
from nbext.language import language
from tests import slow
from tests.engine.ingest.conftest import write_parquet
from tests.engine.ingest.reading_back import Tables, take, wallet

TOKEN = wallet(1000)


def holders(path, *rows, header="HolderAddress,Balance,PendingBalanceUpdate"):
    path.write_text(
        "\n".join([header, *(",".join(f'"{field}"' for field in row) for row in rows)]) + "\n"
    )
    return path


def options(decimals=18, token=TOKEN, block=100, **others):
    return SnapshotOptions(
        tokens={"": token} if token else {}, decimals=decimals, block=block, **others
    )


def test_dust_and_large_balances_keep_every_digit(data, tmp_path):
    path = holders(
        tmp_path / "export.csv",
        (wallet(1), "1E-18", "No"),
        (wallet(2), "1441.16569050617", "No"),
        (wallet(3), "3.128E-15", "No"),
        (wallet(4), "49880295", "No"),
        (wallet(5), "0.0", "No"),
    )
    report = take(data, path, options=options(block=12_000_000))
    with Tables(data) as tables:
        assert tables.balances() == {
            (TOKEN, wallet(1)): 1,
            (TOKEN, wallet(2)): 1_441_165_690_506_170_000_000,
            (TOKEN, wallet(3)): 3_128,
            (TOKEN, wallet(4)): 49_880_295 * 10**18,
        }
        assert {row[2:4] for row in tables.history()} == {(12_000_000, 2**62)}
        assert tables.contract(TOKEN)["standard"] == "ERC20"
        assert len(tables.rows("SELECT * FROM wallets")) == 4
        assert tables.rows("SELECT * FROM transfers UNION ALL SELECT * FROM transfers") == []
    assert report.odd["zero_balances"] == 1


def test_a_balance_that_cannot_be_exact_is_listed_with_its_row(data, tmp_path):
    wrong = {
        "-175198427.56": "balance is below zero",
        "1E-19": "balance has more than 18 decimals",
        "1e60": "balance is above 2**256-1",
        "NaN": "balance is not a number",
        "1,5": "balance is not a number",
        "1E999999999": "balance is not a number",
    }
    path = holders(
        tmp_path / "export.csv",
        (wallet(1), "1", "No"),
        *((wallet(number), balance, "No") for number, balance in enumerate(wrong, 2)),
        ("0x1", "1", "No"),
    )
    report = take(data, path, options=options())
    found = [*enumerate(wrong.values(), 2), (len(wrong) + 2, "holder is not an address")]
    assert [(b.row, b.why) for b in report.bad] == found
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 10**18}


def test_a_comma_before_decimals_is_none_between_thousands_in_the_same_file(data, tmp_path):
    path = holders(
        tmp_path / "h.csv", (wallet(1), "0,500"), (wallet(2), "7"), header="address,balance"
    )
    report = take(data, path, options=options())
    assert [(bad.row, bad.why, bad.value) for bad in report.bad] == [
        (1, "balance is not a number", "0,500")
    ]
    for comma in ("0,500", "12,5", "1.234,5"):
        path = holders(
            tmp_path / "both.csv",
            (wallet(1), comma),
            (wallet(2), "1,500"),
            header="address,balance",
        )
        with pytest.raises(IngestError) as caught:
            take(data, path, options=options())
        assert str(caught.value) == (
            f"{path}: a comma is before decimals in '{comma}', and '1,500' would be read as of thousands. "
            "Take the file as it was before a spreadsheet wrote it."
        )


def test_an_amount_that_a_spreadsheet_has_cut_to_six_digits_refuses_its_file(data, tmp_path):
    # A smaller one is how Etherscan writes 123457 of the smallest unit.
    path = holders(tmp_path / "h.csv", (wallet(1), "1.23457E-13"), header="address,balance")
    take(data, path, options=options())
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 123_457}
    path = holders(tmp_path / "cut.csv", (wallet(1), "1.23457E+11"), header="address,balance")
    with pytest.raises(IngestError) as caught:
        take(data, path, options=options())
    assert str(caught.value) == (
        f"{path}: '1.23457E+11' has six digits and an exponent, as spreadsheets write amounts without all digits. "
        "Take the file as it was before a spreadsheet wrote it."
    )


def test_raw_balances_are_taken_as_they_are(data, tmp_path):
    path = holders(tmp_path / "h.csv", (wallet(1), str(2**256 - 1)), header="address,balance")
    take(data, path, options=options(None, unit="raw"))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 2**256 - 1}


@given(number=st.integers(1, 2**256 - 1), zeros=st.integers(0, 20))
@settings(max_examples=200)
def test_a_raw_amount_is_exact_in_digits_in_hex_and_with_an_exponent(number, zeros):
    tokens = SimpleNamespace(unit="raw", decimals=lambda _: 0)
    digits = str(number)
    scientific = [
        f"{digits[0]}.{digits[1:] or 0}e{len(digits) - 1}",
        f"{digits}E+0",
        f"{digits}{'0' * zeros}e-{zeros}",
    ]
    for text in (
        digits,
        hex(number),
        f"0X{number:064X}",
        *scientific[: 2 if zeros + len(digits) > 78 else 3],
    ):
        assert snapshots._digits(text, tokens, TOKEN, by_id=False) == (digits, None)


@pytest.mark.parametrize(
    ("page", "block"),
    [
        # As Moralis' API answers /erc20/{address}/owners.
        (
            {
                "result": [
                    {
                        "balance": "10930056627204137678149589",
                        "balance_formatted": "10930056.627204137678149589",
                        "is_contract": False,
                        "owner_address": wallet(1),
                    }
                ]
            },
            100,
        ),
        # As Covalent's answers /tokens/{address}/token_holders_v2.
        (
            {
                "data": {
                    "items": [
                        {
                            "contract_decimals": 18,
                            "contract_address": TOKEN,
                            "address": wallet(1),
                            "balance": "10930056627204137678149589",
                            "block_height": 100,
                        }
                    ]
                }
            },
            None,
        ),
    ],
    ids=["Moralis", "Covalent"],
)
def test_a_services_balances_in_the_smallest_unit_are_not_taken_for_whole_tokens(
    data, tmp_path, page, block
):
    path = tmp_path / "owners.json"
    path.write_text(json.dumps(page))
    report = take(data, path, options=options(decimals=None, block=block))
    assert report.lines()[1] == f"  holders of {TOKEN}, at block 100"
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 10930056627204137678149589}


def page(path, **said):
    """Write a page of one holder, as services do: what is ``said`` is beside it, or in its place."""
    path.write_text(json.dumps({"result": [{"owner": wallet(1), "balance": "5"}]} | said))
    return path


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        ({"page": 1, "page_size": 100, "cursor": "eyJh"}, "cursor"),  # Moralis
        ({"page": 3, "page_size": 100, "cursor": None}, "page"),  # its last one
        ({"pageKey": "0x1"}, "pageKey"),  # Alchemy
        ({"next_page_params": {"value": "1"}}, "next_page_params"),  # Blockscout
        ({"next_offset": 1000, "next_uri": "https://api.dune.com/x"}, "next_offset"),
        ({"pagination": {"has_more": True, "page_number": 0}}, "has_more"),  # Covalent
        ({"pagination": {"has_more": False, "total_count": 2}}, "total_count"),  # its last one
        ({"pageInfo": {"hasNextPage": True}}, "hasNextPage"),  # GraphQL
        ({"links": {"prev": None, "next": "/holders?page=2"}}, "next"),
        ({"page": 1, "total_pages": 2}, "total_pages"),
        ({"total": "2"}, "total"),
        ({"count": 2, "previous": None}, "count"),
        ({"meta": {"pagination": {"page": 1, "total_pages": 7}}}, "total_pages"),  # JSON:API
        ({"state": "QUERY_STATE_COMPLETED_PARTIAL"}, "state"),  # Dune
        ({"errors": [{"message": "timeout"}]}, "errors"),  # GraphQL
        ({"truncated": True}, "truncated"),
    ],
)
@pytest.mark.parametrize("wrapped", slow.but_the_first([True, False]))
def test_a_page_of_holders_is_refused_since_who_is_on_the_others_would_have_nothing(
    data, tmp_path, said, sign, wrapped
):
    part = page(tmp_path / "a.json", **said)
    if wrapped:
        part.write_text(json.dumps({"error": False, "data": json.loads(part.read_text())}))
    # Beside it one that seems whole, as a last page does.
    last = page(tmp_path / "b.json")
    for files in ([part], [part, last]):
        with pytest.raises(IngestError) as caught:
            take(data, *files, options=options(0))
        assert str(caught.value) == (
            f"{part}: '{sign}' says that it does not have all holders, and the others would be taken to have nothing. "
            "Write the rows of all pages to one file, as one JSON list."
        )
    assert not list(data.glob("generations/*"))


@pytest.mark.parametrize(
    "said",
    [
        {"page": 1, "page_size": 100, "cursor": None},
        {"page": 0, "cursor": "", "total": 1},
        {"pageKey": None, "next_page_params": None, "next": {}},
        {"state": "QUERY_STATE_COMPLETED", "errors": [], "truncated": False, "count": 1},
        {
            "pagination": {"has_more": False, "page_number": 0, "page_size": 1, "total_count": 1},
            "next_update_at": "2026-01-01T00:00:00Z",
        },
        {"meta": {"page": 1, "total_pages": 1}, "links": {"next": None}},
        # A balance's record has such names, too, and is no wrapper.
        {"result": [{"owner": wallet(1), "balance": 5, "cursor": "x", "page": {"total": 9}}]},
        # The sum of the balances.
        {"total": 1000, "result": {wallet(1): "5"}},
    ],
)
def test_a_page_that_says_that_none_follows_is_a_whole_snapshot(data, tmp_path, said):
    take(data, page(tmp_path / "a.json", **said), options=options(0))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 5}


@pytest.mark.parametrize("named", [{}, {"token": ""}])
@pytest.mark.parametrize("header", ["address,balance,contract", "address,token_id,contract"])
def test_a_holders_contract_that_is_no_address_is_a_bad_row_and_not_that_of_the_option_or_name(
    data, tmp_path, header, named
):
    path = holders(
        tmp_path / f"{TOKEN}.csv",
        (wallet(1), "5", wallet(1001)),
        (wallet(2), "6", "0x1f98"),
        (wallet(3), "7", f"{wallet(1002)} "),
        (wallet(4), "8", ""),
        header=header,
    )
    report = take(data, path, options=options(0, **named))
    assert [(bad.row, bad.why, bad.value) for bad in report.bad] == [
        (2, "token address is not an address", "0x1f98"),
        (3, "token address is not an address", f"{wallet(1002)} "),
    ]
    with Tables(data) as tables:
        assert tables.balances() == (
            {(wallet(1001), wallet(1)): 1, (TOKEN, wallet(4)): 1}
            if "token_id" in header
            else {(wallet(1001), wallet(1)): 5, (TOKEN, wallet(4)): 8}
        )


@pytest.mark.parametrize(
    ("columns", "block"),
    [
        ("contract,block_height", 1_600_000_200),
        ("token_address,snapshot_block", 1_600_000_200),
        ("contract_address,block_number", 1_600_000_200),
        ("contract,timestamp", None),
    ],
)
def test_a_services_balances_say_which_token_and_block_they_are_of_in_every_way_that_others_do(
    data, tmp_path, columns, block
):
    header = f"owner_address,balance,balance_formatted,{columns}"
    path = holders(tmp_path / "h.csv", (wallet(1), 7, "0.7", TOKEN, 1_600_000_200), header=header)
    report = take(data, path, options=options(decimals=1, block=None))
    assert report.lines()[1].startswith(f"  holders of {TOKEN}")
    assert report.lines()[1].endswith(", at block 1,600,000,200") == (block is not None)
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 7}


@pytest.mark.parametrize("column", ["block_height", "snapshot_block", "snapshot_unix"])
@pytest.mark.parametrize("given", [{}, {"block": 1_600_000_300}])
@pytest.mark.parametrize("second", [1, 2])
def test_several_snapshots_of_a_service_are_refused_since_who_left_would_be_a_holder_still(
    data, tmp_path, column, given, second
):
    header = f"address,balance,contract_decimals,contract_address,{column}"
    rows = [(wallet(1), 7, 0, TOKEN, 1_600_000_100), (wallet(second), 7, 0, TOKEN, 1_600_000_200)]
    path = holders(tmp_path / "h.csv", *rows, header=header)
    with pytest.raises(IngestError) as caught:
        take(data, path, options=SnapshotOptions(decimals=0, **given))
    assert str(caught.value) == (
        f"{path}: it has several snapshots of {TOKEN}, by column '{column}'. Write each to a file of its own."
    )


@pytest.mark.parametrize(
    "text", ["1.5e0", "0x", "0x" + "f" * 65, "1e78", "1e-1", "-1", "-0x1", "1e999", "", "x"]
)
def test_a_raw_amount_that_is_no_whole_number_of_256_bits_is_a_bad_row(text):
    tokens = SimpleNamespace(unit="raw", decimals=lambda _: 0)
    assert snapshots._digits(text, tokens, TOKEN, by_id=False) == (
        None,
        "not a whole number from 0 to 2**256-1",
    )


@pytest.mark.slow
def test_a_hexadecimal_balance_needs_the_smallest_unit(data, tmp_path):
    path = holders(
        tmp_path / "h.csv",
        (wallet(1), "0xde0b6b3a7640000"),
        (wallet(2), "1"),
        header="address,balance",
    )
    report = take(data, path, options=options())
    why = "balance is hexadecimal, as amounts in the smallest unit are: add --unit raw"
    assert [(bad.row, bad.why) for bad in report.bad] == [(1, why)]
    take(data, path, options=options(unit="raw"))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 10**18, (TOKEN, wallet(2)): 1}


@pytest.mark.slow
def test_the_symbol_of_a_token_that_is_given_may_be_in_the_name_of_a_folder(data, tmp_path):
    for balance, name in enumerate(
        ("ABC/2024.csv", "holders_xyz_2024.csv", "ABC/xyz_2024.csv"), start=1
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        holders(tmp_path / name, (wallet(1), str(balance)), header="address,balance")
    named = SnapshotOptions(
        tokens={"abc": wallet(1000), "xyz": wallet(2000)}, decimals=0, block=100
    )
    take(data, tmp_path / "ABC" / "2024.csv", options=named)
    take(data, tmp_path / "holders_xyz_2024.csv", options=named)
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(1000), wallet(1)): 1, (wallet(2000), wallet(1)): 2}
    with pytest.raises(IngestError, match="which token do these wallets hold"):
        take(data, tmp_path / "ABC" / "xyz_2024.csv", options=named)


def test_without_decimals_a_balance_in_units_is_refused_and_says_what_helps(data, tmp_path):
    path = holders(tmp_path / "export.csv", (wallet(1), "1.5", "No"))
    with pytest.raises(
        IngestError, match=r"decimals of 0x.*3e8 are unknown.*--decimals N, or --unit raw"
    ):
        take(data, path, options=options(None))


@pytest.mark.slow
def test_decimals_that_are_given_are_the_tokens_from_then_on(data, tmp_path):
    path = holders(tmp_path / "export.csv", (wallet(1), "1.5", "No"))
    take(data, path, options=options(9, block=100))
    newer = holders(tmp_path / "newer.csv", (wallet(1), "2.5", "No"))
    take(data, newer, options=options(None, block=101))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 2_500_000_000}
        assert tables.contract(TOKEN)["decimals"] == 9


def test_decimals_that_are_given_change_none_that_are_known(data, tmp_path):
    path = holders(tmp_path / "export-tokenholders-usdc.csv", (wallet(1), "1.5", "No"))
    take(data, path, options=options(9, token=None))
    with Tables(data) as tables:
        assert tables.contract("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48")["decimals"] == 6


def test_a_symbol_in_the_files_name_finds_the_token_that_is_known_by_it(data, tmp_path):
    path = holders(tmp_path / "export-tokenholders-usdc.csv", (wallet(1), "1.5", "No"))
    take(data, path, options=options(None, token=None))
    with Tables(data) as tables:
        assert tables.balances() == {
            ("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", wallet(1)): 1_500_000
        }


def test_an_address_in_the_files_name_is_the_token(data, tmp_path):
    path = holders(
        tmp_path / f"export-tokenholders-for-contract-{TOKEN}.csv", (wallet(1), "2", "No")
    )
    take(data, path, options=options(0, token=None))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 2}


def test_one_token_that_is_given_is_not_taken_for_those_of_several_symbols(data, tmp_path):
    rows = [(wallet(1), "7", ""), (wallet(2), "5", "Abc"), (wallet(3), "4", "ABC")]
    path = holders(tmp_path / "h.csv", *rows, header="holder,balance,symbol")
    take(data, path, options=options(0))
    with Tables(data) as tables:
        assert tables.balances() == {
            (TOKEN, wallet(n)): held for n, held in ((1, 7), (2, 5), (3, 4))
        }
    holders(path, *rows, (wallet(4), "3", "xyz"), header="holder,balance,symbol")
    with pytest.raises(IngestError) as caught:
        take(data, path, options=options(0))
    assert str(caught.value) == (
        f"{path}: its rows are of 'abc' and of 'xyz', and both would be {TOKEN}. Name each token: --token abc=0x..."
    )


def test_each_symbol_that_is_given_the_same_address_is_believed_as_of_a_token_that_was_renamed(
    data, tmp_path
):
    rows = [(wallet(1), "7", "MATIC"), (wallet(2), "5", "POL")]
    path = holders(tmp_path / "h.csv", *rows, header="holder,balance,symbol")
    each = {"matic": TOKEN, "pol": TOKEN}
    for tokens, missing in (
        ({"": TOKEN, "matic": TOKEN}, "pol"),
        ({"": TOKEN, "pol": TOKEN}, "matic"),
    ):
        with pytest.raises(IngestError, match=rf"Name each token: --token {missing}=0x"):
            take(data, path, options=replace(options(0), tokens=tokens))
    take(data, path, options=replace(options(0), tokens=each))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 7, (TOKEN, wallet(2)): 5}


def test_a_symbol_that_nobody_bears_is_refused_and_says_how_to_name_the_token(data, tmp_path):
    path = holders(tmp_path / "export-nosuch.csv", (wallet(1), "2", "No"))
    says = r"No known contract has the symbol 'nosuch'.*--token nosuch=0x"
    with pytest.raises(IngestError, match=says):
        take(data, path, options=options(token=None))


def test_a_row_per_token_id_makes_owners(data, tmp_path):
    rows = {
        "chain_id": [1, 1, 1],
        "contract_address": [TOKEN] * 3,
        "owner": [wallet(1), wallet(1), wallet(2)],
        "token_id": ["0", str(2**256 - 1), "7"],
        "snapshot_unix": [1_746_448_100] * 3,
    }
    pq.write_table(pa.table(rows), tmp_path / "nfts.parquet")
    report = take(data, tmp_path / "nfts.parquet", chain=None)
    assert (
        f"  holders of {TOKEN}, at 2025-05-05 12:28:20 UTC, block 0 of the data" in report.lines()
    )
    with Tables(data) as tables:
        assert tables.owners() == {
            (TOKEN, 0): wallet(1),
            (TOKEN, 2**256 - 1): wallet(1),
            (TOKEN, 7): wallet(2),
        }
        assert tables.balances() == {(TOKEN, wallet(1)): 2, (TOKEN, wallet(2)): 1}
        assert tables.generation.chains[0].last_timestamp == 1_746_448_100
        assert tables.contract(TOKEN)["standard"] == "ERC721"


def test_transfers_after_a_snapshot_are_added_to_it_and_those_before_are_in_it(data, tmp_path, log):
    path = holders(
        tmp_path / "h.csv", (wallet(1), "100"), (wallet(2), "50"), header="address,balance"
    )
    take(data, path, options=options(0, block=100))
    later = write_parquet(
        tmp_path / "t.parquet",
        [
            log(9, 1, 70, block=100),
            log(1, 2, 30, block=101),
            log(1, 3, 30, block=103),
            log(0, 3, 30, block=104),
        ],
    )
    take(data, later)
    with Tables(data) as tables:
        held = {holder: amount for (_, holder), amount in tables.balances().items()}
        assert len(tables.transfers()) == 4
    assert held == {wallet(0): -30, wallet(1): 40, wallet(2): 80, wallet(3): 60}


@pytest.mark.slow
def test_before_its_snapshot_a_contracts_balances_are_refused_and_never_nobodys(
    added, tmp_path, log
):
    logs = [
        log(0, 1, 10**18, block=90),
        log(1, 2, 10**18, block=100),
        *(log(0, 1, 5, block=91, contract=900) for _ in range(9)),
    ]
    take(added, write_parquet(tmp_path / "t.parquet", logs))
    path = holders(tmp_path / "h.csv", (wallet(3), "1", "No"), (wallet(4), "2", "No"))
    report = take(added, path, options=options(block=99))
    assert report.odd["before_snapshot"] == 1
    assert (
        "  1 transfer up to the block of its contract's holder snapshot: balances begin with the snapshot"
        in report.lines()
    )
    later = take(
        added, write_parquet(tmp_path / "u.parquet", [log(4, 2, 1, block=n) for n in (101, 102)])
    )
    # Of a contract that is derived again alone it is said again.
    assert (later.rebuilt, later.odd.get("before_snapshot")) == (None, 1)
    for again in (False, True):
        if again:
            compact(added)
        with pytest.raises(
            InvalidSegment, match=r"Block 98 is before the balances of .* of block 99\."
        ):
            held(added, 98)
        assert held(added, 99) == {wallet(3), wallet(4)}
    remove("h.csv", added)
    assert held(added, 98) == {wallet(1)}


@pytest.mark.slow
def test_amounts_are_no_token_ids_and_token_ids_no_amounts(data, tmp_path, log):
    kinds = tmp_path / "contracts.csv"
    kinds.write_text(
        f"address,is_erc20,is_erc721\n{wallet(901)},false,true\n{wallet(902)},true,false\n"
    )
    take(data, kinds)
    amounts = holders(
        tmp_path / "amounts.csv", (wallet(1), "55"), (wallet(2), "3"), header="address,balance"
    )
    ids = holders(
        tmp_path / "ids.csv", (wallet(1), "7"), (wallet(2), "8"), header="address,token_id"
    )
    stated = "If that is not what it is, ingest a file with address, is_erc20, is_erc721."
    column = "A snapshot of an NFT collection needs a column of token ids."
    for path, token, says in (
        (
            amounts,
            901,
            f"these are amounts of {wallet(901)}, which is ERC721 as a file says. {column} {stated}",
        ),
        (
            ids,
            902,
            f"these are token ids of {wallet(902)}, which is ERC20 as a file says. {stated}",
        ),
    ):
        with pytest.raises(IngestError) as caught:
            take(data, path, options=options(None, token=wallet(token), unit="raw"))
        assert str(caught.value) == f"{path}: {says}"
    # What comes later may show what a contract is.
    take(data, amounts, options=options(None, unit="raw"))
    moved = write_parquet(
        tmp_path / "t.parquet", [log(0, n, n, block=200 + n) for n in range(1, 6)]
    )
    with pytest.raises(IngestError) as caught:
        take(data, moved)
    assert str(caught.value) == (
        f"{amounts}: these are amounts of {TOKEN}, which is ERC721 by its transfers. {column} {stated}"
    )
    kinds.write_text(f"address,is_erc20,is_erc721\n{TOKEN},true,false\n")
    take(data, kinds, moved)
    with Tables(data) as tables:
        assert tables.contract(TOKEN)["standard"] == "ERC20"
        assert tables.balances()[TOKEN, wallet(1)] == 56


def held(data, block):
    dataset = open_dataset(data)
    try:
        asked = language.parse(
            {"filters": {"token": {"token": TOKEN, "unit": "raw"}, "asOf": block}}
        )
        found = dataset.ask(language.compile(language.resolve(asked, dataset, {}.get)), limit=10)
        with contextlib.closing(found.stored):
            return set(found.rows["address"].to_pylist())
    finally:
        dataset.close()


def test_a_snapshot_that_was_written_again_with_the_same_rows_is_the_file_that_it_was(
    data, tmp_path
):
    path = holders(tmp_path / "list.csv", (wallet(1), "100"), header="address,balance")
    other = holders(tmp_path / "other.csv", (wallet(1), "100"), header="address,balance")
    take(data, path, options=options(0))
    # The same bytes, of another token.
    take(data, other, options=options(0, token=wallet(1001)))
    os.utime(path, (1, 1))
    assert list(take(data, path, options=options(0)).skipped) == [str(path)]
    os.utime(path, (2, 2))
    # Corrected: its block was an earlier one.
    take(data, path, options=options(0, block=50))
    with Tables(data) as tables:
        assert {row[2] for row in tables.history()} == {50, 100}
    remove(str(path), data)
    with Tables(data) as tables:
        assert tables.balances() == {(wallet(1001), wallet(1)): 100}


def test_a_newer_snapshot_stands_in_the_place_of_the_one_before(data, tmp_path):
    for number, balance in enumerate(("100", "90")):
        path = holders(
            tmp_path / f"{number}.csv", (wallet(1 + number), balance), header="address,balance"
        )
        take(data, path, options=options(0, block=100 + number))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(2)): 90}


@pytest.mark.slow
@pytest.mark.parametrize("names", [("a", "b"), pytest.param(("b", "a"), marks=pytest.mark.slow)])
def test_an_older_snapshot_changes_nothing_of_a_newer_one_in_whatever_order_they_come(
    data, tmp_path, names
):
    header = "contract_address,holder,balance,block_number"
    newer = holders(tmp_path / f"{names[0]}.csv", (TOKEN, wallet(1), "200", "2000"), header=header)
    older = [
        (TOKEN, wallet(1), "100", "1000"),
        (TOKEN, wallet(2), "5", "1000"),
        (wallet(1001), wallet(2), "7", "1000"),
    ]
    holders(tmp_path / f"{names[1]}.csv", *older, header=header)
    report = take(data, tmp_path, options=options(None, token=None, block=None, unit="raw"))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 200, (wallet(1001), wallet(2)): 7}
    left = "older"
    assert report.odd.get(left, 0) == (2 if names == ("a", "b") else 0)
    rows = [(TOKEN, wallet(number), "9", "1500") for number in (3, 4)]
    again = holders(tmp_path / "again.csv", *rows, header=header)
    report = take(data, again, options=options(None, token=None, block=None, unit="raw"))
    assert report.odd[left] == 2
    take(
        data,
        holders(newer.with_name("corrected.csv"), (TOKEN, wallet(1), "201", "2000"), header=header),
        options=options(None, token=None, block=None, unit="raw"),
    )
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 201, (wallet(1001), wallet(2)): 7}


@pytest.mark.parametrize("first", ["january", "february"])
def test_of_two_dated_snapshots_of_a_block_the_later_counts_in_whatever_order_they_come(
    data, tmp_path, first
):
    days = {"january": (wallet(1), "1", 1_738_281_600), "february": (wallet(2), "2", 1_740_700_800)}
    for name in sorted(days, reverse=first == "january"):
        *row, seconds = days[name]
        path = holders(tmp_path / f"{name}.csv", row, header="address,balance")
        report = take(data, path, options=options(0, block=None, date=seconds))
    left = "older"
    assert report.odd.get(left, 0) == (first == "february")
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(2)): 2}


def test_a_block_that_snapshots_of_several_times_share_has_no_time(data, tmp_path):
    times = 1_616_284_799, 1_746_489_599
    for number, seconds in enumerate(times):
        path = holders(tmp_path / f"{number}.csv", (wallet(number), "5"), header="address,balance")
        given = options(0, token=wallet(1000 + number), block=None, date=seconds)
        take(data, path, options=given)
        with Tables(data) as tables:
            blocks = tables.rows("SELECT block, timestamp FROM blocks")
        assert blocks == [(0, None if number else seconds)]
    with pytest.raises(InvalidSegment, match="The data has no block times for ethereum"):
        held(data, "2021-03-20")


@pytest.mark.parametrize("last", ["dated", "numbered"])
def test_a_dated_snapshot_has_no_place_beside_the_block_of_another_that_has_no_time(
    data, tmp_path, last
):
    dated = holders(tmp_path / "dated.csv", (wallet(1), "5"), header="address,balance")
    numbered = holders(tmp_path / "numbered.csv", (wallet(2), "5"), header="address,balance")
    both = [
        (dated, options(0, token=wallet(1001), block=None, date=1_746_489_599)),
        (numbered, options(0, token=wallet(1002))),
    ]
    (earlier, its), (path, given) = both if last == "numbered" else reversed(both)
    take(data, earlier, options=its)
    with pytest.raises(IngestError, match=r"dated\.csv.* no time, so its block"):
        take(data, path, options=given)
    blocks = tmp_path / "blocks.csv"
    blocks.write_text("number,timestamp\n100,1616284799\n")
    take(data, blocks)
    take(data, path, options=given)
    with Tables(data) as tables:
        assert tables.rows("SELECT block, timestamp FROM blocks") == [(100, 1_616_284_799)]


@pytest.mark.parametrize("written", ["block", "date"])
def test_parts_of_one_snapshot_in_several_files_are_refused_since_the_last_would_stand_for_all(
    data, tmp_path, written
):
    parts = [
        holders(tmp_path / f"page{n}.csv", (wallet(n), n), header="address,balance") for n in (1, 2)
    ]
    given = options(0, **{"block": None, written: 1_600_000_100})
    with pytest.raises(IngestError) as caught:
        take(data, *parts, options=given)
    assert str(caught.value) == (
        f"{parts[1]}: its holders of {TOKEN} are of the same moment as those of {parts[0]}, and would take their "
        "place. Write the parts of one snapshot to one file, and ingest two snapshots one after the other."
    )
    whole = holders(
        tmp_path / "whole.csv", *((wallet(n), n) for n in (1, 2)), header="address,balance"
    )
    take(data, whole, options=given)
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 1, (TOKEN, wallet(2)): 2}


def test_of_a_wallets_balances_at_several_blocks_the_last_one_counts_also_where_it_is_zero(
    data, tmp_path
):
    rows = [
        (wallet(1), "100", "1000"),
        (wallet(1), "200", "2000"),
        (wallet(2), "8", "1000"),
        (wallet(2), "0", "2000"),
        (wallet(3), "3", "1000"),
        (wallet(4), "4", "-1"),
        (wallet(5), "5", "soon"),
    ]
    path = holders(tmp_path / "h.csv", *rows, header="holder,balance,block_number")
    report = take(data, path, options=options(0, block=None))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 200, (TOKEN, wallet(3)): 3}
        assert {row[2:4] for row in tables.history()} == {(2000, 2**62)}
    assert report.odd["outdated"] == 2
    assert report.odd["zero_balances"] == 1
    assert [(b.row, b.why) for b in report.bad] == [
        (6, "block number is not a whole number"),
        (7, "block number is not a whole number"),
    ]


def test_two_balances_of_one_wallet_in_a_snapshot_are_not_added_and_the_second_is_listed(
    data, tmp_path
):
    path = holders(
        tmp_path / "h.csv",
        (wallet(1), "100"),
        (wallet(1), "5"),
        (wallet(1), "100"),
        (wallet(2), "1"),
        header="address,balance",
    )
    report = take(data, path, options=options(0, block=7))
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 100, (TOKEN, wallet(2)): 1}
    assert [(b.row, b.why, b.value) for b in report.bad] == [
        (2, "the file has another balance of this wallet", "5")
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decimals": 256}, "decimals: 256 is out of range. Allowed: 0 to 255."),
        ({"decimals": -1}, "decimals: -1 is out of range. Allowed: 0 to 255."),
        ({"block": -5}, "block: -5 is out of range. Allowed: 0 to 4,611,686,018,427,387,903."),
        (
            {"block": 2**62},
            f"block: {2**62} is out of range. Allowed: 0 to 4,611,686,018,427,387,903.",
        ),
    ],
)
def test_decimals_and_blocks_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValidationError) as caught:
        SnapshotOptions(**given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "moments", [("snapshot_block", 1000, 2000), ("snapshot_date", "2024-01-01", "2024-02-01")]
)
@pytest.mark.parametrize("thing", ["balance", "token_id"])
@pytest.mark.parametrize("given", [{}, {"block": 5000}, {"date": 1_706_745_600}])
def test_several_snapshots_in_a_file_are_refused_since_who_left_would_be_a_holder_still(
    data, tmp_path, moments, thing, given
):
    column, first, last = moments
    rows = [
        (TOKEN, wallet(1), "7", first),
        (TOKEN, wallet(2), "5", first),
        (TOKEN, wallet(2), "7", last),
        (TOKEN, wallet(2), "5", last),
    ]
    path = holders(tmp_path / "h.csv", *rows, header=f"contract_address,holder,{thing},{column}")
    with pytest.raises(IngestError) as caught:
        take(data, path, options=SnapshotOptions(unit="raw", **given))
    assert str(caught.value) == (
        f"{path}: it has several snapshots of {TOKEN}, by column '{column}'. Write each to a file of its own."
    )


@pytest.mark.parametrize(
    ("written", "date_format"),
    [("2024-01-31", None), ("2024/1/31", None), ("31/01/2024", "%d/%m/%Y")],
)
def test_a_date_in_a_file_is_its_end_as_one_that_is_given_is(data, tmp_path, written, date_format):
    path = holders(
        tmp_path / "h.csv",
        (wallet(1), "7", written),
        (wallet(2), "5", ""),
        header="holder,balance,snapshot_date",
    )
    report = take(data, path, options=options(0, block=None, date_format=date_format))
    assert (
        f"  holders of {TOKEN}, 0 decimals, at 2024-01-31 23:59:59 UTC, block 0 of the data"
        in report.lines()
    )
    assert [(bad.row, bad.why, bad.value) for bad in report.bad] == [
        (2, "time of the snapshot is not a time", "")
    ]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (
            "1700000000000",
            "row 1: snapshot_unix is '1700000000000', which is no time from 2001 to 2199: write seconds since 1970",
        ),
        (
            "20240131",
            "row 1: snapshot_unix is '20240131', which is no time from 2001 to 2199: write seconds since 1970",
        ),
        (
            "31.01.2024",
            "Column 'snapshot_unix' has no time that nbext reads, but '31.01.2024'. Give it with --block N",
        ),
    ],
)
def test_a_time_that_is_none_is_shown(data, tmp_path, written, says):
    path = holders(
        tmp_path / "h.csv", (wallet(1), "7", written), header="holder,balance,snapshot_unix"
    )
    with pytest.raises(IngestError) as caught:
        take(data, path, options=options(0, block=None))
    assert says in str(caught.value)


@pytest.mark.parametrize("column", ["balance", "quantity", "amount"])
def test_holders_of_several_of_a_token_id_are_not_taken_for_holders_of_one(data, tmp_path, column):
    header = f"contract_address,owner,token_id,{column}"
    path = holders(
        tmp_path / "h.csv",
        (TOKEN, wallet(1), "7", "1"),
        (TOKEN, wallet(2), "7", "10"),
        header=header,
    )
    with pytest.raises(IngestError) as caught:
        take(data, path, options=options(token=None))
    assert str(caught.value) == (
        f"{path}, row 2: {column} is '10'. Of a snapshot by token id, nbext reads holders of one each: ingest the "
        "transfers of an ERC1155, or leave the column out if it is no count."
    )


@pytest.mark.slow
def test_of_an_erc1155s_token_id_several_wallets_are_holders_and_of_any_other_the_first(
    data, tmp_path
):
    path = holders(
        tmp_path / "h.csv",
        (TOKEN, wallet(1), "7"),
        (TOKEN, wallet(2), "7"),
        header="contract_address,owner,token_id",
    )
    report = take(data, path, options=options(token=None))
    why = "the file has another owner of this token id; of an ERC1155, ingest metadata that says so first"
    assert [(bad.row, bad.why, bad.value) for bad in report.bad] == [(2, why, wallet(2))]
    with Tables(data) as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 1}
    (tmp_path / "tokens.csv").write_text(
        f"address,symbol,name,decimals,standard\n{TOKEN},P,P,,ERC1155\n"
    )
    take(tmp_path / "other", path, tmp_path / "tokens.csv", options=options(token=None))
    with Tables(tmp_path / "other") as tables:
        assert tables.balances() == {(TOKEN, wallet(1)): 1, (TOKEN, wallet(2)): 1}


@pytest.mark.slow
def test_two_snapshots_of_equal_bytes_are_of_the_two_tokens_that_their_files_are_named_for(
    data, tmp_path
):
    for name in ("uni", "dai"):
        path = tmp_path / f"export-tokenholders-{name}.csv"
        path.write_text(f"HolderAddress,Balance\n{wallet(1)},1\n")
        assert take(data, path, options=SnapshotOptions(block=5)).skipped == {}
    with Tables(data) as tables:
        assert sorted(tables.balances().values()) == [10**18, 10**18]
    assert list(take(data, path, options=SnapshotOptions(block=5)).skipped) == [str(path)]
