"""The example files have the forms that exporters write, and hold what their description says."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbext.core.addresses import checksummed
from notebooks.example_files import write_example_files
from tests.sample_generator.diary import by_key
from tests.shared_data import shared_data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = write_example_files(tmp_path_factory.mktemp("examples") / "new folder")
    return {path.name.split("__")[-2 if "__" in path.name else 0]: path for path in paths}


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_transfers_have_the_columns_of_ethereum_etl(files):
    found = rows(files["token_transfers.csv"])
    assert (
        list(found[0])
        == pq.read_schema(shared_data("transfers/eth_token_transfers_12600000.parquet")).names
    )


def test_transfers_have_a_repeated_row_a_bad_value_and_an_address_in_mixed_case(files):
    found = rows(files["token_transfers.csv"])
    keys = [(row["transaction_hash"], row["log_index"]) for row in found]
    assert (len(keys), len(set(keys))) == (3_606, 3_605)
    assert [number for number, row in enumerate(found) if not row["value"].isdigit()] == [
        len(found) - 1
    ]
    assert (
        found[0]["to_address"]
        == checksummed(found[0]["to_address"])
        != found[0]["to_address"].lower()
    )


def test_every_transfer_has_a_block_with_a_time(files):
    numbers = {row["number"] for row in rows(files["blocks.csv"])}
    assert {row["block_number"] for row in rows(files["token_transfers.csv"])} == numbers


def test_the_tokens_file_names_each_contract_of_the_transfers(files):
    found = rows(files["tokens.csv"])
    assert {row["address"] for row in found} == {
        row["token_address"] for row in rows(files["token_transfers.csv"])
    }
    assert [(row["symbol"], row["decimals"]) for row in found] == [
        ("UNI", "18"),
        ("LINK", "18"),
        ("BAYC", ""),
        ("AZUKI", ""),
    ]


def test_cryo_files_hold_binary_addresses_and_the_same_value_three_times(files):
    table = pq.read_table(files["erc20_transfers"])
    assert {table.schema.field(name).type for name in ("erc20", "from_address", "to_address")} == {
        pa.binary()
    }
    values = [int(text) for text in table["value_string"].to_pylist()]
    assert [int.from_bytes(value, "big") for value in table["value_binary"].to_pylist()] == values
    assert [float(value) for value in values] == table["value_f64"].to_pylist()
    contracts = {bytes.fromhex(by_key()[key].address[2:]) for key in ("base:USDC", "base:DEGEN")}
    assert set(table["erc20"].to_pylist()) == contracts


def test_a_cryo_file_of_an_nft_names_its_contract_erc20_as_cryo_does(files):
    table = pq.read_table(files["erc721_transfers"])
    assert set(table["erc20"].to_pylist()) == {bytes.fromhex(by_key()["base:OKGO"].address[2:])}
    assert {"token_id_string", "token_id_binary"} < set(table.column_names)


def test_the_token_list_is_a_token_list(files):
    document = json.loads(files["token_list.json"].read_text("utf-8"))
    schema = json.loads(shared_data("metadata/uniswap_tokenlist.schema.json").read_text("utf-8"))
    assert set(schema["required"]) <= set(document) <= set(schema["properties"])
    assert [token["symbol"] for token in document["tokens"]] == ["UNI", "LINK", "USDC", "DEGEN"]
    assert document["version"] == {"major": 1, "minor": 0, "patch": 0}
    needed = set(schema["definitions"]["TokenInfo"]["required"])
    assert all(set(token) == needed for token in document["tokens"])


def test_writing_again_writes_the_same_bytes(files):
    folder = files["token_list.json"].parent
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    write_example_files(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
