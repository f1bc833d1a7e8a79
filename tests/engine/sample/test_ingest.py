"""The sample's shipped tables are what ingest makes of the same transfers in exporters' files."""

from __future__ import annotations

import duckdb
import pyarrow.parquet as pq
import pytest

from nbext.engine.ingest import ingest
from nbext.engine.sample.unpack import PREPARED
from nbext.engine.schema import TABLES
from notebooks.example_files import write_example_files
from tests.sample_generator.export import write_export
from tests.sample_generator.prepare import shipped

pytestmark = pytest.mark.slow
# What only the sample's author knows, and no exporter writes: which wallets are contracts, what is spam.
UNTOLD = {"wallets": {"is_contract"}, "contracts": {"spam", "verified"}}


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_export(folder)
    data_dir = tmp_path_factory.mktemp("data")
    report = ingest([folder], None, data_dir)
    with duckdb.connect(
        str(data_dir / "generations" / report.generation / "tables.duckdb"), read_only=True
    ) as tables:
        yield tables


def columns_of(name):
    return [column for column in shipped(name) if column not in UNTOLD.get(name, ())]


@pytest.mark.parametrize("name", [name for name in TABLES if name != "contracts"])
def test_ingest_makes_the_same_table_of_the_same_transfers(ingested, name):
    expected = pq.read_table(PREPARED / f"{name}.parquet", columns=columns_of(name)).to_pylist()
    found = ingested.execute(f"SELECT {', '.join(columns_of(name))} FROM {name}").fetchall()
    assert found == [tuple(row.values()) for row in expected]


def test_ingest_knows_the_same_of_each_contract_that_has_transfers(ingested):
    # But their supply, which the sample states: to one history a mint before its first file may be missing.
    columns = [column for column in columns_of("contracts") if column != "total_supply"]
    expected = pq.read_table(PREPARED / "contracts.parquet", columns=columns).to_pylist()
    found = ingested.execute(
        f"SELECT {', '.join(columns)} FROM contracts WHERE transfers > 0"
    ).fetchall()
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
    assert {file.chain_name for file in report.files} == {"base"}
    assert (report.bad, report.refused, report.odd["duplicates"]) == ([], [], 0)
