"""The sample's tables are what ingest makes of the same transfers: in SQL there, in Python here."""

from __future__ import annotations

import duckdb
import pytest

from nbext.engine.ingest import ingest
from nbext.engine.sample.examples import TRANSFER_COLUMNS, write_csv, write_example_files
from nbext.engine.schema import TABLES
from tests.sample_generator.diary import by_key
from tests.sample_generator.export import etl_rows, etl_tokens
from tests.sample_generator.slots import PACES, timestamp
from tests.sample_generator.tables import Prepared, arrow, shipped
from tests.sample_generator.transfers import logs

# What only the sample's author knows, and no exporter writes: which wallets are contracts, what is spam.
UNTOLD = {"wallets": {"is_contract"}, "contracts": {"spam", "verified"}}
# ethereum-etl exports no ERC1155 transfers.
EXPORTED = [log for log in logs() if log.transfer.contract.standard != "ERC1155"]


def write_export(folder):
    for chain in PACES:
        own = [log for log in EXPORTED if log.transfer.contract.chain == chain]
        number = own[0].transfer.contract.chain_id
        rows = [(*row, number) for row in etl_rows(own)]
        times = sorted({(log.block, timestamp(log.transfer.slot), number) for log in own})
        write_csv(folder / f"{chain} transfers.csv", (*TRANSFER_COLUMNS, "chain_id"), rows)
        write_csv(folder / f"{chain} blocks.csv", ("number", "timestamp", "chain_id"), times)
    contracts = by_key().values()
    tokens = [(*row, of.chain_id, of.standard) for row, of in zip(etl_tokens(contracts), contracts, strict=True)]
    write_csv(folder / "tokens.csv", ("address", "symbol", "name", "decimals", "chain_id", "standard"), tokens)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_export(folder)
    data_dir = tmp_path_factory.mktemp("data")
    report = ingest([folder], None, data_dir)
    with duckdb.connect(str(data_dir / "generations" / report.generation / "tables.duckdb"), read_only=True) as tables:
        yield tables


@pytest.fixture(scope="module")
def prepared():
    return Prepared(EXPORTED)


@pytest.mark.parametrize("name", [name for name in TABLES if name != "contracts"])
def test_ingest_makes_the_same_table_of_the_same_transfers(ingested, prepared, name):
    columns = [column for column in shipped(name) if column not in UNTOLD.get(name, ())]
    expected = arrow(name, prepared.rows(name)).select(columns).to_pylist()
    found = ingested.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
    assert found == [tuple(row.values()) for row in expected]


def test_ingest_knows_the_same_of_each_contract_that_has_transfers(ingested, prepared):
    columns = [column for column in shipped("contracts") if column not in UNTOLD["contracts"]]
    expected = arrow("contracts", prepared.rows("contracts")).select(columns).to_pylist()
    found = ingested.execute(f"SELECT {', '.join(columns)} FROM contracts WHERE transfers > 0").fetchall()
    assert found == [tuple(row.values()) for row in expected if row["transfers"]]


def test_the_example_files_are_taken_in_and_their_flaws_reported(tmp_path):
    write_example_files(tmp_path / "files")
    paths = [tmp_path / "files" / "ethereum", tmp_path / "files" / "token_list.json"]
    report = ingest(paths, "ethereum", tmp_path / "data")
    assert [(row.row, row.value) for row in report.bad] == [(3_606, "1e18")]
    assert (report.new, report.odd["duplicates"], report.refused) == (3_604, 1, [])


def test_the_example_files_of_cryo_name_their_chain_themselves(tmp_path):
    write_example_files(tmp_path / "files")
    report = ingest([tmp_path / "files" / "base"], None, tmp_path / "data")
    assert {file.chain for file in report.files} == {"base"}
    assert (report.bad, report.refused, report.odd["duplicates"]) == ([], [], 0)
