"""Ingest on a real Spark cluster: the same tables as DuckDB's, also after a worker was killed, or nothing at all."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from nbext.engine import storage
from nbext.engine.ingest import ingest as on_one_machine
from nbext.engine.ingest.cluster.files import Listed
from nbext.engine.ingest.cluster.run import _history, by_value, ingest
from nbext.engine.ingest.cluster.stage import SparkStage, _parsed, translated
from nbext.engine.layers import attach
from nbext.engine.open import Newest, open_dataset
from nbext.engine.schema import LIMBS, SQL_TYPES, TABLES
from nbext.engine.spark.place import Place, generations
from nbext.errors import ConfigError, IngestError, StorageError
from tests.engine import forms
from tests.engine.cluster import cluster, kill_a_worker

TRANSFER = (
    "token_address",
    "from_address",
    "to_address",
    "value",
    "transaction_hash",
    "log_index",
    "block_number",
)
SINGLE = (
    "contract_address",
    "from",
    "to",
    "id",
    "value",
    "evt_tx_hash",
    "evt_index",
    "evt_block_number",
    "evt_block_time",
)
CONF = {"spark.sql.shuffle.partitions": "3"}


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def raw(folder: Path) -> Path:
    """Write transfers of all standards, in CSV, Parquet and NDJSON, with rows twice, bad rows, facts and times."""
    folder.mkdir()
    chance = random.Random(7)

    def address():
        return f"0x{chance.getrandbits(160):040x}"

    def transaction():
        return f"0x{chance.getrandbits(256):064x}"

    wallets = [*(address() for _ in range(40)), "0x" + "0" * 40]
    coins, nfts, many = ([address() for _ in range(n)] for n in (4, 3, 2))
    rows = []
    for _ in range(3000):
        contract = chance.choice(coins + nfts)
        amounts = [0, chance.getrandbits(chance.randint(1, 255)), chance.randint(0, 1000) * 10**18]
        value = chance.choice(amounts) if contract in coins else chance.randint(0, 30)
        rows.append(
            [
                contract,
                chance.choice(wallets),
                chance.choice(wallets),
                str(value),
                transaction(),
                chance.randint(0, 300),
                1000 + chance.randint(0, 400),
            ]
        )
    rows += chance.sample(rows, 20)
    bad = [
        [coins[0], "0xzz", wallets[0], "1", transaction(), 1, 1000],
        [coins[0], wallets[1], wallets[0], "1.5", transaction(), 1, 1000],
        [coins[0], wallets[1], "0x" + "ab" * 20, "-1", transaction(), 1, 1000],
        [coins[0], wallets[1]],
        [coins[0], "0xyy", wallets[0], "1", transaction(), 1, 1000],
    ]
    write(
        folder / "transfers_a.csv",
        TRANSFER,
        [
            [cell.upper().replace("0X", "0x") if isinstance(cell, str) else cell for cell in row]
            for row in rows[:1500]
        ],
    )
    # A column that nobody reads, and a row that ends before it.
    write(
        folder / "transfers_b.csv",
        (*TRANSFER, "note"),
        [[*row, "x"] for row in rows[1500:2500] + bad[:3]]
        + [bad[3], [*rows[0][:4], transaction(), 7, 1001]],
    )
    with duckdb.connect() as connection:
        connection.register(
            "more",
            pa.table(
                {
                    name: pa.array([str(row[place]) for row in [*rows[2000:], bad[4]]])
                    for place, name in enumerate(TRANSFER)
                }
            ),
        )
        connection.execute(
            "COPY (SELECT * REPLACE (log_index::INTEGER AS log_index) FROM more) "
            f"TO '{folder / 'c.parquet'}'"
        )
        connection.execute(
            f"COPY (SELECT * FROM more LIMIT 50) TO '{folder / 'd.ndjson'}' (FORMAT json)"
        )
    write(
        folder / "tokens.csv",
        ("address", "symbol", "name", "decimals", "total_supply", "deployed_block_number"),
        [
            [coins[0], "AAA", 'A, "quoted"\nand broken', 18, 10**20, 1000],
            [coins[1], "BBB", "", "", "", 1000],
            # What of it was minted is its supply.
            [nfts[0], "NFT", "an NFT", 0, "", 1000],
            ["nonsense", "X", "X", 1, 1, 1],
        ],
    )
    # Of two facts that of the later file counts, not that of the larger one.
    write(
        folder / "tokens_later.csv",
        ("address", "symbol", "name", "decimals", "total_supply"),
        [[coins[1], "BBB2", "later", 6, ""]],
    )
    write(
        folder / "blocks.csv",
        ("number", "timestamp", "hash"),
        [
            [block, 1_700_000_000 + 12 * block, f"0x{block:064X}" if block % 7 else ""]
            for block in range(1000, 1401)
            if not 1100 < block < 1200
        ],
    )
    write(
        folder / "single.csv",
        SINGLE,
        [
            [
                chance.choice(many),
                chance.choice(wallets),
                chance.choice(wallets),
                chance.randint(0, 5),
                chance.randint(0, 9),
                transaction(),
                log,
                block,
                f"{time_of(block):%Y-%m-%d %H:%M:%S}.000 UTC",
            ]
            for log in range(800)
            for block in [1000 + chance.randint(0, 400)]
        ],
    )
    return folder


def time_of(block):
    return datetime.fromtimestamp(1_700_000_000 + 12 * block, UTC)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as url:
        yield folder, url


@pytest.mark.spark
def test_every_table_is_that_of_one_machine_though_a_worker_was_killed_and_services_see_it(
    machines, tmp_path, monkeypatch
):
    folder, master = machines
    # The popular contract has more rows: its wallets are followed share by share.
    monkeypatch.setattr(SparkStage, "bucket_rows", 500)
    files, url = raw(tmp_path / "raw"), f"file://{tmp_path}/there"
    expected = on_one_machine([files], "ethereum", tmp_path / "here")
    steps = []

    def progress(step, done):
        if step == "merging" and step not in steps:
            kill_a_worker(folder)
        steps.append(step)

    report = ingest([str(files)], "ethereum", url, master, CONF, progress=progress)
    assert "merging" in steps
    served = storage.current_generation(tmp_path / "here")
    (made,) = [path for path in (tmp_path / "there").iterdir() if path.is_dir()]
    assert sorted(path.name for path in made.iterdir() if path.name[0] != ".") == sorted(
        ["manifest.json", *(f"{name}.parquet" for name in TABLES)]
    )
    with duckdb.connect() as connection:
        attach(connection.execute, served, "here")
        for name, columns in TABLES.items():
            there, listed = (
                f"read_parquet('{made}/{name}.parquet/*.parquet')",
                ", ".join(map('"{}"'.format, columns)),
            )
            typed = connection.execute(f"DESCRIBE SELECT * FROM {there}").fetchall()
            assert [row[:2] for row in typed] == [
                (column, SQL_TYPES[kind]) for column, kind in columns.items()
            ]
            both = [
                connection.execute(f"SELECT {listed} FROM {place} ORDER BY ALL").fetchall()
                for place in (f"here.{name}", there)
            ]
            assert both[0] == both[1]
            # A cluster takes no snapshots.
            assert bool(both[0]) == (name != "snapshot_wallets")
        supplies = (
            f"SELECT count(total_supply) FROM read_parquet('{made}/contracts.parquet/*.parquet')"
        )
        assert connection.execute(supplies).fetchone()[0] > 1
    assert {**report.tables} == {**expected.tables}
    assert (report.rows, report.new, report.bad_rows, report.gaps) == (
        expected.rows,
        expected.new,
        expected.bad_rows,
        expected.gaps,
    )
    alike = ("duplicates", "inferred", "unknown_decimals")
    assert {name: report.odd[name] for name in alike} == {
        name: expected.odd[name] for name in alike
    }
    assert [
        line.rpartition(", ")[2] for line in report.lines() if "row: " in line or "rows: " in line
    ] == [
        "1 row: sender is not an address: '0xyy'",
        "1 row: not an address: 'nonsense'",
        "2 rows: another number of fields than the header has",
        "1 row: sender is not an address: '0xzz'",
        "such as '-1'",
    ]

    newest = Newest(url, f"{master}?spark.sql.shuffle.partitions=3")
    dataset, here = newest.open(), open_dataset(tmp_path / "here")
    try:
        assert (dataset.about.chains, dataset.about.engine) == (here.about.chains, "pyspark")
        for nft in (False, True):
            assert dataset.catalog.symbols(1, nft=nft) == here.catalog.symbols(1, nft=nft) != []
        for block, of_block in ((1001, None), (1009, f"0x{1009:064x}"), (1400, None), (1150, None)):
            assert dataset.clock.moment(1, block) == here.clock.moment(1, block)
            assert dataset.clock.moment(1, block)[1] == of_block
        assert newest.newer() is None
        place = Place(dataset._spark.session(), url)
        assert (place.number, place.earlier) == (2, [f"{url}/{made.name}"])
        # What is built and has no manifest is nothing; then it is the newest, and of the older ones one stays.
        (tmp_path / "there" / Path(place.folder).name).mkdir()
        assert [number for number, *_ in generations(dataset._spark.session(), url)] == [1]
        manifest = {
            key: value for key, value in served.manifest.items() if key not in ("number", "format")
        }
        for before, number in ((1, 3), (3, 4)):
            again = Place(dataset._spark.session(), url)
            again.publish(manifest)
            assert [one for one, *_ in generations(dataset._spark.session(), url)] == [
                before,
                number,
            ]
    finally:
        dataset.close()
        here.close()


@pytest.mark.spark
def test_two_ingests_on_a_clusters_folder_exclude_each_other(tmp_path):
    there, url = tmp_path / "there", f"file://{tmp_path}/there"
    for number, name in enumerate(("first.csv", "second.csv"), 1):
        wallets = ["0x" + f"{digit}" * 40 for digit in (number, 3, 4)]
        write(tmp_path / name, TRANSFER, [[*wallets, 5, f"0x{number:064x}", 1, 10]])

    def run(name, progress=None):
        return ingest([str(tmp_path / name)], "ethereum", url, "local[1]", CONF, progress=progress)

    def served():
        manifests = [json.loads(path.read_text()) for path in there.glob("*/manifest.json")]
        return [
            (one["number"], [Path(file["path"]).name for file in one["files"]]) for one in manifests
        ]

    def meanwhile(step, done):
        if step == "merging" and not served():
            run("second.csv")

    # It began first and ends last: what it has is not served, and it says so.
    with pytest.raises(StorageError) as raised:
        run("first.csv", meanwhile)
    assert str(raised.value) == (
        f"{url}: an ingest that began later was served before this one ended. "
        "Nothing was changed. Ingest again, one run after the other."
    )
    assert served() == [(2, ["second.csv"])]
    assert len([*there.iterdir()]) == 1
    run("first.csv")
    assert sorted(served()) == [(2, ["second.csv"]), (3, ["first.csv"])]


@pytest.mark.spark
def test_a_file_that_changes_while_a_cluster_reads_it_refuses_the_run(tmp_path):
    file, there = tmp_path / "one.csv", tmp_path / "there"
    wallets = ["0x" + f"{digit}" * 40 for digit in (1, 3, 4)]
    row = [*wallets, 5, f"0x{1:064x}", 1, 10]
    write(file, TRANSFER, [row])

    def change(step, done):
        if step == "activity":
            write(file, TRANSFER, [row, [*wallets, 5, f"0x{2:064x}", 1, 10]])

    with pytest.raises(IngestError) as raised:
        ingest([str(file)], "ethereum", f"file://{there}", "local[1]", CONF, progress=change)
    assert str(raised.value) == (
        f"file:{file}: the file changed while it was being read. Ingest it again."
    )
    assert [*there.iterdir()] == []


_ELSEWHERE = """
import pickle, sys
sys.modules["nbext"] = None
import pyarrow as pa
function, key, flows = pickle.load(open(sys.argv[1], "rb"))
print(function(tuple(map(pa.scalar, key)), flows).to_pydict())
"""


@pytest.mark.spark
@pytest.mark.filterwarnings("error")
def test_what_works_out_a_history_runs_on_a_machine_without_nbext(tmp_path):
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    kinds = {"contract": pa.int32(), "block": pa.int64(), "log_index": pa.int64()}
    kinds |= {"sender": pa.int32(), "recipient": pa.int32()}
    flow = {"contract": 3, "block": 9, "log_index": 1, "sender": -1, "recipient": 2}
    amount = {
        limb: pa.array([n], pa.decimal128(38, 0)) for limb, n in zip(LIMBS, (1, 0, 7), strict=True)
    }
    flows = pa.table({n: pa.array([flow[n]], kind) for n, kind in kinds.items()} | amount)
    with by_value():
        (tmp_path / "task").write_bytes(
            cloudpickle.dumps((partial(_history, [range(5)]), (0,), flows))
        )
    words = [sys.executable, "-c", _ELSEWHERE, str(tmp_path / "task")]
    assert subprocess.check_output(words, text=True) == (
        "{'contract': [3], 'wallet': [2], 'from_block': [9], 'to_block': [4611686018427387904], "
        "'hi': [Decimal('1')], 'mid': [Decimal('0')], 'lo': [Decimal('7')]}\n"
    )


def world(folder: Path) -> Path:
    """Write the world of all forms as files: its events by standard, contracts and blocks."""
    folder.mkdir()
    event = (
        "contract_address",
        "from",
        "to",
        "evt_tx_hash",
        "evt_index",
        "evt_block_number",
        "chain_id",
    )
    columns = {"ERC20": ("value",), "ERC721": ("tokenid",), "ERC1155": ("id", "value")}
    for chain, standard in sorted({(one.chain_id, one.standard) for one in forms.CONTRACTS}):
        write(
            folder / f"transfers_{chain}_{standard}.csv",
            (*event, *columns[standard]),
            [
                [
                    contract.address,
                    one.sender,
                    one.recipient,
                    f"0x{place:064x}",
                    one.log_index,
                    one.block,
                    chain,
                    one.amount,
                    *([one.count] if standard == "ERC1155" else []),
                ]
                for place, one in enumerate(forms.WORLD.transfers)
                if ((contract := forms.CONTRACTS[one.contract]).chain_id, contract.standard)
                == (chain, standard)
            ],
        )
    for chain, last in forms.WORLD.last_blocks.items():
        write(
            folder / f"blocks_{chain}.csv",
            ("number", "timestamp", "chain_id"),
            [[block, forms.WORLD.timestamp(chain, block), chain] for block in range(last + 1)],
        )
    write(
        folder / "tokens.csv",
        ("address", "symbol", "name", "decimals", "chain_id"),
        [
            [one.address, one.symbol, one.name, one.decimals, one.chain_id]
            for one in forms.CONTRACTS
        ],
    )
    return folder


@pytest.mark.spark
@pytest.mark.long
def test_every_form_has_the_same_rows_on_the_tables_that_the_cluster_wrote(machines, tmp_path):
    _, master = machines
    files, url = world(tmp_path / "raw"), f"file://{tmp_path}/there"
    on_one_machine([files], None, tmp_path / "here")
    ingest([str(files)], None, url, master, CONF)
    here, there = (
        open_dataset(tmp_path / "here"),
        open_dataset(url, f"{master}?spark.sql.shuffle.partitions=3"),
    )
    try:
        for form in forms.FORMS:
            one, other = (
                each.ask(forms.question(form, each, by_address=True), limit=100)
                for each in (here, there)
            )
            assert (form, other.matched, other.rows.to_pylist()) == (
                form,
                one.matched,
                one.rows.to_pylist(),
            )
            assert other.rows.schema == one.rows.schema
            # No wallet of these files is a contract.
            assert (one.matched > 0) == (form != "wallet_contract")
    finally:
        here.close()
        there.close()


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            TRANSFER,
            [
                ["0x" + "1" * 40, "0x" + "2" * 40, "0x" + "3" * 40, value, "0x" + "4" * 64, 1, 10]
                for value in (1, 2)
            ],
            f"rows contradict each other: transaction 0x{'4' * 64}, log 1: ",
        ),
        (
            ("number", "timestamp"),
            [[5, 1_600_000_000], [5, 1_600_000_001]],
            "block 5 has two times: 2020-09-13 12:26:40 UTC in ",
        ),
        (
            ("number", "timestamp", "hash"),
            [[5, 1_600_000_000, f"0x{'1' * 64}"], [5, 1_600_000_000, f"0x{'2' * 64}"]],
            f"block 5 has two hashes: 0x{'1' * 64} in ",
        ),
        (
            ("number", "timestamp"),
            [[5, 1_600_000_000], [6, 0]],
            "block 6 has a time before that of block 5: 1970-01-01 00:00:00 UTC in ",
        ),
        (
            ("address", "balance"),
            [["0x" + "1" * 40, 5]],
            "holders is not read on a cluster. Ingest it on one machine, "
            "or export the transfers with their log indexes.",
        ),
        (
            ("from", "to", "amount", "time", "hash", "contract", "log_index"),
            [["0x" + "1" * 40, "0x" + "2" * 40, "1.5", 5, "0x" + "4" * 64, "0x" + "3" * 40, 1]],
            "a table of transfers, by time is not read on a cluster. Ingest it on one machine, ",
        ),
        (("a", "b"), [[1, 2]], "no known format has any of these columns: a, b"),
    ],
)
def test_what_cannot_be_used_refuses_the_run_and_leaves_nothing(tmp_path, header, rows, message):
    write(tmp_path / "one.csv", header, rows)
    with pytest.raises(IngestError) as raised:
        ingest(
            [str(tmp_path / "one.csv")], "ethereum", f"file://{tmp_path}/there", "local[1]", CONF
        )
    assert message in str(raised.value)
    assert [*(tmp_path / "there").iterdir()] == []
    with pytest.raises(
        StorageError, match=r"has no data[.] Write it there first: nbext ingest --engine local"
    ):
        open_dataset(f"file://{tmp_path}/there", "local[1]")


@pytest.mark.spark
@pytest.mark.long
def test_what_only_one_machine_reads_is_refused_also_beside_what_spark_reads(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    write(raw / "one.csv", ("number", "timestamp"), [[5, 1_600_000_000]])
    (raw / "README").write_text("Transfers of a day.")
    (raw / "more.json").write_text("[]")
    with pytest.raises(IngestError, match=r"more\.json: on a cluster nbext reads"):
        ingest([str(raw)], "ethereum", f"file://{tmp_path}/there", "local[1]", CONF)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((f"a.{form}", form) for form in ("parquet", "csv")),
        *((f"a.b.CSV{packed}", "csv") for packed in ("", ".GZ")),
        *(
            (f"a.{lines}{packed}", "json")
            for lines in ("ndjson", "jsonl")
            for packed in ("", ".gz")
        ),
        # Spark would read the packed bytes as Parquet.
        *((name, "") for name in ("a.parquet.gz", "a.json", "a.gz", "csv", "a.csv.zip")),
    ],
)
def test_a_file_is_read_by_its_name_as_spark_reads_it_or_not_at_all(name, form):
    assert Listed(f"file:///data.csv/{name}", 1, 0).form == form


@pytest.mark.slow
def test_a_url_needs_spark_and_spark_a_url_and_options_of_one_machine_are_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"is a URL, which only Spark reads[.] Write --engine spark://HOST:PORT"
    ):
        open_dataset("s3://bucket/nbext")
    for words, message in [
        (["--data", "s3://b/x"], "--data: 's3://b/x' is a URL, which only a cluster writes to."),
        (
            ["--engine", "spark://h:1", "--data", str(tmp_path)],
            "--data: a cluster needs the URL of a folder",
        ),
        (
            ["--engine", "sc://h:1", "--data", "s3://b/x"],
            "--engine: ingest is a program of Spark's own.",
        ),
        (
            ["--engine", "spark://h:1", "--data", "s3://b/x", "--block", "5"],
            "--block is for ingest on one machine.",
        ),
    ]:
        ran = subprocess.run(
            [sys.executable, "-m", "nbext.cli", "ingest", "x.csv", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 2
        assert message in ran.stderr


@pytest.mark.parametrize(
    ("duckdb_sql", "spark_sql"),
    [
        (
            "SELECT regexp_full_match(lower(a), '0x[0-9a-f]{40}') FROM t",
            r"SELECT LOWER(a) RLIKE '^(?:0x[0-9a-f]{40})\\z' FROM t",
        ),
        (
            "SELECT first(s ORDER BY a, b DESC) FILTER (s IS NOT NULL) FROM out.main.blocks",
            "SELECT MIN_BY(s, STRUCT(a IS NULL, a, b IS NULL, -(b))) FILTER(WHERE NOT s IS NULL) FROM out_blocks",
        ),
        (
            "SELECT sum(b.hi::HUGEINT), md5(x)::UUID, TRY(unhex(x)::UUID) FROM b",
            "SELECT SUM(CAST(b.hi AS DECIMAL(38, 0))), UNHEX(MD5(x)), UNHEX(x) FROM b",
        ),
        (
            "SELECT list_position(['a', 'b'], s), n // 3 FROM t",
            "SELECT ARRAY_POSITION(ARRAY('a', 'b'), s), n DIV 3 FROM t",
        ),
    ],
)
def test_what_spark_writes_in_another_way_is_exchanged(duckdb_sql, spark_sql):
    assert translated(_parsed(duckdb_sql, ())) == spark_sql
